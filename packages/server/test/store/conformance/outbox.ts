import { webhookEventTypes } from '@baton/protocol'
import { describe, expect, test } from 'vitest'
import {
  type DefinedSubscription,
  type DeliveryAnswer,
  type DeliveryRequest,
  factsOf,
  notAttempted,
  progressOf,
} from '../../../src/handoff/outbox.ts'
import { type Driver, one, some } from './driver.ts'
import { DAY, type StoreHarness, storesOf } from './harness.ts'
import { ask, log, subscribe, told } from './subscriber.ts'

async function deliver(store: Driver, request: DeliveryRequest): Promise<DeliveryAnswer> {
  const answer = await store.store.deliver(request)
  if (answer === null) throw new Error('this store does not deliver')
  return answer
}

const pending = (subscription: string, taskId: string | null = null) => ({
  ask: 'pending' as const,
  subscription,
  ofTask: taskId === null ? null : { taskId, upTo: Number.MAX_SAFE_INTEGER },
  after: 0,
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
      const defined = ['one', 'two'].map((name) => ({
        name,
        url: 'http://b.example/',
        types: webhookEventTypes,
        taskPrefix: '',
        secret: 'whsec_1',
      }))
      const named = async () => {
        const { subscriptions } = await deliver(store, { ask: 'define', subscriptions: defined })
        return subscriptions.filter(({ state }) => state !== 'removed').map(({ name }) => name)
      }
      expect((await named()).filter((name) => name !== undefined)).toEqual([])
      await ask(store, { ask: 'remove', id: feed.id, mayBeOfFile: false }, 'subscription')
      const after = await named()
      expect([after.length, after.filter((name) => name !== undefined)]).toEqual([100, ['one']])
    })
  })
}
