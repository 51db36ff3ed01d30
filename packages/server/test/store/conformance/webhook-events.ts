import { describe, expect, test } from 'vitest'
import { factsOf } from '../../../src/handoff/outbox.ts'
import { one, some } from './driver.ts'
import { DAY, type StoreHarness, storesOf } from './harness.ts'
import { ask, log, subscribe, told } from './subscriber.ts'

export function webhookEventsTopic(harness: StoreHarness): void {
  describe('webhook events', () => {
    const open = storesOf(harness)

    test('done levels and tasks have events, in this order, with the summary', async () => {
      const store = await open()
      const { id } = await subscribe(store)
      await store.callBack('a', [one(0, 0), one(0, 1), one(3, 0, { recordCount: 7 })])
      await store.settle((await store.pullOne()).leaseId, { outcome: 'failed' })
      await store.pass(DAY)
      for (let at = 0; at < 3; at += 1) {
        store.clock.advance(1000)
        await store.settle((await store.pullOne()).leaseId, { records: 99 })
      }
      expect(await told(store, id)).toEqual(['level.done a 0', 'level.done a 3', 'task.done a'])
      const done = (await log(store, id)).at(-1)
      expect(done && factsOf(done.message)).toEqual({
        of: 'task',
        partitions: { total: 3, done: 3, parked: 0 },
        records: { declared: 207, done: 207 },
        reportedRecords: 297,
        reportedDeclared: 207,
        mismatched: 3,
        attempts: 4,
        firstCallBackAt: store.clock.now() - DAY - 3000,
        endedAt: store.clock.now(),
        because: null,
      })
      expect(done).toMatchObject({ taskId: 'a', at: store.clock.now(), progress: null })
    })

    test('a parked partition and the task that it stalls have events', async () => {
      const store = await open()
      const { id } = await subscribe(store)
      await store.callBack('a', [one(2, 0, { spelling: 'a-2-00' })])
      const { leaseId } = await store.pullOne()
      await store.settle(leaseId, { outcome: 'failed', final: true, reason: 'no such table' })
      expect(await told(store, id)).toEqual(['partition.parked a 2-0', 'task.stalled a'])
      expect((await log(store, id))[0]?.message).toMatchObject({
        generation: 1,
        facts: {
          of: 'partition',
          level: 2,
          index: 0,
          spelling: 'a-2-00',
          recordCount: 100,
          attempts: 1,
          reason: 'no such table',
        },
      })
      await store.retry('a')
      await store.settle((await store.pullOne()).leaseId)
      expect((await told(store, id)).slice(2)).toEqual(['level.done a 2', 'task.done a'])
    })

    test('a lease that expires too often parks its partition, which has an event', async () => {
      const store = await open({ maxAttempts: 1 })
      const { id } = await subscribe(store)
      await store.callBack('a', some(0, 1))
      const { leaseId } = await store.pullOne()
      await store.pass(DAY)
      expect(await told(store, id)).toEqual(['partition.parked a 0-0', 'task.stalled a'])
      // It is parked already.
      expect(await store.settle(leaseId, { outcome: 'failed', final: true })).toBeNull()
      expect(await told(store, id)).toHaveLength(2)
    })

    test('a cancelled task has one event', async () => {
      const store = await open()
      const { id } = await subscribe(store)
      await store.callBack('a', some(0, 2))
      await store.control({ verb: 'cancel', taskId: 'a' })
      await store.control({ verb: 'cancel', taskId: 'a' })
      expect(await told(store, id)).toEqual(['task.cancelled a'])
    })

    test('a task that is done again has another event, with its new generation', async () => {
      const store = await open()
      const { id } = await subscribe(store, { types: ['task.done'] })
      await store.callBack('a', some(0, 1))
      await store.settle((await store.pullOne()).leaseId)
      await store.callBack('a', some(0, 1, {}, 1))
      await store.settle((await store.pullOne()).leaseId)
      await store.retry('a', { done: true })
      await store.maintainAll()
      for (let at = 0; at < 2; at += 1) await store.settle((await store.pullOne()).leaseId)
      const generations = (await log(store, id)).map(({ message }) => message.generation)
      expect(generations).toEqual([1, 2, 3])
    })

    // A step of a rerun resets up to 500 partitions.
    test.each([
      ['with more to reset', [600], [], ['level.done a 0', 'task.done a']],
      ['without', [500], [], ['level.done a 0', 'task.done a']],
      ['of a higher level', [1, 600], ['level.done a 0'], ['level.done a 1', 'task.done a']],
    ])(
      'a level has one event when a rerun has passed it and it is done again: a step %s',
      async (_, sizes, early, late) => {
        const store = await open()
        const finish = async () => {
          const { partitions } = await store.pull({ batch: 1000 })
          await store.settleAll(partitions)
        }
        await store.callBack(
          'a',
          sizes.flatMap((size, level) => some(level, size)),
        )
        await finish()
        const { id } = await subscribe(store)
        await store.retry('a', { done: true })
        await finish()
        expect(await told(store, id)).toEqual(early)
        await store.reopen()
        await store.maintainAll()
        await finish()
        expect(await told(store, id)).toEqual([...early, ...late])
      },
    )

    test('in at-most-once delivery, a task that is done, reopened and done again has an event each time', async () => {
      const store = await open({ delivery: 'at-most-once' })
      const { id } = await subscribe(store)
      await store.callBack('a', some(0, 1))
      await store.pull()
      expect(await told(store, id)).toEqual(['level.done a 0', 'task.done a'])
      await store.callBack('a', some(0, 1, {}, 1))
      await store.pull()
      expect(await told(store, id)).toHaveLength(4)
    })

    test('a subscription gets only its types of events, and only of its tasks', async () => {
      const store = await open()
      const everything = await subscribe(store)
      const some1 = await subscribe(store, { types: ['task.done'], taskPrefix: 'orders-' })
      const feed = await subscribe(store, { types: ['task.done'], url: null })
      for (const task of ['orders-1', 'other']) {
        await store.callBack(task, some(0, 1))
        await store.settle((await store.pullOne()).leaseId)
      }
      expect(await told(store, everything.id)).toHaveLength(4)
      expect(await told(store, some1.id)).toEqual(['task.done orders-1'])
      const kept = await log(store, feed.id)
      expect(kept.map(({ taskId, progress }) => [taskId, progress?.state])).toEqual([
        ['orders-1', 'kept'],
        ['other', 'kept'],
      ])
      // The same event for all of them.
      const [first] = await log(store, some1.id)
      expect(first?.message.id).toBe(kept[0]?.message.id)
      expect(first?.event).toBe(kept[0]?.event)
    })

    test('a subscription gets no past events', async () => {
      const store = await open()
      await store.callBack('a', [...some(0, 1), ...some(1, 1)])
      await store.settle((await store.pullOne()).leaseId)
      const { id } = await subscribe(store)
      expect(await told(store, id)).toEqual([])
      await store.settle((await store.pullOne()).leaseId)
      expect(await told(store, id)).toEqual(['level.done a 1', 'task.done a'])
      await store.control({ verb: 'seal', taskId: 'a', expectedPartitions: null })
      expect(await told(store, id)).toHaveLength(2)
    })

    test('a subscription gets no events of tasks that ended before it existed', async () => {
      const store = await open()
      for (const task of ['a', 'b']) {
        await store.callBack(task, some(0, 1))
        await store.settle((await store.pullOne()).leaseId)
        const { id } = await subscribe(store)
        await store.control({ verb: 'seal', taskId: task, expectedPartitions: null })
        expect(await told(store, id)).toEqual([])
        await ask(store, { ask: 'remove', id, mayBeOfFile: false }, 'subscription')
        await store.maintainAll()
      }
    })
  })
}
