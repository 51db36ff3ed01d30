import { describe, expect, test } from 'vitest'
import { nameOf, one, some } from './driver.ts'
import { type StoreHarness, storesOf, testPolicy } from './harness.ts'
import { MANY } from './lanes.ts'

export function pauseTopic(harness: StoreHarness): void {
  describe('pause and resume', () => {
    const open = storesOf(harness)

    test('a paused task hands nothing out, and its leases continue', async () => {
      const store = await open()
      await store.callBack('a', [...some(0, 2), one(1, 0)])
      const { leaseId } = await store.pullOne()
      expect(await store.control({ verb: 'pause', taskId: 'a' })).toMatchObject({
        kind: 'applied',
        state: 'paused',
        changed: 1,
      })
      expect(await store.states('a')).toEqual({ '0-0': 'leased', '0-1': 'held', '1-0': 'held' })
      expect((await store.pull()).partitions).toEqual([])
      expect(await store.settle(leaseId)).toBeNull()
    })

    test('resume hands out what was held, in its order, and reports that something became ready', async () => {
      const store = await open()
      await store.callBack('a', some(0, 3))
      await store.control({ verb: 'pause', taskId: 'a' })
      const resumed = await store.control({ verb: 'resume', taskId: 'a' })
      expect(resumed).toMatchObject({ kind: 'applied', state: 'open', changed: 1, newlyReady: 3 })
      expect((await store.pullAll(1)).map(nameOf)).toEqual(['a-0-0', 'a-0-1', 'a-0-2'])
    })

    test('a paused task is done with its last lease, and cancelled by a cancel', async () => {
      const store = await open()
      for (const taskId of ['a', 'b']) {
        await store.callBack(taskId, some(0, 1))
        const { leaseId } = await store.pullOne()
        await store.control({ verb: 'pause', taskId })
        expect(await store.state(taskId)).toBe('paused')
        if (taskId === 'a') await store.settle(leaseId)
        else await store.control({ verb: 'cancel', taskId })
      }
      expect([await store.state('a'), await store.state('b')]).toEqual(['done', 'cancelled'])
    })

    test('both are idempotent', async () => {
      const store = await open()
      await store.callBack('a', some(0, 1))
      await store.control({ verb: 'pause', taskId: 'a' })
      expect(await store.control({ verb: 'pause', taskId: 'a' })).toMatchObject({
        state: 'paused',
        changed: 0,
      })
      await store.control({ verb: 'resume', taskId: 'a' })
      expect(await store.control({ verb: 'resume', taskId: 'a' })).toMatchObject({
        state: 'open',
        changed: 0,
      })
      expect((await store.pull()).partitions).toHaveLength(1)
    })

    test('what is called back while a task is paused is held', async () => {
      const store = await open()
      await store.callBack('a', some(0, 1))
      await store.control({ verb: 'pause', taskId: 'a' })
      await store.callBack('a', [one(0, 1), one(1, 0)])
      expect(await store.states('a')).toEqual({ '0-0': 'held', '0-1': 'held', '1-0': 'held' })
      await store.control({ verb: 'resume', taskId: 'a' })
      expect((await store.pullAll(1)).map(nameOf)).toEqual(['a-0-0', 'a-0-1', 'a-1-0'])
    })

    test('a long task is paused with the first step and complete with the last, and hands out everything once', async () => {
      const store = await open()
      await store.callBack('a', [...some(0, MANY), ...some(1, MANY)])
      await store.pull({ batch: 10 })
      await store.control({ verb: 'pause', taskId: 'a' })
      expect((await store.pull({ batch: 10 })).partitions).toEqual([])
      await store.reopen()
      expect((await store.pull({ batch: 10 })).partitions).toEqual([])
      await store.control({ verb: 'resume', taskId: 'a' })
      const names = (await store.pullAll(500)).map(nameOf)
      expect(names).toHaveLength(2 * MANY - 10)
      expect(new Set(names).size).toBe(names.length)
      expect(names.slice(0, 3)).toEqual(['a-0-10', 'a-0-11', 'a-0-12'])
    })

    test('a pause during a resume, and the reverse, leave nothing stuck and nothing duplicated', async () => {
      const store = await open()
      await store.callBack('a', Array.from({ length: 40 }, (_, level) => some(level, 60)).flat())
      for (const verb of ['pause', 'resume', 'pause', 'resume'] as const)
        await store.store.control({ verb, taskId: 'a' })
      await store.control({ verb: 'resume', taskId: 'a' })
      await store.maintainAll()
      expect((await store.pullAll(500)).length).toBe(2400)
    })

    test.each([
      ['a few long levels', 31, 40, 40],
      ['a level of thousands', 99, 1, MANY],
      ['many levels', 499, 1, 1],
    ])('%s, including the largest: each request completes', async (_what, levels, each, last) => {
      const store = await open()
      const lower = Array.from({ length: levels }, (_, level) => some(level, each)).flat()
      await store.callBack('a', [...lower, ...some(Number.MAX_SAFE_INTEGER, last)])
      await store.control({ verb: 'pause', taskId: 'a' })
      expect(await store.control({ verb: 'resume', taskId: 'a' })).toMatchObject({
        state: 'open',
        more: false,
      })
      await store.maintainAll()
      const given = await store.pullAll(1000)
      expect(given).toHaveLength(levels * each + last)
      await store.settleAll(given)
      await store.retry('a', { done: true })
      await store.maintainAll()
      expect((await store.task('a')).facts).toMatchObject({ state: 'open', partitions: { done: 0 } })
      await store.control({ verb: 'cancel', taskId: 'a' })
      await store.maintainAll()
      expect((await store.task('a')).facts.partitions.cancelled).toBe(given.length)
    })

    test('a task that was paused gets no more than its share afterwards', async () => {
      const store = await open()
      await store.callBack('a', some(0, 50))
      await store.callBack('b', some(0, 50))
      await store.control({ verb: 'pause', taskId: 'a' })
      await store.pull({ batch: 30 })
      await store.control({ verb: 'resume', taskId: 'a' })
      const { partitions } = await store.pull({ batch: 20 })
      expect(partitions.filter(({ taskId }) => taskId === 'a').length).toBeLessThanOrEqual(11)
    })

    test('neither a done nor an unknown task can be paused', async () => {
      const store = await open()
      await store.callBack('a', some(0, 1))
      await store.settle((await store.pullOne()).leaseId)
      expect(await store.control({ verb: 'pause', taskId: 'a' })).toEqual({ kind: 'task_finished' })
      for (const verb of ['pause', 'resume'] as const)
        expect(await store.control({ verb, taskId: 'b' })).toEqual({ kind: 'task_unknown' })
    })

    test('leases that expire while a task is paused are held and handed out after it', async () => {
      const store = await open()
      await store.callBack('a', some(0, 1))
      await store.pullOne()
      await store.control({ verb: 'pause', taskId: 'a' })
      await store.pass(testPolicy.leaseMillis)
      await store.pass(testPolicy.backoffMillis)
      expect(await store.states('a')).toEqual({ '0-0': 'held' })
      await store.control({ verb: 'resume', taskId: 'a' })
      expect((await store.pullOne()).lease?.attempt).toBe(2)
    })
  })
}
