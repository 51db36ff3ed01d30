import { describe, expect, test } from 'vitest'
import { totalOf } from '../../../src/handoff/rules/task.ts'
import { one, some } from './driver.ts'
import { HOUR, type StoreHarness, storesOf } from './harness.ts'

export function callBackTopic(harness: StoreHarness): void {
  describe('call-back', () => {
    const open = storesOf(harness)

    test('the first call-back creates the task', async () => {
      const store = await open()
      expect(await store.store.task('orders')).toBeNull()
      expect(await store.callBack('orders', [...some(0, 2), one(3, 7)])).toEqual({
        kind: 'stored',
        accepted: 3,
        duplicates: 0,
      })
      expect(await store.states('orders')).toEqual({ '0-0': 'ready', '0-1': 'ready', '3-7': 'ready' })
    })

    test('a repeated array contains only duplicates, and a longer one adds what is new', async () => {
      const store = await open()
      await store.callBack('orders', some(0, 2))
      expect(await store.callBack('orders', some(0, 2))).toEqual({
        kind: 'stored',
        accepted: 0,
        duplicates: 2,
      })
      expect(await store.callBack('orders', some(0, 5))).toEqual({
        kind: 'stored',
        accepted: 3,
        duplicates: 2,
      })
      expect(await store.partitions('orders')).toHaveLength(5)
    })

    test('a partition is recognized as a duplicate in every state', async () => {
      const store = await open()
      await store.callBack('orders', some(0, 3))
      const done = await store.pullOne()
      await store.settle(done.leaseId)
      const parked = await store.pullOne()
      await store.settle(parked.leaseId, { outcome: 'failed', final: true })
      await store.pullOne()
      const before = await store.states('orders')
      expect(await store.callBack('orders', some(0, 3))).toMatchObject({ accepted: 0, duplicates: 3 })
      expect(await store.states('orders')).toEqual(before)
    })

    test('other content under a known identity is a conflict, reported with the stored content', async () => {
      const store = await open()
      await store.callBack('orders', some(0, 3))
      const array = [one(0, 0), one(0, 1, { recordCount: 7 }), one(0, 2, { computeTableName: 'a.b' })]
      expect(await store.callBack('orders', array)).toEqual({
        kind: 'conflict',
        total: 2,
        conflicts: [
          { position: 1, known: one(0, 1) },
          { position: 2, known: one(0, 2) },
        ],
      })
    })

    test('another spelling of a known index is a conflict, the same spelling a duplicate', async () => {
      const store = await open()
      await store.callBack('orders', [one(0, 1, { spelling: 'orders-0-01' })])
      expect(await store.callBack('orders', [one(0, 1)])).toMatchObject({ kind: 'conflict', total: 1 })
      expect(await store.callBack('orders', [one(0, 1, { spelling: 'orders-0-01' })])).toMatchObject({
        duplicates: 1,
      })
      expect((await store.pullOne()).spelling).toBe('orders-0-01')
    })

    test('nothing of an array with a conflict is stored, not even its task or its lanes', async () => {
      const store = await open()
      await store.callBack('orders', some(0, 1))
      const array = [one(0, 0, { recordCount: 1 }), one(0, 5), one(9, 0)]
      expect(await store.callBack('orders', array)).toMatchObject({ kind: 'conflict' })
      const { lanes } = await store.task('orders')
      expect(lanes.map(({ level, lastIndex }) => [level, lastIndex])).toEqual([[0, 0]])
      expect(await store.states('orders')).toEqual({ '0-0': 'ready' })
    })

    test('of many conflicts a hundred are named and all are counted', async () => {
      const store = await open()
      await store.callBack('orders', some(0, 150))
      const result = await store.callBack('orders', some(0, 150, { recordCount: 1 }))
      expect(result).toMatchObject({ kind: 'conflict', total: 150 })
      expect(result.kind === 'conflict' && result.conflicts).toHaveLength(100)
    })

    test('the record total of a task stays a safe integer', async () => {
      const store = await open()
      await store.callBack('orders', [one(0, 0, { recordCount: Number.MAX_SAFE_INTEGER - 5 })])
      expect(await store.callBack('orders', [one(0, 1, { recordCount: 6 })])).toEqual({
        kind: 'record_total_too_large',
      })
      expect(await store.callBack('orders', [one(0, 1, { recordCount: 5 })])).toMatchObject({ accepted: 1 })
      const { facts } = await store.task('orders')
      expect(totalOf(facts.records)).toBe(Number.MAX_SAFE_INTEGER)
    })

    test('levels, indexes and counts at the end of the safe integers are kept exactly', async () => {
      const store = await open()
      const largest = Number.MAX_SAFE_INTEGER
      const edge = one(largest, largest, { recordCount: largest })
      expect(await store.callBack('edge', [one(0, 0, { recordCount: 0 }), edge])).toMatchObject({
        accepted: 2,
      })
      expect(await store.callBack('edge', [edge])).toMatchObject({ duplicates: 1 })
      await store.pullOne()
      expect(await store.pullOne()).toMatchObject({ level: largest, index: largest, recordCount: largest })
    })

    test('indexes with gaps in any order are each stored once', async () => {
      const store = await open()
      const indexes = [40, 2, 3, 99, 0, 41, 1]
      const array = indexes.map((index) => one(1, index))
      expect(await store.callBack('gaps', array)).toMatchObject({ accepted: 7, duplicates: 0 })
      for (const index of indexes) {
        expect(await store.callBack('gaps', [one(1, index)])).toMatchObject({ accepted: 0, duplicates: 1 })
      }
      expect(await store.callBack('gaps', [one(1, 4), one(1, 39), one(1, 98)])).toMatchObject({ accepted: 3 })
      const { lanes } = await store.task('gaps')
      expect(lanes[0]).toMatchObject({ firstIndex: 0, lastIndex: 99 })
      expect(lanes[0]?.gaps).toEqual([
        { first: 5, last: 38 },
        { first: 42, last: 97 },
      ])
    })

    test('a task whose partitions are all done is reopened by a new one, as its next generation', async () => {
      const store = await open()
      await store.callBack('orders', some(0, 1))
      await store.settle((await store.pullOne()).leaseId)
      expect((await store.task('orders')).facts).toMatchObject({
        generation: 1,
        finishedAt: store.clock.now(),
      })
      await store.callBack('orders', some(0, 1))
      expect((await store.task('orders')).facts).toMatchObject({ generation: 1 })
      await store.callBack('orders', some(0, 2))
      expect((await store.task('orders')).facts).toMatchObject({ generation: 2, finishedAt: null })
    })

    test('the finish time of a task is that of its last partition, however late an array is repeated', async () => {
      const store = await open()
      await store.callBack('orders', some(0, 2))
      const { partitions } = await store.pull({ batch: 2 })
      await store.settleAll(partitions)
      const finishedAt = store.clock.now()
      // No view of the task was requested in between.
      store.clock.advance(HOUR)
      expect(await store.callBack('orders', some(0, 2))).toMatchObject({ accepted: 0, duplicates: 2 })
      const lastCallBackAt = store.clock.now()
      store.clock.advance(HOUR)
      expect((await store.task('orders')).facts).toMatchObject({ generation: 1, finishedAt, lastCallBackAt })
    })
  })
}
