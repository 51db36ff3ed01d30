import { describe, expect, test } from 'vitest'
import { totalOf } from '../../../src/handoff/rules/task.ts'
import { leaseOf, one, some } from './driver.ts'
import { DAY, HOUR, type StoreHarness, storesOf, testPolicy } from './harness.ts'
import { MANY } from './lanes.ts'

export function cancelTopic(harness: StoreHarness): void {
  describe('cancel', () => {
    const open = storesOf(harness)

    test('everything that is not done becomes cancelled, at once in every view', async () => {
      const store = await open()
      await store.callBack('a', some(0, 5))
      await store.settle((await store.pullOne()).leaseId)
      await store.settle((await store.pullOne()).leaseId, { outcome: 'failed' })
      await store.settle((await store.pullOne()).leaseId, { outcome: 'failed', final: true })
      await store.pullOne()
      expect(await store.control({ verb: 'cancel', taskId: 'a' })).toMatchObject({
        kind: 'applied',
        state: 'cancelled',
        changed: 4,
      })
      expect(Object.values(await store.states('a'))).toEqual([
        'done',
        'cancelled',
        'cancelled',
        'cancelled',
        'cancelled',
      ])
      expect((await store.pull()).partitions).toEqual([])
    })

    test('the leases of the task are lost: settle and renew return the reason', async () => {
      const store = await open()
      await store.callBack('a', some(0, 1))
      const { leaseId } = await store.pullOne()
      await store.control({ verb: 'cancel', taskId: 'a' })
      for (const outcome of ['done', 'failed', 'released'] as const)
        expect(await store.settle(leaseId, { outcome })).toBe('task_cancelled')
      expect(await store.renew(leaseId)).toEqual([{ refused: 'task_cancelled' }])
    })

    test('a lease that was settled before stays settled', async () => {
      const store = await open()
      await store.callBack('a', some(0, 2))
      const { leaseId } = await store.pullOne()
      await store.settle(leaseId)
      await store.control({ verb: 'cancel', taskId: 'a' })
      expect(await store.settle(leaseId)).toBeNull()
      expect(await store.settle(leaseId, { outcome: 'failed' })).toBe('lease_settled')
    })

    test('when leases and back-offs have ended, nothing of the task is left unfinished', async () => {
      const store = await open()
      await store.callBack('a', some(0, 4))
      await store.settle((await store.pullOne()).leaseId, { outcome: 'failed' })
      const { leaseId } = await store.pullOne()
      await store.settle(leaseId, { outcome: 'released', retryAfterMillis: HOUR })
      await store.pullOne()
      await store.control({ verb: 'cancel', taskId: 'a' })
      await store.pass(DAY)
      await store.maintainAll()
      const { facts } = await store.task('a')
      expect(facts.partitions).toMatchObject({ cancelled: 4 })
      expect(totalOf(facts.partitions)).toBe(4)
      expect(facts.attemptsWasted).toBe(1)
      expect((await store.pull()).partitions).toEqual([])
      expect(await store.settle(leaseId, { outcome: 'done' })).not.toBeNull()
    })

    test('a task ends when it is cancelled, not when its work was last counted', async () => {
      const store = await open()
      await store.callBack('a', [one(0, 0), one(0, 1)])
      const { leaseId } = await store.pullOne()
      await store.settle(leaseId)
      store.clock.advance(5000)
      await store.control({ verb: 'cancel', taskId: 'a' })
      expect((await store.task('a')).facts.finishedAt).toBe(store.clock.now())
    })

    test('an expired lease of a task cancelled since answers that it is cancelled', async () => {
      const store = await open()
      await store.callBack('a', some(0, 1))
      const { leaseId } = await store.pullOne()
      await store.pass(testPolicy.leaseMillis)
      await store.control({ verb: 'cancel', taskId: 'a' })
      expect(await store.settle(leaseId)).toBe('task_cancelled')
      expect(await store.renew(leaseId)).toEqual([{ refused: 'task_cancelled' }])
    })

    test('a second cancel changes nothing; new partitions are refused, known ones are duplicates', async () => {
      const store = await open()
      await store.callBack('a', some(0, 2))
      await store.control({ verb: 'cancel', taskId: 'a' })
      expect(await store.control({ verb: 'cancel', taskId: 'a' })).toMatchObject({
        kind: 'applied',
        changed: 0,
      })
      expect(await store.callBack('a', [one(0, 0), one(0, 2)])).toEqual({ kind: 'task_cancelled' })
      expect(await store.callBack('a', some(0, 2))).toMatchObject({ kind: 'stored', duplicates: 2 })
      for (const verb of ['pause', 'resume', 'skip-parked'] as const)
        expect(await store.control({ verb, taskId: 'a' })).toEqual({ kind: 'task_cancelled' })
      expect(await store.retry('a', { done: true })).toEqual({ kind: 'task_cancelled' })
    })

    test('a finished or unknown task cannot be cancelled', async () => {
      const store = await open()
      await store.callBack('a', some(0, 1))
      await store.settle((await store.pullOne()).leaseId)
      expect(await store.control({ verb: 'cancel', taskId: 'a' })).toEqual({ kind: 'task_finished' })
      expect(await store.control({ verb: 'cancel', taskId: 'b' })).toEqual({ kind: 'task_unknown' })
    })

    test('a long task is cancelled at once, also after a restart', async () => {
      const store = await open()
      await store.callBack('a', [...some(0, MANY), ...some(1, MANY)])
      const { leaseId } = await store.pullOne()
      expect(await store.store.control({ verb: 'cancel', taskId: 'a' })).toMatchObject({
        changed: 2 * MANY,
        more: false,
      })
      expect((await store.pull({ batch: 100 })).partitions).toEqual([])
      expect(await store.settle(leaseId)).toBe('task_cancelled')
      await store.reopen()
      await store.maintainAll()
      await store.pass(testPolicy.leaseMillis)
      expect((await store.task('a')).facts.partitions).toMatchObject({ cancelled: 2 * MANY })
    })

    test('a pull and a settle in the next batch see the cancel', async () => {
      const store = await open()
      await store.callBack('a', some(0, 2))
      const { leaseId } = await store.pullOne()
      await store.control({ verb: 'cancel', taskId: 'a' })
      const { renews, undone } = await store.batch({
        renews: [{ leases: [leaseOf(leaseId)] }],
        undos: [leaseOf(leaseId)],
      })
      expect(renews).toEqual([[{ refused: 'task_cancelled' }]])
      expect(undone).toBe(0)
    })
  })
}
