import { type WebhookEventType, webhookEventTypes } from '@baton/protocol'
import { describe, expect, test } from 'vitest'
import {
  type DefinedSubscription,
  type DeliveryAnswer,
  type DeliveryRequest,
  factsOf,
  notAttempted,
  progressOf,
  type StoredDelivery,
  type StoredSubscription,
  type SubscriptionRequest,
  type SubscriptionResult,
} from '../../../src/handoff/outbox.ts'
import { type Driver, one, some } from './driver.ts'
import { DAY, type StoreHarness, storesOf } from './harness.ts'

async function ask<Kind extends SubscriptionResult['kind']>(
  store: Driver,
  request: SubscriptionRequest,
  kind: Kind,
): Promise<Extract<SubscriptionResult, { kind: Kind }>> {
  const result = await store.store.subscriptions(request)
  expect(result.kind).toBe(kind)
  return result as Extract<SubscriptionResult, { kind: Kind }>
}

async function subscribe(
  store: Driver,
  changes: { types?: readonly WebhookEventType[]; taskPrefix?: string; url?: string | null } = {},
): Promise<StoredSubscription> {
  const order = { types: webhookEventTypes, taskPrefix: '', url: 'http://a.example/', secret: 'whsec_1' }
  return (await ask(store, { ask: 'create', ...order, ...changes }, 'subscription')).subscription
}

async function log(store: Driver, id: string, after = 0, limit = 1000): Promise<readonly StoredDelivery[]> {
  const order = { ask: 'deliveries' as const, id, after, newestFirst: false, limit }
  return (await ask(store, order, 'deliveries')).deliveries
}

/** The events, as `<type> <task> <level or partition>`. */
async function told(store: Driver, id: string): Promise<string[]> {
  return (await log(store, id)).map(({ message, taskId }) => {
    const facts = factsOf(message)
    const place =
      facts.of === 'partition' ? `${facts.level}-${facts.index}` : facts.of === 'level' ? facts.level : ''
    return `${message.type} ${taskId} ${place}`.trim()
  })
}

async function deliver(store: Driver, request: DeliveryRequest): Promise<DeliveryAnswer> {
  const answer = await store.store.deliver(request)
  if (answer === null) throw new Error('this store does not deliver')
  return answer
}

const pending = (subscription: string, taskId: string | null = null, after = 0) => ({
  ask: 'pending' as const,
  subscription,
  ofTask: taskId === null ? null : { taskId, upTo: Number.MAX_SAFE_INTEGER },
  after,
  limit: 100,
})

const stored = ({ secret, ...defined }: DefinedSubscription) => ({
  ...defined,
  secrets: [{ secret, until: null }],
})

const targets = { ask: 'targets' as const, openCircuits: new Map<string, number>() }

export function outboxTopic(harness: StoreHarness): void {
  describe('outbox', () => {
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

    test('everything is kept after a restart, and no event is duplicated', async () => {
      const store = await open()
      const { id } = await subscribe(store)
      await store.callBack('a', some(0, 1))
      await store.callBack('b', some(0, 2))
      await store.settle((await store.pullOne()).leaseId)
      const before = await log(store, id)
      await store.reopen()
      expect(await log(store, id)).toEqual(before)
      await store.control({ verb: 'pause', taskId: 'a' })
      await store.control({ verb: 'resume', taskId: 'b' })
      for (let at = 0; at < 2; at += 1) await store.settle((await store.pullOne()).leaseId)
      expect(await told(store, id)).toEqual([
        'level.done a 0',
        'task.done a',
        'level.done b 0',
        'task.done b',
      ])
      const events = (await log(store, id)).map(({ event }) => event)
      expect(events).toEqual(events.toSorted((a, b) => a - b))
      expect(new Set(events).size).toBe(4)
    })

    test('pending deliveries are returned in order; delivered ones are no longer pending', async () => {
      const store = await open()
      const { id } = await subscribe(store, { types: ['level.done'] })
      await store.callBack('a', [one(0, 0), one(1, 0), one(2, 0)])
      for (let at = 0; at < 3; at += 1) await store.settle((await store.pullOne()).leaseId)
      const { deliveries, subscriptions } = await deliver(store, pending(id))
      expect(subscriptions.map((found) => found.id)).toEqual([id])
      expect(
        deliveries.map(({ message }) => factsOf(message)).map((facts) => facts.of === 'level' && facts.level),
      ).toEqual([0, 1, 2])
      const [first] = deliveries
      if (first === undefined) throw new Error('nothing is pending')
      const progress = { ...progressOf(first), state: 'delivered' as const, attempts: 1, status: 200 }
      const changes = [{ subscription: id, event: first.event, progress }]
      await deliver(store, { ask: 'record', changes, disable: [] })
      expect((await deliver(store, pending(id, 'a'))).deliveries).toEqual(deliveries.slice(1))
      expect((await deliver(store, pending(id, 'b'))).deliveries).toEqual([])
      await store.reopen()
      expect((await deliver(store, pending(id))).deliveries).toEqual(deliveries.slice(1))
      expect((await log(store, id))[0]?.progress).toEqual(progress)
      // Again from the start, as if it had never been sent.
      const again = await ask(store, { ask: 'redeliver', id, event: first.event }, 'delivery')
      expect(again.delivery.progress).toMatchObject({ state: 'pending', attempts: 0, status: 200 })
      expect((await deliver(store, pending(id))).deliveries).toHaveLength(3)
    })

    test('the list shows what is pending, since when, and which receivers are paused', async () => {
      const store = await open()
      const { id } = await subscribe(store, { types: ['task.cancelled'] })
      const other = await subscribe(store, { types: ['task.cancelled'], taskPrefix: 'b' })
      const begun = store.clock.now()
      for (const task of ['a', 'b']) {
        await store.callBack(task, some(0, 1))
        await store.control({ verb: 'cancel', taskId: task })
        store.clock.advance(1000)
      }
      await deliver(store, { ask: 'targets', openCircuits: new Map([[id, 7]]) })
      const statuses = async () =>
        new Map(
          (await ask(store, { ask: 'list' }, 'subscriptions')).subscriptions.map(
            ({ subscription, ...status }) => [subscription.id, status],
          ),
        )
      expect(await statuses()).toEqual(
        new Map([
          [id, { backlog: { pending: 2, oldestAt: begun }, circuitOpenUntil: 7 }],
          [other.id, { backlog: { pending: 1, oldestAt: begun + 1000 }, circuitOpenUntil: null }],
        ]),
      )
      const { deliveries } = await deliver(store, pending(id))
      const progress = { ...notAttempted('pending', 0), state: 'delivered' as const }
      const changes = deliveries.map(({ event }) => ({ subscription: id, event, progress }))
      await deliver(store, { ask: 'record', changes, disable: [] })
      await deliver(store, targets)
      expect((await statuses()).get(id)).toEqual({
        backlog: { pending: 0, oldestAt: null },
        circuitOpenUntil: null,
      })
    })

    test('a disabled subscription gets no events until it is enabled', async () => {
      const store = await open()
      const { id } = await subscribe(store, { types: ['task.cancelled'] })
      await deliver(store, { ask: 'record', changes: [], disable: [{ id, reason: 'answered 410' }] })
      await store.callBack('a', some(0, 1))
      await store.control({ verb: 'cancel', taskId: 'a' })
      const { subscriptions } = await ask(store, { ask: 'list' }, 'subscriptions')
      expect(subscriptions).toMatchObject([
        { subscription: { id, state: 'disabled', reason: 'answered 410' } },
      ])
      await ask(store, { ask: 'enable', id }, 'subscription')
      await store.callBack('b', some(0, 1))
      await store.control({ verb: 'cancel', taskId: 'b' })
      expect(await told(store, id)).toEqual(['task.cancelled b'])
    })

    test('a new secret signs together with the previous one for a while', async () => {
      const store = await open()
      const { id } = await subscribe(store)
      const rotate = {
        ask: 'rotate' as const,
        id,
        secret: 'whsec_2',
        overlapMillis: DAY,
        mayBeOfFile: false,
      }
      const { subscription } = await ask(store, rotate, 'subscription')
      expect(subscription.secrets).toEqual([
        { secret: 'whsec_2', until: null },
        { secret: 'whsec_1', until: store.clock.now() + DAY },
      ])
    })

    test('subscriptions of the file are created, changed and removed only with it', async () => {
      const store = await open()
      const own = await subscribe(store)
      const one = {
        name: 'pipeline',
        url: 'http://b.example/',
        types: ['task.cancelled' as const],
        taskPrefix: '',
        secret: 'whsec_1',
      }
      const define = async (...subscriptions: DefinedSubscription[]) =>
        (await deliver(store, { ask: 'define', subscriptions })).subscriptions.filter(
          ({ id }) => id !== own.id,
        )
      const [made] = await define(one)
      expect(made).toMatchObject({ ...stored(one), state: 'active' })
      const id = made?.id ?? ''
      await store.callBack('a', some(0, 1))
      await store.control({ verb: 'cancel', taskId: 'a' })
      await store.reopen()
      expect(await define(one)).toEqual([made])
      for (const order of [
        { ask: 'remove' as const, id, mayBeOfFile: false },
        { ask: 'rotate' as const, id, secret: 'whsec_3', overlapMillis: 0, mayBeOfFile: false },
      ])
        expect(await ask(store, order, 'subscription_in_file')).toMatchObject({ name: 'pipeline' })
      await deliver(store, { ask: 'record', changes: [], disable: [{ id, reason: 'answered 410' }] })
      const prefixed = { ...one, taskPrefix: 'x', secret: 'whsec_2' }
      expect(await define(prefixed)).toEqual([
        {
          ...made,
          taskPrefix: 'x',
          state: 'disabled',
          reason: 'answered 410',
          secrets: [
            { secret: 'whsec_2', until: null },
            { secret: 'whsec_1', until: store.clock.now() + DAY },
          ],
        },
      ])
      // Another receiver is tried, and pending deliveries go there.
      const moved = { ...prefixed, url: 'http://c.example/' }
      expect(await define(moved)).toMatchObject([{ id, url: 'http://c.example/', state: 'active' }])
      expect(await told(store, id)).toEqual(['task.cancelled a'])
      await define()
      await store.maintainAll()
      expect(await define()).toEqual([])
      // Without a file, subscriptions of an earlier one can be removed.
      const [again] = await define(one)
      await ask(store, { ask: 'remove', id: again?.id ?? '', mayBeOfFile: true }, 'subscription')
    })

    test('a removed subscription is gone at once, and its deliveries with the next retention run', async () => {
      const store = await open()
      const { id } = await subscribe(store, { types: ['task.cancelled'] })
      await store.callBack('a', some(0, 1))
      await store.control({ verb: 'cancel', taskId: 'a' })
      const remove = { ask: 'remove' as const, id, mayBeOfFile: false }
      await ask(store, remove, 'subscription')
      for (const order of [remove, { ask: 'enable' as const, id }])
        await ask(store, order, 'subscription_unknown')
      await ask(
        store,
        { ask: 'deliveries', id, after: 0, newestFirst: false, limit: 1 },
        'subscription_unknown',
      )
      expect((await ask(store, { ask: 'list' }, 'subscriptions')).subscriptions).toEqual([])
      await store.maintainAll()
      expect((await deliver(store, pending(id))).deliveries).toEqual([])
      expect((await deliver(store, targets)).subscriptions).toEqual([])
      await store.reopen()
      expect((await deliver(store, targets)).subscriptions).toEqual([])
    })

    test('deliveries are deleted after their retention, and the subscription shows up to where', async () => {
      const store = await open()
      const { id } = await subscribe(store, { types: ['task.cancelled'], url: null })
      for (const task of ['a', 'b']) {
        await store.callBack(task, some(0, 1))
        await store.control({ verb: 'cancel', taskId: task })
        store.clock.advance(DAY)
      }
      const [first, second] = await log(store, id)
      await store.maintainAll(1.5 * DAY)
      expect(await log(store, id)).toEqual([second])
      const { subscriptions } = await ask(store, { ask: 'list' }, 'subscriptions')
      expect(subscriptions[0]?.subscription.deletedTo).toBe(first?.event)
    })

    test('unknown ids are reported; there are at most a hundred subscriptions', async () => {
      const store = await open()
      const { id } = await subscribe(store)
      const feed = await subscribe(store, { url: null, types: ['task.cancelled'] })
      await ask(store, { ask: 'redeliver', id: 'sub_none', event: 1 }, 'subscription_unknown')
      await ask(store, { ask: 'redeliver', id, event: 1 }, 'delivery_unknown')
      await store.callBack('a', some(0, 1))
      await store.control({ verb: 'cancel', taskId: 'a' })
      const [kept] = await log(store, feed.id)
      const redeliver = { ask: 'redeliver' as const, id: feed.id, event: kept?.event ?? 0 }
      await ask(store, redeliver, 'subscription_has_no_url')
      for (let at = 2; at < 100; at += 1) await subscribe(store)
      const order = { types: webhookEventTypes, taskPrefix: '', url: null, secret: '' }
      await ask(store, { ask: 'create', ...order }, 'too_many_subscriptions')
    })
  })
}
