import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { StoreReadings } from '../../src/handoff/counts/store-readings.ts'
import { type Store, StoreUnavailable } from '../../src/handoff/store.ts'
import type { InstancePage } from '../../src/handoff/views/queries.ts'

const empty = { now: 0, tasks: [], next: null }
const away = { canCommit: false, backlog: null, fleet: null }

/** A slow store that counts its requests. */
class SlowStore implements Pick<Store, 'probe' | 'tasks' | 'instances' | 'activeInstances'> {
  millis = 100
  probes = 0
  fails: Error | undefined

  async probe(): Promise<void> {
    this.probes += 1
    await this.#work()
  }

  async tasks(): Promise<typeof empty> {
    await this.#work()
    return empty
  }

  async activeInstances(): Promise<string[]> {
    await this.#work()
    return []
  }

  async instances(): Promise<InstancePage> {
    return { instances: [], next: null }
  }

  async #work(): Promise<void> {
    await new Promise((resolve) => setTimeout(resolve, this.millis))
    if (this.fails !== undefined) throw this.fails
  }
}

let store: SlowStore
let failed: unknown[]
let readings: StoreReadings

beforeEach(() => {
  vi.useFakeTimers()
  store = new SlowStore()
  failed = []
  readings = new StoreReadings(store, (error) => failed.push(error))
})
afterEach(() => {
  vi.useRealTimers()
})

/** What is read within this time. */
async function read(millis: number) {
  const reading = readings.read()
  await vi.advanceTimersByTimeAsync(millis)
  return reading
}

test('a store that answers is up, and its backlog is known', async () => {
  expect(await read(300)).toMatchObject({ canCommit: true, backlog: { isComplete: true } })
})

test('concurrent callers share a read', async () => {
  const [first, second] = await Promise.all([read(300), readings.read()])
  expect(store.probes).toBe(1)
  expect(second).toBe(first)
})

test('a result is cached for twenty times as long as the read took', async () => {
  // Three states are read, one after the other.
  await read(300)
  await read(5900)
  await read(0)
  expect(store.probes).toBe(1)
  await vi.advanceTimersByTimeAsync(200)
  await read(300)
  expect(store.probes).toBe(2)
})

test('a store that does not answer is unavailable, and gets no second request meanwhile', async () => {
  store.millis = 3_600_000
  expect(await read(2000)).toEqual(away)
  expect(await read(2000)).toEqual(away)
  expect(store.probes).toBe(1)
})

test('a store that answers late is available again with its answer, which is cached for seconds only', async () => {
  store.millis = 30_000
  expect(await read(2000)).toEqual(away)
  await vi.advanceTimersByTimeAsync(90_000)
  expect(await read(0)).toMatchObject({ canCommit: true })
  await vi.advanceTimersByTimeAsync(10_000)
  store.millis = 10
  await read(100)
  expect(store.probes).toBe(2)
})

test('a store that cannot commit is unavailable; any other error is reported', async () => {
  store.fails = new StoreUnavailable('store_unavailable', 'gone')
  expect(await read(100)).toEqual(away)
  expect(failed).toEqual([])
  store.fails = new Error('a defect')
  await vi.advanceTimersByTimeAsync(10_000)
  expect(await read(100)).toEqual(away)
  expect(failed).toEqual([store.fails, store.fails, store.fails])
})
