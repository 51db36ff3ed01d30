import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { NOTHING, WaitingPulls } from '../../src/handoff/pulls.ts'
import type { BatchedPull, PullResult } from '../../src/handoff/store.ts'
import { batchedPull } from '../store/conformance/driver.ts'

const found = (index: number, repeated = false): PullResult => ({
  partitions: [
    { taskId: 'a', level: 0, index, spelling: null, computeTableName: 'a.b', recordCount: 1, lease: null },
  ],
  repeated,
})

/** A store that is called one request after the other and answers when the test says so. */
class Store {
  readonly tries: {
    pull: BatchedPull
    answer: (result: PullResult) => void
    fail: (error: Error) => void
  }[] = []
  readonly pull = (pull: BatchedPull) =>
    new Promise<PullResult>((answer, fail) => this.tries.push({ pull, answer, fail }))

  get asked(): (string | null)[] {
    return this.tries.map(({ pull }) => pull.instance)
  }

  async answer(result: PullResult): Promise<void> {
    this.tries.shift()?.answer(result)
    await settled()
  }
}

/** Runs everything that needs no timer. */
const settled = () => vi.advanceTimersByTimeAsync(0)

let store: Store
let waiting: WaitingPulls
let answered: Map<string, PullResult | string>

beforeEach(() => {
  vi.useFakeTimers()
  store = new Store()
  waiting = new WaitingPulls(store.pull)
  answered = new Map()
})

afterEach(() => {
  vi.useRealTimers()
})

function wait(
  name: string,
  options: { key?: string; millis?: number; signal?: AbortSignal; epoch?: number } = {},
) {
  const anyPull = batchedPull({ instance: name, key: options.key ?? null })
  const answer = waiting.wait(
    anyPull,
    options.millis ?? 20_000,
    options.signal,
    options.epoch ?? waiting.wakeCount,
  )
  answer.then(
    (result) => answered.set(name, result),
    (error: unknown) => answered.set(name, String(error)),
  )
}

describe('partitions that become ready', () => {
  test('wake as many pulls as there are partitions, first come first served', async () => {
    for (const name of ['a', 'b', 'c', 'd']) wait(name)
    waiting.wake(2)
    expect(store.asked).toEqual(['a', 'b'])
    await store.answer(found(1))
    await store.answer(found(2))
    expect([...answered.keys()]).toEqual(['a', 'b'])
    expect(waiting.size).toBe(2)
    waiting.wake(1)
    expect(store.asked).toEqual(['c'])
  })

  test('wake no pull if there are none, and each pull once if there are more than pulls', async () => {
    for (const name of ['a', 'b']) wait(name)
    waiting.wake(0)
    expect(store.asked).toEqual([])
    waiting.wake(100)
    expect(store.asked).toEqual(['a', 'b'])
  })

  test('leave a pull that was woken unnecessarily in its place', async () => {
    for (const name of ['a', 'b']) wait(name)
    waiting.wake(1)
    await store.answer(NOTHING)
    expect(answered.size).toBe(0)
    waiting.wake(1)
    expect(store.asked).toEqual(['a'])
    await store.answer(found(1))
    expect([...answered.keys()]).toEqual(['a'])
  })

  test('do not wake a pull that is already trying, but the next one', () => {
    for (const name of ['a', 'b', 'c']) wait(name)
    waiting.wake(1)
    waiting.wake(1)
    expect(store.asked).toEqual(['a', 'b'])
  })
})

describe('no wake-up is lost', () => {
  test('when something became ready between the first try and the wait', async () => {
    const seen = waiting.wakeCount
    waiting.wake(1)
    wait('a', { epoch: seen })
    expect(store.asked).toEqual(['a'])
    await store.answer(found(1))
    expect(answered.get('a')).toEqual(found(1))
  })

  test('when something becomes ready during a try that will find nothing', async () => {
    wait('a')
    waiting.wake(1)
    waiting.wake(1)
    await store.answer(NOTHING)
    expect(store.asked).toEqual(['a'])
    await store.answer(found(1))
    expect(answered.get('a')).toEqual(found(1))
  })
})

describe('pulls with the same key', () => {
  test('are woken together and get the same answer', async () => {
    wait('a', { key: 'k' })
    wait('b')
    wait('c', { key: 'k' })
    waiting.wake(1)
    expect(store.asked).toEqual(['a', 'c'])
    await store.answer(found(1))
    await store.answer(found(1, true))
    expect([...answered.keys()]).toEqual(['a', 'c'])
    expect(waiting.size).toBe(1)
  })

  test('try again at their timeout: a duplicate on another node may have been served', async () => {
    wait('a', { key: 'k', millis: 1000 })
    await vi.advanceTimersByTimeAsync(1000)
    expect(store.asked).toEqual(['a'])
    await store.answer(found(1, true))
    expect(answered.get('a')).toEqual(found(1, true))
  })
})

describe('a wait ends', () => {
  test('empty at its timeout, not before', async () => {
    wait('a', { millis: 1000 })
    await vi.advanceTimersByTimeAsync(999)
    expect(answered.size).toBe(0)
    await vi.advanceTimersByTimeAsync(1)
    expect(answered.get('a')).toEqual(NOTHING)
    expect(waiting.size).toBe(0)
    expect(store.asked).toEqual([])
  })

  test('empty when the client disconnects', async () => {
    const client = new AbortController()
    wait('a', { signal: client.signal })
    client.abort()
    await settled()
    expect(answered.get('a')).toEqual(NOTHING)
    waiting.wake(1)
    expect(store.asked).toEqual([])
  })

  test('with the result of a try that was running at the disconnect or the timeout', async () => {
    const client = new AbortController()
    wait('a', { signal: client.signal })
    wait('b', { millis: 1000 })
    waiting.wake(2)
    client.abort()
    await vi.advanceTimersByTimeAsync(1000)
    expect(answered.size).toBe(0)
    await store.answer(found(1))
    await store.answer(NOTHING)
    expect(answered).toEqual(
      new Map([
        ['a', found(1)],
        ['b', NOTHING],
      ]),
    )
  })

  test('at once for a client that has already disconnected', async () => {
    wait('a', { signal: AbortSignal.abort() })
    await settled()
    expect(answered.get('a')).toEqual(NOTHING)
  })

  test('with the error of its try', async () => {
    wait('a')
    wait('b')
    waiting.wake(1)
    store.tries[0]?.fail(new Error('the disk is full'))
    await settled()
    expect(answered.get('a')).toBe('Error: the disk is full')
    expect(waiting.size).toBe(1)
  })

  test('for all pulls when the service closes, and for all later ones', async () => {
    for (const name of ['a', 'b']) wait(name)
    waiting.wake(1)
    waiting.close()
    await settled()
    expect([...answered.keys()]).toEqual(['b'])
    await store.answer(NOTHING)
    wait('c')
    await settled()
    expect([...answered.keys()]).toEqual(['b', 'a', 'c'])
    expect(waiting.size).toBe(0)
    expect(vi.getTimerCount()).toBe(0)
  })
})
