import { type WebhookEventType, webhookEventTypes } from '@baton/protocol'
import { expect } from 'vitest'
import {
  factsOf,
  type StoredDelivery,
  type StoredSubscription,
  type SubscriptionRequest,
  type SubscriptionResult,
} from '../../../src/handoff/outbox.ts'
import type { Driver } from './driver.ts'

export async function ask<Kind extends SubscriptionResult['kind']>(
  store: Driver,
  request: SubscriptionRequest,
  kind: Kind,
): Promise<Extract<SubscriptionResult, { kind: Kind }>> {
  const result = await store.store.subscriptions(request)
  expect(result.kind).toBe(kind)
  return result as Extract<SubscriptionResult, { kind: Kind }>
}

export async function subscribe(
  store: Driver,
  changes: { types?: readonly WebhookEventType[]; taskPrefix?: string; url?: string | null } = {},
): Promise<StoredSubscription> {
  const request = { types: webhookEventTypes, taskPrefix: '', url: 'http://a.example/', secret: 'whsec_1' }
  return (await ask(store, { ask: 'create', ...request, ...changes }, 'subscription')).subscription
}

export async function log(store: Driver, id: string): Promise<readonly StoredDelivery[]> {
  const request = { ask: 'deliveries' as const, id, after: 0, newestFirst: false, limit: 1000 }
  return (await ask(store, request, 'deliveries')).deliveries
}

/** The events, as `<type> <task> <level or partition>`. */
export async function told(store: Driver, id: string): Promise<string[]> {
  return (await log(store, id)).map(({ message, taskId }) => {
    const facts = factsOf(message)
    const place =
      facts.of === 'partition' ? `${facts.level}-${facts.index}` : facts.of === 'level' ? facts.level : ''
    return `${message.type} ${taskId} ${place}`.trim()
  })
}
