import type { IncomingMessage } from 'node:http'
import {
  type Delivery,
  deliveryListSchema,
  deliverySchema,
  eventPageSchema,
  rotateSecretRequestSchema,
  type SubscriptionStatus as StatusView,
  type Subscription,
  type SubscriptionSecret,
  subscribeRequestSchema,
  subscriptionListSchema,
  subscriptionSchema,
  subscriptionSecretSchema,
  unsubscribeAnswerSchema,
  webhookEventTypes,
} from '@baton/protocol'
import type { FastifyInstance } from 'fastify'
import Type from 'typebox'
import {
  MAX_SUBSCRIPTIONS,
  progressOf,
  type StoredDelivery,
  type StoredSubscription,
  type SubscriptionRequest,
  type SubscriptionResult,
  type SubscriptionStatus,
} from '../../handoff/outbox.ts'
import { receiverUrlFault } from '../../webhooks/address-rule.ts'
import { cloudEvent, isSigningSecret, newSigningSecret, sequenceOf } from '../../webhooks/signed-event.ts'
import { RequestProblem } from '../answers/problems.ts'
import { timestampOf, timestampOrNull } from '../answers/wire-values.ts'
import { nextOf, pageOf, parameter, safeInteger } from '../requests/parameters.ts'
import type { RouteContext } from '../route-context.ts'
import { brokenField, operation } from './operation.ts'

/** The subscription without its secrets. */
function presentSubscription(stored: StoredSubscription): Subscription {
  const { id, name = null, url, types, taskPrefix, state, reason, createdAt } = stored
  return {
    id,
    name,
    url,
    types: [...types],
    taskPrefix,
    state: state === 'active' ? 'active' : 'disabled',
    reason,
    createdAt: timestampOf(createdAt),
  }
}

const presentStatus = ({ subscription, backlog, circuitOpenUntil }: SubscriptionStatus): StatusView => ({
  ...presentSubscription(subscription),
  pending: backlog.pending,
  oldestPendingAt: timestampOrNull(backlog.oldestAt),
  circuitOpenUntil: timestampOrNull(circuitOpenUntil),
})

function presentDelivery(delivery: StoredDelivery): Delivery {
  const { event, taskId, at, message } = delivery
  const { state, attempts, nextAt, attemptedAt, status, error, millis } = progressOf(delivery)
  return {
    event,
    id: message.id,
    type: message.type,
    taskId,
    time: timestampOf(at),
    state,
    attempts,
    attemptedAt: timestampOrNull(attemptedAt),
    nextAttemptAt: state === 'pending' ? timestampOf(nextAt) : null,
    status,
    error,
    durationSeconds: millis === null ? null : millis / 1000,
  }
}

export function subscriptionRoutes(app: FastifyInstance, context: RouteContext): void {
  const { handOff, webhooks, requesterOf } = context
  // Without a subscriptions file, subscriptions that an earlier file created can be removed.
  const mayBeOfFile = webhooks.file === null
  const ask = async <Kind extends SubscriptionResult['kind']>(
    request: SubscriptionRequest,
    kind: Kind,
    raw?: IncomingMessage,
  ): Promise<Extract<SubscriptionResult, { kind: Kind }>> => {
    // Not their bodies: URLs and secrets of receivers are not to be shown.
    const result = await handOff.subscriptions(request, raw && requesterOf(raw))
    if (result.kind === kind) return result as Extract<SubscriptionResult, { kind: Kind }>
    throw problemOf(result)
  }
  const changing = { tag: 'subscriptions', access: 'fleet' } as const
  const reading = { tag: 'subscriptions', access: 'overview' } as const

  operation(app, context, 'POST', '/subscriptions', {
    id: 'subscribe',
    summary: 'Create a subscription: events are sent to a URL or stored for reading',
    ...changing,
    body: subscribeRequestSchema,
    answers: [subscriptionSecretSchema, 'The subscription, with the secret that signs its events'],
    answer: async ({ body, raw }) => {
      const { url = null, types = webhookEventTypes, taskPrefix = '', secret } = body
      if (url !== null) checkUrl(url)
      const { subscription } = await ask(
        { ask: 'create', url, types: [...new Set(types)], taskPrefix, secret: checkedSecret(secret) },
        'subscription',
        raw,
      )
      return withSecret(subscription)
    },
  })

  operation(app, context, 'GET', '/subscriptions', {
    id: 'listSubscriptions',
    summary: 'All subscriptions',
    ...reading,
    answers: [
      subscriptionListSchema,
      'The subscriptions, without their secrets, and the number of pending events',
    ],
    answer: async () => {
      const { subscriptions } = await ask({ ask: 'list' }, 'subscriptions')
      const oldestFirst = subscriptions.toSorted(
        (a, b) => a.subscription.createdAt - b.subscription.createdAt,
      )
      return { subscriptions: oldestFirst.map(presentStatus) }
    },
  })

  operation(app, context, 'DELETE', '/subscriptions/:subscriptionId', {
    id: 'unsubscribe',
    summary: 'Remove a subscription and its pending events',
    ...changing,
    answers: [unsubscribeAnswerSchema, 'The subscription was removed'],
    answer: async ({ path: { subscriptionId: id }, raw }) => {
      await ask({ ask: 'remove', id, mayBeOfFile }, 'subscription', raw)
      return { id, removed: true }
    },
  })

  operation(app, context, 'POST', '/subscriptions/:subscriptionId/rotate-secret', {
    id: 'rotateSecret',
    summary: 'Replace the signing secret; for a while, events are also signed with the previous secret',
    ...changing,
    body: rotateSecretRequestSchema,
    bodyOptional: true,
    answers: [subscriptionSecretSchema, 'The subscription, with its new secret'],
    answer: async ({ path: { subscriptionId: id }, body, raw }) => {
      const { secret, overlapSeconds = 86_400 } = body
      const overlapMillis = overlapSeconds * 1000
      const { subscription } = await ask(
        { ask: 'rotate', id, secret: checkedSecret(secret), overlapMillis, mayBeOfFile },
        'subscription',
        raw,
      )
      return withSecret(subscription)
    },
  })

  operation(app, context, 'POST', '/subscriptions/:subscriptionId/enable', {
    id: 'enableSubscription',
    summary: 'Enable a subscription that was disabled',
    ...changing,
    answers: [subscriptionSchema, 'The subscription'],
    answer: async ({ path: { subscriptionId: id }, raw }) => {
      const { subscription } = await ask({ ask: 'enable', id }, 'subscription', raw)
      return presentSubscription(subscription)
    },
  })

  operation(app, context, 'GET', '/subscriptions/:subscriptionId/deliveries', {
    id: 'listDeliveries',
    summary: 'The deliveries of a subscription, newest first',
    ...reading,
    query: pageOf(safeInteger),
    answers: [deliveryListSchema, 'One page of deliveries'],
    answer: async ({ path: { subscriptionId: id }, query: { cursor, limit } }) => {
      const after = cursor ?? Number.MAX_SAFE_INTEGER
      const { deliveries } = await ask(
        { ask: 'deliveries', id, after, newestFirst: true, limit },
        'deliveries',
      )
      const last = deliveries.length < limit ? undefined : deliveries.at(-1)
      return { deliveries: deliveries.map(presentDelivery), next: nextOf(last?.event ?? null) }
    },
  })

  operation(app, context, 'POST', '/subscriptions/:subscriptionId/deliveries/:event/redeliver', {
    id: 'redeliver',
    summary: 'Send an event again, regardless of its state',
    ...changing,
    answers: [deliverySchema, 'The delivery, which is pending again'],
    answer: async ({ path: { subscriptionId: id, event }, raw }) => {
      const number = /^\d{1,16}$/.test(event) ? Number(event) : 0
      const { delivery } = await ask({ ask: 'redeliver', id, event: number }, 'delivery', raw)
      return presentDelivery(delivery)
    },
  })

  operation(app, context, 'GET', '/subscriptions/:subscriptionId/events', {
    id: 'readEvents',
    summary: 'The events of a subscription after a position, oldest first',
    ...reading,
    query: {
      after: parameter(
        Type.String({
          description:
            'The value of `next` in the previous response; by default, from the oldest stored event',
        }),
        null,
        (given, refuse) =>
          /^\d{1,16}$/.test(given) ? Number(given) : refuse('must be a value of next from this feed'),
      ),
      limit: pageOf(safeInteger).limit,
    },
    answers: [eventPageSchema, 'The events; empty if there are no more events yet'],
    answer: async ({ path: { subscriptionId: id }, query: { after: given, limit } }) => {
      const after = given ?? 0
      const { deliveries, subscription } = await ask(
        { ask: 'deliveries', id, after, newestFirst: false, limit },
        'deliveries',
      )
      return {
        events: deliveries.map((delivery) => cloudEvent(delivery, webhooks.source)),
        next: sequenceOf(deliveries.at(-1)?.event ?? after),
        missed: given !== null && after < subscription.deletedTo,
      }
    },
  })

  function checkUrl(text: string): void {
    const fault = receiverUrlFault(text, webhooks.rule)
    if (fault !== undefined) throw brokenField('/url', `url ${fault}`)
  }
}

function checkedSecret(secret: string | undefined): string {
  if (secret === undefined) return newSigningSecret()
  if (isSigningSecret(secret)) return secret
  throw brokenField(
    '/secret',
    'secret must be whsec_ followed by 24 to 64 bytes in base64; omit it to have the service generate one',
  )
}

const withSecret = (stored: StoredSubscription): SubscriptionSecret => ({
  ...presentSubscription(stored),
  secret: stored.secrets[0]?.secret ?? '',
})

function problemOf(result: SubscriptionResult): RequestProblem {
  switch (result.kind) {
    case 'subscription_in_file':
      return new RequestProblem(
        'subscription_in_file',
        `the subscription is defined in the subscriptions file as "${result.name}"; change it there`,
      )
    case 'delivery_unknown':
      return new RequestProblem(
        'delivery_unknown',
        'the subscription has no delivery of this event, or retention deleted it',
      )
    case 'subscription_has_no_url':
      return new RequestProblem(
        'delivery_unknown',
        'the subscription has no URL; its events can only be read',
      )
    case 'too_many_subscriptions':
      return new RequestProblem(
        'too_many_subscriptions',
        `the service already has ${MAX_SUBSCRIPTIONS} subscriptions; remove one`,
      )
    default:
      return new RequestProblem('subscription_unknown', 'no subscription has this id')
  }
}
