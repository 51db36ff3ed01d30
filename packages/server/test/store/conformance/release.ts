import { describe, expect, test } from 'vitest'
import { type Driver, nameOf, one, some } from './driver.ts'
import { MINUTE, type StoreHarness, storesOf, testPolicy } from './harness.ts'

const release = async (store: Driver) => {
  const { leaseId } = await store.pullOne()
  await store.settle(leaseId, { outcome: 'released' })
  return store.partition('a', 0, 0)
}

export function releaseTopic(harness: StoreHarness): void {
  describe('release and back-off', () => {
    const open = storesOf(harness)

    test('a released partition is ready at once, without using an attempt', async () => {
      const store = await open()
      await store.callBack('a', some(0, 1))
      expect(await release(store)).toMatchObject({ state: 'ready', attempts: 0 })
      expect((await store.pullOne()).lease?.attempt).toBe(1)
      expect((await store.task('a')).facts.attemptsWasted).toBe(0)
    })

    test('a released partition returns to its place in the order', async () => {
      const store = await open()
      await store.callBack('a', some(0, 4))
      const first = await store.pullOne()
      await store.pullOne()
      await store.settle(first.leaseId, { outcome: 'released' })
      expect((await store.pullAll(1)).map(({ index }) => index)).toEqual([0, 2, 3])
    })

    test('from the third release in a row on the back-off applies, and doubles', async () => {
      const store = await open()
      await store.callBack('a', some(0, 1))
      expect(await release(store)).toMatchObject({ state: 'ready' })
      expect(await release(store)).toMatchObject({ state: 'ready' })
      for (const doubled of [1, 2, 4]) {
        const full = doubled * testPolicy.backoffMillis
        const { state, dueAt } = await release(store)
        const wait = (dueAt ?? 0) - store.clock.now()
        expect(state).toBe('delayed')
        expect(wait).toBeGreaterThanOrEqual(full / 2)
        expect(wait).toBeLessThanOrEqual(full)
        await store.pass(full)
      }
    })

    test('a failure in between resets the count of releases', async () => {
      const store = await open()
      await store.callBack('a', some(0, 1))
      await release(store)
      await release(store)
      await store.settle((await store.pullOne()).leaseId, { outcome: 'failed', retryAfterMillis: 0 })
      await store.sweep()
      expect(await release(store)).toMatchObject({ state: 'ready' })
      expect(await release(store)).toMatchObject({ state: 'ready' })
      expect(await release(store)).toMatchObject({ state: 'delayed', attempts: 1 })
    })

    test('a worker may set the delay of a released partition', async () => {
      const store = await open()
      await store.callBack('a', some(0, 2))
      const { leaseId } = await store.pullOne()
      await store.settle(leaseId, { outcome: 'released', retryAfterMillis: 3 * MINUTE, reason: 'busy' })
      expect(await store.partition('a', 0, 0)).toMatchObject({ state: 'delayed', reason: 'busy' })
      await store.pass(3 * MINUTE)
      // It waited without a failure, so it keeps its place in the order.
      expect((await store.pullAll(1)).map(({ index }) => index)).toEqual([0, 1])
    })

    test('the back-off of failures doubles, is spread over its upper half, and is bounded', async () => {
      const store = await open({ maxAttempts: 10 })
      await store.callBack('a', some(0, 1))
      for (const minutes of [2, 4, 8, 16, 20, 20]) {
        await store.settle((await store.pullOne()).leaseId, { outcome: 'failed' })
        const { dueAt } = await store.partition('a', 0, 0)
        const wait = (dueAt ?? 0) - store.clock.now()
        expect(wait).toBeGreaterThanOrEqual((minutes * MINUTE) / 2)
        expect(wait).toBeLessThanOrEqual(minutes * MINUTE)
        await store.pass(20 * MINUTE)
      }
    })

    test('a failed partition is retried before the rest of a long task, not after it', async () => {
      const store = await open()
      await store.callBack('a', some(0, 100))
      await store.settle((await store.pullOne()).leaseId, { outcome: 'failed', retryAfterMillis: 0 })
      await store.sweep()
      const { partitions } = await store.pull({ batch: 3 })
      expect(partitions.map(nameOf)).toContain('a-0-0')
    })

    test('a partition released in a closed lane is held, and handed out once the lane opens', async () => {
      const store = await open()
      await store.callBack('a', [one(0, 0), one(0, 1)])
      const { leaseId } = await store.pullOne()
      await store.control({ verb: 'pause', taskId: 'a' })
      await store.settle(leaseId, { outcome: 'released' })
      expect(await store.states('a')).toEqual({ '0-0': 'held', '0-1': 'held' })
      expect((await store.pull()).partitions).toEqual([])
      await store.control({ verb: 'resume', taskId: 'a' })
      expect((await store.pullAll(1)).map(nameOf)).toEqual(['a-0-0', 'a-0-1'])
    })
  })
}
