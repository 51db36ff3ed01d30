import { describe, expect, test } from 'vitest'
import { batchedCallBack, batchedPull, leaseOf, nameOf, one, settlement, some } from './driver.ts'
import { type StoreHarness, storesOf } from './harness.ts'

export function isolationTopic(harness: StoreHarness): void {
  describe('requests that share a transaction', () => {
    const open = storesOf(harness)

    test('a conflict affects only its own answer: the other call-backs are stored', async () => {
      const store = await open()
      await store.callBack('a', some(0, 1))
      const { callBacks } = await store.batch({
        callBacks: [
          batchedCallBack('a', some(0, 2, { recordCount: 1 })),
          batchedCallBack('a', some(0, 3)),
          batchedCallBack('b', some(0, 1)),
        ],
      })
      expect(callBacks).toMatchObject([
        { kind: 'conflict' },
        { kind: 'stored', accepted: 2, duplicates: 1 },
        { kind: 'stored', accepted: 1 },
      ])
    })

    test('the same array twice in one batch is accepted once, then counted as duplicates', async () => {
      const store = await open()
      const { callBacks } = await store.batch({
        callBacks: [batchedCallBack('a', some(0, 5)), batchedCallBack('a', some(0, 5))],
      })
      expect(callBacks).toMatchObject([
        { accepted: 5, duplicates: 0 },
        { accepted: 0, duplicates: 5 },
      ])
      expect(await store.pullAll()).toHaveLength(5)
    })

    test('of two contradicting arrays in one batch, the first is stored and the second refused', async () => {
      const store = await open()
      const { callBacks } = await store.batch({
        callBacks: [
          batchedCallBack('a', [one(0, 0)]),
          batchedCallBack('a', [one(0, 0, { recordCount: 9 }), one(0, 1)]),
        ],
      })
      expect(callBacks).toMatchObject([{ kind: 'stored' }, { kind: 'conflict', total: 1 }])
      expect(Object.keys(await store.states('a'))).toEqual(['0-0'])
    })

    test('record totals count what the batch itself stored before', async () => {
      const store = await open()
      const half = { recordCount: Number.MAX_SAFE_INTEGER - 1 }
      const { callBacks } = await store.batch({
        callBacks: [batchedCallBack('a', [one(0, 0, half)]), batchedCallBack('a', [one(0, 1, half)])],
      })
      expect(callBacks).toMatchObject([{ kind: 'stored' }, { kind: 'record_total_too_large' }])
    })

    test('a pull sees what a call-back of its own batch stored', async () => {
      const store = await open()
      const { pulls } = await store.batch({
        callBacks: [batchedCallBack('a', some(0, 2))],
        pulls: [batchedPull({ batch: 5 })],
      })
      expect(pulls[0]?.partitions.map(nameOf)).toEqual(['a-0-0', 'a-0-1'])
    })

    test('if two requests settle one lease, the first one wins', async () => {
      const store = await open()
      await store.callBack('a', some(0, 1))
      const lease = leaseOf((await store.pullOne()).leaseId)
      const saying = (outcome: 'done' | 'failed') => ({
        instance: null,
        settlements: [{ lease, reported: settlement({ outcome }) }],
      })
      const { settles } = await store.batch({ settles: [saying('failed'), saying('done')] })
      expect(settles).toEqual([[null], ['lease_settled']])
    })

    test('a call-back in the batch of the last settle adds to the task, and two reopen a done task once', async () => {
      const store = await open()
      await store.callBack('a', some(0, 1))
      await store.settleAll([await store.pullOne()], {}, { callBacks: [batchedCallBack('a', [one(0, 1)])] })
      expect((await store.task('a')).facts).toMatchObject({ generation: 1, finishedAt: null })
      await store.settle((await store.pullOne()).leaseId)
      await store.batch({ callBacks: [2, 3].map((index) => batchedCallBack('a', [one(0, index)])) })
      expect((await store.task('a')).facts).toMatchObject({ generation: 2, finishedAt: null })
    })

    test('a settle goes before a renewal of the same lease in one batch', async () => {
      const store = await open()
      await store.callBack('a', some(0, 1))
      const leased = await store.pullOne()
      const renewal = { leases: [leaseOf(leased.leaseId)] }
      const { settles, renews } = await store.settleAll([leased], {}, { renews: [renewal] })
      expect(settles).toEqual([[null]])
      expect(renews).toEqual([[{ refused: 'lease_settled' }]])
    })

    test('answers are in the order of requests, also to empty ones', async () => {
      const store = await open()
      await store.callBack('a', some(0, 2))
      const answers = await store.batch({
        settles: [{ instance: null, settlements: [] }],
        renews: [{ leases: [] }, { leases: [] }],
        pulls: [batchedPull(), batchedPull(), batchedPull()],
      })
      expect(answers.settles).toEqual([[]])
      expect(answers.renews).toEqual([[], []])
      expect(answers.pulls.map(({ partitions }) => partitions.length)).toEqual([1, 1, 0])
    })

    test('large call-backs at once, of one task and of several, are each stored completely', async () => {
      const store = await open()
      const asked = Array.from({ length: 6 }, async (_, at) => {
        const partitions = some(0, 5000).map((partition) => ({
          ...partition,
          index: partition.index + 5000 * at,
        }))
        return store.callBack(at < 3 ? 'shared' : `task-${at}`, partitions)
      })
      for (const result of await Promise.all(asked))
        expect(result).toEqual({ kind: 'stored', accepted: 5000, duplicates: 0 })
      expect(await store.partitions('shared')).toHaveLength(15_000)
      for (const at of [3, 4, 5]) expect(await store.partitions(`task-${at}`)).toHaveLength(5000)
    })

    test('calls made at once, without waiting, are each executed completely', async () => {
      const store = await open()
      const stored = await Promise.all(
        Array.from({ length: 20 }, (_, array) => store.callBack('a', some(0, 10, {}, array * 10))),
      )
      expect(stored).toHaveLength(20)
      const pulled = await Promise.all(Array.from({ length: 50 }, () => store.pull({ batch: 5 })))
      const names = pulled.flatMap(({ partitions }) => partitions.map(nameOf))
      expect(names).toHaveLength(200)
      expect(new Set(names).size).toBe(200)
    })
  })
}
