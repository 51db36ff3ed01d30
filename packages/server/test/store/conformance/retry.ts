import { describe, expect, test } from 'vitest'
import { type Driver, nameOf, one, some } from './driver.ts'
import { type StoreHarness, storesOf, testPolicy } from './harness.ts'
import { MANY, pullLevels } from './lanes.ts'

/** Hands everything out and parks it. */
async function parkAll(store: Driver): Promise<string[]> {
  const handed = await store.pullAll(500)
  for (const { lease } of handed)
    await store.settle(lease?.id ?? '', { outcome: 'failed', final: true, reason: 'no luck' })
  return handed.map(({ lease }) => lease?.id ?? '')
}

export function retryTopic(harness: StoreHarness): void {
  describe('retry: parked partitions', () => {
    const open = storesOf(harness)

    test('all parked partitions of a task start again without attempts, in the order of the call-backs', async () => {
      const store = await open()
      await store.callBack('a', [...some(0, 2), one(1, 0)])
      await parkAll(store)
      expect((await store.task('a')).facts.partitions.parked).toBe(3)
      expect(await store.retry('a')).toMatchObject({
        kind: 'applied',
        state: 'open',
        changed: 3,
        newlyReady: 3,
      })
      const handed = await store.pullAll(1)
      expect(handed.map(nameOf)).toEqual(['a-0-0', 'a-0-1', 'a-1-0'])
      expect(handed.map(({ lease }) => lease?.attempt)).toEqual([1, 1, 1])
    })

    test('one level or named partitions can be retried, and only those', async () => {
      const store = await open()
      await store.callBack('a', [...some(0, 3), ...some(1, 3)])
      await parkAll(store)
      expect(await store.retry('a', { level: 1 })).toMatchObject({ changed: 3 })
      expect(await store.retry('a', { partitions: [{ level: 0, index: 2 }] })).toMatchObject({ changed: 1 })
      expect((await store.pullAll(1)).map(nameOf)).toEqual(['a-0-2', 'a-1-0', 'a-1-1', 'a-1-2'])
      expect((await store.task('a')).facts.partitions.parked).toBe(2)
    })

    test('a retry of a level that the task does not have is refused', async () => {
      const store = await open()
      await store.callBack('a', [one(0, 0), one(2, 0)])
      expect(await store.retry('a', { level: 1 })).toEqual({ kind: 'level_unknown' })
      expect(await store.retry('a', { level: 1, done: true })).toEqual({ kind: 'level_unknown' })
      expect(await store.retry('a', { level: 2 })).toMatchObject({ kind: 'applied', changed: 0 })
    })

    test('a partition that is named twice moves once, whether it was parked or done', async () => {
      const store = await open()
      await store.callBack('a', some(0, 2))
      const { leaseId } = await store.pullOne()
      await store.settle(leaseId)
      await parkAll(store)
      const partitions = [0, 1, 0, 1].map((index) => ({ level: 0, index }))
      expect(await store.retry('a', { partitions, done: true })).toMatchObject({ changed: 2, newlyReady: 2 })
      expect((await store.task('a')).facts.partitions).toMatchObject({ ready: 2, parked: 0, done: 0 })
    })

    test('names that are not known are reported by position, and nothing is retried', async () => {
      const store = await open()
      await store.callBack('a', some(0, 2))
      await parkAll(store)
      const partitions = [
        { level: 0, index: 0 },
        { level: 0, index: 9 },
        { level: 4, index: 0 },
      ]
      expect(await store.retry('a', { partitions })).toEqual({
        kind: 'partitions_unknown',
        positions: [1, 2],
      })
      expect((await store.task('a')).facts.partitions.parked).toBe(2)
    })

    test('a retry changes nothing if nothing is parked, and an unknown task is refused', async () => {
      const store = await open()
      await store.callBack('a', some(0, 2))
      expect(await store.retry('a')).toMatchObject({ kind: 'applied', changed: 0 })
      expect(await store.retry('b')).toEqual({ kind: 'task_unknown' })
      await store.settle((await store.pullOne()).leaseId)
      expect(await store.retry('a', { partitions: [{ level: 0, index: 0 }] })).toMatchObject({ changed: 0 })
      expect(await store.states('a')).toEqual({ '0-0': 'done', '0-1': 'ready' })
    })

    test('partitions retried in a paused task are held until it is resumed', async () => {
      const store = await open()
      await store.callBack('a', some(0, 2))
      await parkAll(store)
      await store.control({ verb: 'pause', taskId: 'a' })
      await store.retry('a')
      expect(await store.states('a')).toEqual({ '0-0': 'held', '0-1': 'held' })
      await store.control({ verb: 'resume', taskId: 'a' })
      expect(await store.pullAll(1)).toHaveLength(2)
    })

    test('a late settle as done by the last lease still counts, until there is a newer lease', async () => {
      const store = await open({ maxAttempts: 1 })
      await store.callBack('a', some(0, 2))
      const [first, second] = [await store.pullOne(), await store.pullOne()]
      await store.pass(testPolicy.leaseMillis)
      await store.retry('a')
      expect(await store.settle(first.leaseId)).toBeNull()
      await store.pullOne()
      expect(await store.settle(second.leaseId)).toBe('lease_lost')
    })

    test.each([700, 2000])(
      'partitions that are retried after %i others go before a higher level',
      async (count) => {
        const store = await open()
        await store.callBack('a', [...some(0, count), ...some(1, 500)])
        const { leaseId } = await store.pullOne()
        await store.settle(leaseId, { outcome: 'failed', final: true })
        await store.retry('a', { partitions: [{ level: 0, index: 0 }] })
        expect(await pullLevels(store, count)).toEqual([0])
      },
    )

    test('partitions that are called back after a retry also go before a higher level', async () => {
      const store = await open()
      await store.callBack('a', [...some(0, 700), ...some(1, 500)])
      const { leaseId } = await store.pullOne()
      await store.settle(leaseId, { outcome: 'failed', final: true })
      await store.retry('a')
      await store.callBack('a', some(0, MANY, {}, 700))
      expect(await pullLevels(store, 700 + MANY)).toEqual([0])
    })

    test('thousands of partitions are retried in steps', async () => {
      const store = await open({ maxAttempts: 1 })
      await store.callBack('a', some(0, MANY))
      await store.pullAll(1000)
      await store.pass(testPolicy.leaseMillis)
      expect((await store.task('a')).facts.partitions.parked).toBe(MANY)
      expect(await store.retry('a')).toMatchObject({ changed: MANY })
      expect(await store.pullAll(1000)).toHaveLength(MANY)
    })
  })
}
