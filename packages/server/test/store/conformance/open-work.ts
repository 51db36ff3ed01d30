import { describe, expect, test } from 'vitest'
import { type Driver, nameOf, one, some } from './driver.ts'
import { type StoreHarness, storesOf } from './harness.ts'

/** A view flushes, and the next transaction drops the lanes of finished work. */
async function finish(store: Driver, taskId: string): Promise<void> {
  const { leaseId } = await store.pullOne({ tasks: [taskId] })
  await store.settle(leaseId)
  await store.task(taskId)
  await store.pull({ tasks: [taskId] })
}

export function openWorkTopic(harness: StoreHarness): void {
  describe('the limits of open work', () => {
    const open = storesOf(harness)
    const leases = 10

    test('a call-back of too many lanes is refused until others are finished', async () => {
      const store = await open({}, { lanes: 3, leases })
      await store.callBack('a', [one(0, 0), one(1, 0)])
      await store.callBack('b', [one(0, 0)])
      const tasks = [
        { taskId: 'a', lanes: 2 },
        { taskId: 'b', lanes: 1 },
      ]
      expect(await store.callBack('c', [one(0, 0)])).toEqual({ kind: 'too_many_lanes', most: 3, tasks })
      expect(await store.store.task('c')).toBeNull()
      // Neither duplicates nor partitions on lanes that are there need another lane.
      expect(await store.callBack('a', [one(0, 0), one(0, 1)])).toMatchObject({ accepted: 1, duplicates: 1 })
      await finish(store, 'b')
      expect(await store.callBack('c', [one(0, 0)])).toMatchObject({ kind: 'stored' })
    })

    test('each further table of a lane counts as a tenth', async () => {
      const store = await open({}, { lanes: 2, leases })
      const ofTable = (index: number) => one(0, index, { computeTableName: `table${index}` })
      await store.callBack(
        'a',
        Array.from({ length: 11 }, (_, index) => ofTable(index)),
      )
      expect(await store.callBack('a', [ofTable(11)])).toMatchObject({ kind: 'too_many_lanes' })
      expect(await store.callBack('a', [one(1, 0)])).toMatchObject({ kind: 'too_many_lanes' })
      expect(await store.callBack('a', [one(0, 11, { computeTableName: 'table3' })])).toMatchObject({
        kind: 'stored',
      })
    })

    test('a retry is refused while there are as many lanes as there may be', async () => {
      const store = await open({}, { lanes: 1, leases })
      await store.callBack('a', [one(0, 0)])
      await finish(store, 'a')
      await store.callBack('b', [one(0, 0)])
      expect(await store.retry('a', { done: true })).toMatchObject({ kind: 'too_many_lanes' })
      await finish(store, 'b')
      expect(await store.retry('a', { done: true })).toMatchObject({ changed: 1 })
    })

    test('a pull beyond the leases is empty and says why, until a lease ends', async () => {
      const store = await open({}, { lanes: 10, leases: 2 })
      await store.callBack('a', some(0, 5))
      const { partitions } = await store.pull({ batch: 5, key: 'first' })
      expect(partitions.map(nameOf)).toEqual(['a-0-0', 'a-0-1'])
      expect(await store.pull()).toMatchObject({ partitions: [], because: { code: 'too_many_leases' } })
      expect(await store.pull({ tables: ['results.orders'], key: 'second' })).toMatchObject({
        partitions: [],
        because: { code: 'too_many_leases' },
      })
      expect((await store.pull({ batch: 5, key: 'first' })).partitions).toEqual(partitions)
      await store.settle(partitions[0]?.lease?.id ?? '')
      const after = await store.pull({ batch: 5, key: 'second' })
      expect(after.partitions.map(nameOf)).toEqual(['a-0-2'])
      expect(after.because).toBeUndefined()
    })
  })
}
