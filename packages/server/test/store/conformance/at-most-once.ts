import { describe, expect, test } from 'vitest'
import { batchedCallBack, batchedPull, type Driver, nameOf, one, some } from './driver.ts'
import { HOUR, type StoreHarness, storesOf, testPolicy } from './harness.ts'

export function atMostOnceTopic(harness: StoreHarness): void {
  describe('at-most-once delivery: pulling settles', () => {
    const open = storesOf(harness)

    test('a partition that is handed out is done, without a lease', async () => {
      const store = await open({ delivery: 'at-most-once' })
      await store.callBack('a', some(0, 3))
      const { partitions } = await store.pull({ batch: 2, instance: 'w' })
      expect(partitions.map(({ lease }) => lease)).toEqual([null, null])
      expect(await store.states('a')).toEqual({ '0-0': 'done', '0-1': 'done', '0-2': 'ready' })
      expect((await store.task('a')).facts).toMatchObject({ delivered: 2, finishedAt: null })
    })

    test('the last delivery finishes the task, and nothing is ever due', async () => {
      const store = await open({ delivery: 'at-most-once' })
      await store.callBack('a', some(0, 2))
      await store.pull({ batch: 5 })
      expect((await store.task('a')).facts).toMatchObject({ delivered: 2, finishedAt: store.clock.now() })
      expect(await store.sweep()).toMatchObject({ expired: 0, nextDueInMillis: null })
    })

    test('a task that is reopened and done in one batch finishes at that time', async () => {
      const store = await open({ delivery: 'at-most-once' })
      await store.callBack('a', some(0, 1))
      await store.pull()
      expect((await store.task('a')).facts).toMatchObject({ finishedAt: store.clock.now() })
      store.clock.advance(HOUR)
      await store.batch({ callBacks: [batchedCallBack('a', some(0, 2))], pulls: [batchedPull()] })
      expect((await store.task('a')).facts).toMatchObject({ generation: 2, finishedAt: store.clock.now() })
    })

    test.each([
      ['an order to the task', (store: Driver) => store.control({ verb: 'pause', taskId: 'a' })],
      ['a restart', (store: Driver) => store.reopen({ ...testPolicy, delivery: 'at-most-once' })],
    ])('nothing is handed out twice, also after %s', async (_, happens) => {
      const store = await open({ delivery: 'at-most-once' })
      await store.callBack('a', some(0, 300))
      const names: string[] = []
      for (let pulls = 0; pulls < 40; pulls += 1) names.push(...(await store.pull()).partitions.map(nameOf))
      await happens(store)
      await store.control({ verb: 'resume', taskId: 'a' })
      names.push(...(await store.pull({ batch: 500 })).partitions.map(nameOf))
      expect(names.toSorted()).toEqual([...new Set(names)].toSorted())
      expect(names).toHaveLength(300)
      expect((await store.task('a')).facts).toMatchObject({ delivered: 300 })
    })

    test('a repeated key gets nothing', async () => {
      const store = await open({ delivery: 'at-most-once' })
      await store.callBack('a', some(0, 2))
      await store.pull({ key: 'k' })
      expect(await store.pull({ key: 'k' })).toEqual({ partitions: [], repeated: true })
      expect(await store.states('a')).toEqual({ '0-0': 'done', '0-1': 'ready' })
    })

    test('the order and the budgets are the same', async () => {
      const store = await open({ delivery: 'at-most-once' })
      await store.callBack('a', [...some(0, 3), one(1, 0)])
      const { partitions } = await store.pull({ batch: 10, records: 150 })
      expect(partitions.map(({ index }) => index)).toEqual([0, 1])
    })

    test('a rerun counts each delivered partition once more', async () => {
      const store = await open({ delivery: 'at-most-once' })
      await store.callBack('a', some(0, 2))
      await store.pull({ batch: 2 })
      await store.retry('a', { done: true })
      expect((await store.task('a')).facts).toMatchObject({ delivered: 0 })
      await store.pull({ batch: 1 })
      expect((await store.task('a')).facts).toMatchObject({ delivered: 1 })
    })

    test('with a barrier from before, the delivery that finishes a level opens the next', async () => {
      const store = await open({ levelBarrier: true })
      await store.callBack('a', [one(0, 0), one(1, 0), one(2, 0), one(2, 1)])
      await store.reopen({ ...testPolicy, delivery: 'at-most-once' })
      const { partitions } = await store.pull({ batch: 5 })
      expect(partitions.map(nameOf)).toEqual(['a-0-0'])
      expect(await store.states('a')).toEqual({ '0-0': 'done', '1-0': 'ready', '2-0': 'held', '2-1': 'held' })
      const { pulls, newlyReady } = await store.batch({ pulls: [batchedPull(), batchedPull()] })
      expect(pulls.map((pull) => pull.partitions.map(nameOf))).toEqual([['a-1-0'], ['a-2-0']])
      expect(newlyReady).toBeGreaterThan(0)
      expect((await store.pull()).partitions.map(nameOf)).toEqual(['a-2-1'])
      expect(await store.state('a')).toBe('done')
    })

    test('leases from before the mode was changed can still be settled', async () => {
      const store = await open()
      await store.callBack('a', some(0, 2))
      const { leaseId } = await store.pullOne()
      await store.reopen({ ...testPolicy, delivery: 'at-most-once' })
      expect((await store.pull({ batch: 5 })).partitions).toMatchObject([{ index: 1, lease: null }])
      expect(await store.settle(leaseId)).toBeNull()
      expect((await store.task('a')).facts).toMatchObject({ delivered: 1, finishedAt: store.clock.now() })
    })
  })
}
