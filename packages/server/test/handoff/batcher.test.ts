import { afterEach, describe, expect, test, vi } from 'vitest'
import { Batcher, FULL_BATCH } from '../../src/handoff/batcher.ts'
import {
  type BatchedCallBack,
  type HandOffAnswers,
  type HandOffBatch,
  type Store,
  StoreUnavailable,
} from '../../src/handoff/store.ts'
import { batchedCallBack, batchedPull, leaseOf, one, settlement } from '../store/conformance/driver.ts'

const lease = leaseOf('1-1-AAAAAAAAAAAAAAAA')

/** Answers each order with a value that names it, so that mixed-up answers are noticed. */
function answersTo(batch: HandOffBatch): HandOffAnswers {
  return {
    settles: batch.settles.map(({ settlements }) => settlements.map(() => null)),
    renews: batch.renews.map(({ leases }) => leases.map(() => ({ refused: 'lease_lost' as const }))),
    undone: batch.undos.length,
    callBacks: batch.callBacks.map(({ callBack }) => ({
      kind: 'stored' as const,
      accepted: callBack.partitions.length,
      duplicates: 0,
    })),
    pulls: batch.pulls.map(({ key }) => ({ partitions: [], repeated: key !== null })),
    newlyReady: 0,
    nextDueInMillis: null,
  }
}

class SlowStore {
  cluster?: { readonly waitShare: number }
  readonly batches: HandOffBatch[] = []
  /** Tasks whose call-backs must be sent alone. */
  readonly alone = new Set<string>()
  readonly #commits: (() => void)[] = []
  readonly #decide: (batch: HandOffBatch) => HandOffAnswers

  constructor(decide: (batch: HandOffBatch) => HandOffAnswers = answersTo) {
    this.#decide = decide
  }

  readonly runsAlone = ({ callBack }: BatchedCallBack): boolean => this.alone.has(callBack.taskId)

  readonly runBatch = (batch: HandOffBatch): Promise<HandOffAnswers> => {
    this.batches.push(batch)
    return new Promise((resolve, reject) => {
      this.#commits.push(() => {
        try {
          resolve(this.#decide(batch))
        } catch (error) {
          reject(error)
        }
      })
    })
  }

  /** Ends the oldest commit, and waits until its effects are complete. */
  async commit(): Promise<void> {
    this.#commits.shift()?.()
    await turn()
    await turn()
  }
}

const turn = () => new Promise((resolve) => setImmediate(resolve))

const setUp = (decide?: (batch: HandOffBatch) => HandOffAnswers, waitShare?: number) => {
  const store = new SlowStore(decide)
  if (waitShare !== undefined) store.cluster = { waitShare }
  const told: string[] = []
  const batcher = new Batcher(store as unknown as Store, {
    committed: () => told.push('committed'),
    failed: (error) => told.push(String(error)),
  })
  return { store, batcher, told }
}

afterEach(() => {
  vi.restoreAllMocks()
  vi.useRealTimers()
})

describe('batches', () => {
  test('of the requests of one event-loop iteration are one transaction', async () => {
    const { store, batcher } = setUp()
    const asked = [1, 2, 3].map(() => batcher.ask({ pull: batchedPull() }))
    await turn()
    expect(store.batches.map(({ pulls }) => pulls.length)).toEqual([3])
    await store.commit()
    expect(await Promise.all(asked)).toHaveLength(3)
  })

  test('form during a commit, and are sent when it ends', async () => {
    const { store, batcher } = setUp()
    batcher.ask({ pull: batchedPull() })
    await turn()
    for (let request = 0; request < 5; request += 1) {
      batcher.ask({ pull: batchedPull() })
      await turn()
    }
    expect(store.batches).toHaveLength(1)
    await store.commit()
    expect(store.batches.map(({ pulls }) => pulls.length)).toEqual([1, 5])
  })

  describe('after three clients were answered', () => {
    const answerThree = async () => {
      let now = 0
      vi.spyOn(performance, 'now').mockImplementation(() => now)
      const { store, batcher } = setUp()
      for (let client = 0; client < 3; client += 1) batcher.ask({ pull: batchedPull() })
      await turn()
      await store.commit()
      const askAgain = () => void batcher.ask({ pull: batchedPull() })
      const pass = (millis: number) => {
        now += millis
      }
      return { askAgain, pass, sizes: () => store.batches.map(({ pulls }) => pulls.length) }
    }

    test('the next batch waits only while each iteration has a request of one of them', async () => {
      const { askAgain, sizes } = await answerThree()
      askAgain()
      askAgain()
      await turn()
      askAgain()
      await turn()
      expect(sizes()).toEqual([3, 3])
    })

    test('the waiting ends after a millisecond, although each iteration has a request', async () => {
      const { askAgain, pass, sizes } = await answerThree()
      askAgain()
      askAgain()
      pass(1)
      await turn()
      expect(sizes()).toEqual([3, 2])
    })

    test('an iteration without a request ends the waiting', async () => {
      const { askAgain, sizes } = await answerThree()
      askAgain()
      askAgain()
      await turn()
      await turn()
      expect(sizes()).toEqual([3, 2])
    })

    describe('and batches are expensive', () => {
      const oneOfThreeIsBack = async () => {
        vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
        let now = 0
        vi.spyOn(performance, 'now').mockImplementation(() => now)
        const { store, batcher } = setUp(answersTo, 0.5)
        for (let client = 0; client < 3; client += 1) batcher.ask({ pull: batchedPull() })
        await turn()
        now = 1
        await store.commit()
        const askAgain = () => void batcher.ask({ pull: batchedPull() })
        askAgain()
        await turn()
        return { askAgain, sizes: () => store.batches.map(({ pulls }) => pulls.length) }
      }

      test('the next one waits beyond an iteration without a request, and is sent when all clients are back', async () => {
        const { askAgain, sizes } = await oneOfThreeIsBack()
        await turn()
        expect(sizes()).toEqual([3])
        askAgain()
        askAgain()
        await turn()
        expect(sizes()).toEqual([3, 3])
      })

      test('it does not wait forever', async () => {
        const { sizes } = await oneOfThreeIsBack()
        vi.advanceTimersByTime(1)
        expect(sizes()).toEqual([3, 1])
      })
    })
  })

  test('have a maximum size: the rest is the next batch, one iteration later', async () => {
    const { store, batcher } = setUp()
    for (let client = 0; client < 5; client += 1)
      batcher.ask({ pull: batchedPull({ batch: FULL_BATCH / 2 }) })
    await turn()
    expect(store.batches.map(({ pulls }) => pulls.length)).toEqual([2])
    await store.commit()
    expect(store.batches.map(({ pulls }) => pulls.length)).toEqual([2, 2])
    await store.commit()
    expect(store.batches.map(({ pulls }) => pulls.length)).toEqual([2, 2, 1])
  })

  describe('do not wait for call-backs that run over several transactions', () => {
    const callBack = (taskId: string) => ({ callBack: batchedCallBack(taskId, [one(1, 0)]) })
    const sent = ({ batches }: SlowStore) =>
      batches.map(({ callBacks, pulls }) => [...callBacks.map(({ callBack }) => callBack.taskId), ...pulls])

    test('such ones are sent alone', async () => {
      const { store, batcher } = setUp()
      const pull = batchedPull()
      store.alone.add('a')
      for (const ask of [callBack('a'), callBack('a'), callBack('b'), { pull }]) batcher.ask(ask)
      await turn()
      expect(sent(store)).toEqual([['a'], ['a'], ['b', pull]])
      await store.commit()
      await store.commit()
      await store.commit()
      store.alone.clear()
      for (const ask of [callBack('a'), { pull }]) batcher.ask(ask)
      await turn()
      expect(sent(store).slice(3)).toEqual([['a', pull]])
    })

    test('those that were queued before are sent alone, and do not count as a batch', async () => {
      const { store, batcher } = setUp()
      const pull = batchedPull()
      batcher.ask({ pull })
      await turn()
      for (const ask of [callBack('a'), callBack('a')]) batcher.ask(ask)
      store.alone.add('a')
      await store.commit()
      expect(sent(store)).toEqual([[pull], ['a'], ['a']])
      batcher.ask({ pull })
      await turn()
      expect(sent(store).slice(3)).toEqual([[pull]])
    })
  })

  test('return to each request its own answers', async () => {
    const { store, batcher } = setUp()
    const both = batcher.ask({
      settle: { instance: null, settlements: [{ lease, reported: settlement() }] },
      pull: batchedPull({ key: 'k' }),
    })
    const calledBack = batcher.ask({ callBack: batchedCallBack('a', [one(0, 0), one(0, 1)]) })
    const renewed = batcher.ask({ renew: { leases: [lease, lease] } })
    const pulled = batcher.ask({ pull: batchedPull() })
    const undone = batcher.ask({ undo: [lease] })
    await turn()
    await store.commit()
    expect(await both).toMatchObject({ settle: [null], pull: { repeated: true } })
    expect(await calledBack).toMatchObject({ callBack: { accepted: 2 } })
    expect(await renewed).toMatchObject({ renew: [{ refused: 'lease_lost' }, { refused: 'lease_lost' }] })
    expect(await pulled).toMatchObject({ pull: { repeated: false } })
    expect(await undone).toEqual({})
  })
})

describe('failures', () => {
  /** A store that throws on the data of one request, as with a bug of ours. */
  const breaksOn = (taskId: string) => (batch: HandOffBatch) => {
    if (batch.callBacks.some(({ callBack }) => callBack.taskId === taskId))
      throw new Error(`broke on ${taskId}`)
    return answersTo(batch)
  }

  test('caused by the data of one request do not affect the others, which run again one by one', async () => {
    const { store, batcher, told } = setUp(breaksOn('bad'))
    const outcomes = Promise.allSettled(
      ['good', 'bad', 'fine'].map((taskId) =>
        batcher.ask({ callBack: batchedCallBack(taskId, [one(0, 0)]) }),
      ),
    )
    await turn()
    for (let commits = 0; commits < 4; commits += 1) await store.commit()
    expect((await outcomes).map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
    expect(store.batches.map(({ callBacks }) => callBacks.length)).toEqual([3, 1, 1, 1])
    expect(told).toEqual(['committed', 'Error: broke on bad', 'committed'])
  })

  test('of the store end the whole batch at once, and the next batch is tried', async () => {
    let isDown = true
    const { store, batcher, told } = setUp((batch) => {
      if (isDown) throw new StoreUnavailable('store_full', 'the disk is full')
      return answersTo(batch)
    })
    const outcomes = Promise.allSettled([1, 2].map(() => batcher.ask({ pull: batchedPull() })))
    await turn()
    await store.commit()
    expect((await outcomes).map(({ status }) => status)).toEqual(['rejected', 'rejected'])
    expect(store.batches).toHaveLength(1)
    expect(told).toEqual(['StoreUnavailable: the disk is full'])
    isDown = false
    const again = batcher.ask({ pull: batchedPull() })
    await turn()
    await store.commit()
    expect(await again).toMatchObject({ pull: { partitions: [] } })
  })

  test('after a commit never run the batch again, even if its answers make no sense', async () => {
    const { store, batcher } = setUp((batch) => ({ ...answersTo(batch), pulls: [] }))
    const outcomes = Promise.allSettled([1, 2].map(() => batcher.ask({ pull: batchedPull() })))
    await turn()
    await store.commit()
    expect((await outcomes).map(({ status }) => status)).toEqual(['rejected', 'rejected'])
    expect(store.batches).toHaveLength(1)
  })
})
