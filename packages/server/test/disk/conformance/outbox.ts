import { describe, expect, test } from 'vitest'
import type { Disk } from '../../../src/handoff/disk.ts'
import {
  type DeliveryChange,
  type DeliveryQuery,
  deliveryKey,
  noOutboxRowChanges,
  notAttempted,
  type OutboxRowChanges,
  progressOf,
  type StoredDelivery,
  type StoredSubscription,
} from '../../../src/handoff/outbox.ts'
import { NOW, write } from './builders.ts'
import { type DiskHarness, disksOf } from './harness.ts'

const subscription = (id: string, changes: Partial<StoredSubscription> = {}): StoredSubscription => ({
  id,
  url: 'https://receiver.example/"hooks"?a=\\b',
  types: ['task.done', 'level.done'],
  taskPrefix: 'örders-',
  secrets: [
    { secret: 'whsec_new', until: null },
    { secret: 'whsec_old', until: NOW + 5 },
  ],
  state: 'active',
  reason: null,
  createdAt: NOW,
  deletedTo: 0,
  ...changes,
})

const delivery = (owner: string, event: number, changes: Partial<StoredDelivery> = {}): StoredDelivery => ({
  subscription: owner,
  event,
  taskId: 'a',
  at: NOW + event,
  message: {
    id: `evt_${event}`,
    type: 'partition.parked',
    generation: 2,
    facts: {
      of: 'partition',
      level: 1,
      index: 2,
      spelling: null,
      recordCount: 3,
      attempts: 4,
      reason: 'it\n"broke" \\ ü',
    },
  },
  progress: null,
  ...changes,
})

const writeOutbox = (disk: Disk, changes: Partial<OutboxRowChanges>) =>
  write(disk, { outbox: { ...noOutboxRowChanges(), ...changes } })
const changed = (...all: DeliveryChange[]) => new Map(all.map((one) => [deliveryKey(one), one]))

const query = (changes: Partial<DeliveryQuery> = {}): DeliveryQuery => ({
  subscription: 's',
  pending: false,
  ofTask: null,
  after: 0,
  newestFirst: false,
  limit: 100,
  ...changes,
})

export function outboxTopic(harness: DiskHarness): void {
  describe('outbox', () => {
    const create = disksOf(harness)

    test('subscriptions come back with every field, are changed, and are removed', async () => {
      const { disk } = await create()
      const [a, b] = [subscription('a'), subscription('b', { url: null, state: 'removed', reason: 'gone' })]
      await writeOutbox(disk, { subscriptions: new Map([a, b].map((one) => [one.id, one])) })
      expect(await disk.outbox.subscriptions()).toEqual([a, b])
      const later = { ...a, state: 'disabled' as const, reason: '410' }
      await writeOutbox(disk, {
        subscriptions: new Map<string, StoredSubscription | null>([
          ['a', later],
          ['b', null],
        ]),
      })
      expect(await disk.outbox.subscriptions()).toEqual([later])
    })

    test('deliveries come back with every field, in the order of events, from a place on', async () => {
      const { disk } = await create()
      const all = [
        delivery('s', 3),
        delivery('s', 7, { taskId: 'b' }),
        delivery('other', 7),
        delivery('s', 5),
      ]
      await writeOutbox(disk, { deliveries: all })
      expect(await disk.outbox.deliveries(query())).toEqual([all[0], all[3], all[1]])
      expect(await disk.outbox.deliveries(query({ after: 3, limit: 1 }))).toEqual([all[3]])
      const newest = await disk.outbox.deliveries(query({ after: 7, newestFirst: true }))
      expect(newest).toEqual([all[3], all[0]])
    })

    test('pending deliveries are found by subscription or by task', async () => {
      const { disk } = await create()
      const all = [
        delivery('s', 1),
        delivery('s', 2, { taskId: 'b' }),
        delivery('s', 3, { progress: notAttempted('kept', NOW) }),
        delivery('s', 4, { progress: { ...notAttempted('pending', NOW), attempts: 1, status: 500 } }),
      ]
      await writeOutbox(disk, { deliveries: all })
      const events = async (changes: Partial<DeliveryQuery>) =>
        (await disk.outbox.deliveries(query({ pending: true, ...changes }))).map(({ event }) => event)
      expect(await events({})).toEqual([1, 2, 4])
      expect(await events({ ofTask: { taskId: 'a', upTo: 4 } })).toEqual([1, 4])
      expect(await events({ ofTask: { taskId: 'a', upTo: 4 }, after: 1 })).toEqual([4])
      expect(await events({ ofTask: { taskId: 'a', upTo: 3 } })).toEqual([1])
      const progress = {
        ...notAttempted('pending', NOW),
        state: 'delivered' as const,
        attempts: 1,
        status: 204,
      }
      const attempted = { attemptedAt: NOW + 1, millis: 12, error: 'ä "quoted" error' }
      await writeOutbox(disk, {
        changes: changed({ subscription: 's', event: 1, progress: { ...progress, ...attempted } }),
      })
      expect(await events({})).toEqual([2, 4])
      expect((await disk.outbox.deliveries(query({ limit: 1 })))[0]?.progress).toEqual({
        ...progress,
        ...attempted,
      })
    })

    test('a delivery written and changed in the same flush has the change; null deletes it', async () => {
      const { disk } = await create()
      const progress = { ...notAttempted('pending', NOW), state: 'failed' as const }
      await writeOutbox(disk, {
        deliveries: [delivery('s', 1), delivery('s', 2), delivery('s', 3)],
        changes: changed(
          { subscription: 's', event: 1, progress },
          { subscription: 's', event: 2, progress: null },
          { subscription: 's', event: 99, progress: null },
        ),
      })
      const found = await disk.outbox.deliveries(query())
      expect(found.map((one) => [one.event, progressOf(one).state])).toEqual([
        [1, 'failed'],
        [3, 'pending'],
      ])
    })

    test('a delivery that is written again keeps its status', async () => {
      const { disk } = await create()
      const progress = { ...notAttempted('pending', NOW), state: 'delivered' as const }
      await writeOutbox(disk, { deliveries: [delivery('s', 1)] })
      await writeOutbox(disk, { changes: changed({ subscription: 's', event: 1, progress }) })
      await writeOutbox(disk, { deliveries: [delivery('s', 1)] })
      expect((await disk.outbox.deliveries(query()))[0]?.progress?.state).toBe('delivered')
    })
  })
}
