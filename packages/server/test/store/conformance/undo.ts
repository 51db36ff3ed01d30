import { describe, expect, test } from 'vitest'
import { batchedPull, leaseOf, nameOf, some } from './driver.ts'
import { type StoreHarness, storesOf, testPolicy } from './harness.ts'

export function undoTopic(harness: StoreHarness): void {
  describe('undo: the lease of a pull whose answer was not received', () => {
    const open = storesOf(harness)

    test('the partition is ready again in its place, as if it had never been handed out', async () => {
      const store = await open()
      await store.callBack('a', some(0, 3))
      const { leaseId } = await store.pullOne()
      expect(await store.undo(leaseId)).toBe(1)
      expect(await store.partition('a', 0, 0)).toMatchObject({ state: 'ready', attempts: 0 })
      expect((await store.pullAll(1)).map(({ index }) => index)).toEqual([0, 1, 2])
      expect((await store.task('a')).facts.attemptsWasted).toBe(0)
    })

    test('an undo is not a release: any number in a row causes no back-off', async () => {
      const store = await open()
      await store.callBack('a', some(0, 1))
      for (let times = 0; times < 6; times += 1)
        expect(await store.undo((await store.pullOne()).leaseId)).toBe(1)
      expect(await store.states('a')).toEqual({ '0-0': 'ready' })
    })

    test('a lease that has ended, was settled or has a successor is not changed', async () => {
      const store = await open()
      await store.callBack('a', some(0, 3))
      const settled = await store.pullOne()
      await store.settle(settled.leaseId)
      const undone = await store.pullOne()
      await store.undo(undone.leaseId)
      expect(await store.undo(settled.leaseId, undone.leaseId)).toBe(0)
      const followed = await store.pullOne()
      expect(nameOf(followed)).toBe('a-0-1')
      expect(await store.undo(undone.leaseId)).toBe(0)
      await store.pullOne()
      await store.pass(testPolicy.leaseMillis)
      expect(await store.undo(followed.leaseId)).toBe(0)
      expect(await store.states('a')).toEqual({ '0-0': 'done', '0-1': 'delayed', '0-2': 'delayed' })
    })

    test('an undone lease can no longer be used', async () => {
      const store = await open()
      await store.callBack('a', some(0, 1))
      const { leaseId } = await store.pullOne()
      await store.undo(leaseId)
      expect(await store.settle(leaseId)).toBe('lease_settled')
      expect(await store.renew(leaseId)).toEqual([{ refused: 'lease_settled' }])
    })

    test('within a batch it comes before the pulls, and reports that something became ready', async () => {
      const store = await open()
      await store.callBack('a', some(0, 1))
      const { leaseId } = await store.pullOne()
      const answers = await store.batch({ undos: [leaseOf(leaseId)], pulls: [batchedPull()] })
      expect(answers.undone).toBe(1)
      expect(answers.newlyReady).toBeGreaterThanOrEqual(1)
      expect(answers.pulls[0]?.partitions).toHaveLength(1)
    })

    test('in a paused task the partition is held, and nothing is reported as ready', async () => {
      const store = await open()
      await store.callBack('a', some(0, 1))
      const { leaseId } = await store.pullOne()
      await store.control({ verb: 'pause', taskId: 'a' })
      expect(await store.batch({ undos: [leaseOf(leaseId)] })).toMatchObject({ undone: 1, newlyReady: 0 })
      expect(await store.states('a')).toEqual({ '0-0': 'held' })
    })

    test('in a cancelled task there is nothing to undo', async () => {
      const store = await open()
      await store.callBack('a', some(0, 1))
      const { leaseId } = await store.pullOne()
      await store.control({ verb: 'cancel', taskId: 'a' })
      expect(await store.undo(leaseId)).toBe(0)
      expect(await store.states('a')).toEqual({ '0-0': 'cancelled' })
    })
  })
}
