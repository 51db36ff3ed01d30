import type { IncomingMessage } from 'node:http'
import {
  type Delivery,
  type DeliveryList,
  deliveryListSchema,
  deliverySchema,
  type EventPage,
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
import { timestampOf, timestampOrNull } from '../answers/views.ts'
import { answers } from '../api-document/route-schemas.ts'
import { cursorOf, limitOf, once, pageParameters, type Query, writeCursor } from '../requests/parameters.ts'
import type { Service } from '../service.ts'
import { brokenControl, controlBody, noFields } from './control-routes.ts'

/** The subscription without its secrets. */
function viewSubscription(stored: StoredSubscription): Subscription {
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

const viewStatus = ({ subscription, backlog, circuitOpenUntil }: SubscriptionStatus): StatusView => ({
  ...viewSubscription(subscription),
  pending: backlog.pending,
  oldestPendingAt: timestampOrNull(backlog.oldestAt),
  circuitOpenUntil: timestampOrNull(circuitOpenUntil),
})

function viewDelivery(delivery: StoredDelivery): Delivery {
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

interface SubscriptionParams {
  readonly subscriptionId: string
}

const params = Type.Object({ subscriptionId: Type.String({ examples: ['sub_Zk3vU0f1pQ7cXw2d'] }) })
const tags = ['subscriptions']

export function subscriptionRoutes(app: FastifyInstance, service: Service): void {
  const { handOff, webhooks, requesterOf } = service
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

  app.route({
    method: 'POST',
    url: '/subscriptions',
    config: { access: 'subscriptions' },
    schema: {
      operationId: 'subscribe',
      summary: 'Create a subscription: events are sent to a URL or stored for reading',
      tags,
      body: subscribeRequestSchema,
      response: answers(subscriptionSecretSchema, 'The subscription, with the secret that signs its events'),
    },
    handler: async ({ body, raw }, reply) => {
      const {
        url,
        types = webhookEventTypes,
        taskPrefix = '',
        secret,
      } = controlBody(subscribeRequestSchema, body)
      if (url !== undefined) checkUrl(url)
      const { subscription } = await ask(
        {
          ask: 'create',
          url: url ?? null,
          types: [...new Set(types)],
          taskPrefix,
          secret: checkedSecret(secret),
        },
        'subscription',
        raw,
      )
      return reply.send(withSecret(subscription))
    },
  })

  app.route({
    method: 'GET',
    url: '/subscriptions',
    config: { access: 'overview' },
    schema: {
      operationId: 'listSubscriptions',
      summary: 'All subscriptions',
      tags,
      response: answers(
        subscriptionListSchema,
        'The subscriptions, without their secrets, and the number of pending events',
      ),
    },
    handler: async (_request, reply) => {
      const { subscriptions } = await ask({ ask: 'list' }, 'subscriptions')
      const oldestFirst = [...subscriptions].sort(
        (a, b) => a.subscription.createdAt - b.subscription.createdAt,
      )
      return reply.send({ subscriptions: oldestFirst.map(viewStatus) })
    },
  })

  app.route<{ Params: SubscriptionParams }>({
    method: 'DELETE',
    url: '/subscriptions/:subscriptionId',
    config: { access: 'subscriptions', bodyOptional: true },
    schema: {
      operationId: 'unsubscribe',
      summary: 'Remove a subscription and its pending events',
      tags,
      params,
      response: answers(unsubscribeAnswerSchema, 'The subscription was removed'),
    },
    handler: async ({ params: { subscriptionId: id }, raw }, reply) => {
      await ask({ ask: 'remove', id, mayBeOfFile }, 'subscription', raw)
      return reply.send({ id, removed: true })
    },
  })

  app.route<{ Params: SubscriptionParams }>({
    method: 'POST',
    url: '/subscriptions/:subscriptionId/rotate-secret',
    config: { access: 'subscriptions', bodyOptional: true },
    schema: {
      operationId: 'rotateSecret',
      summary: 'Replace the signing secret; for a while, events are also signed with the previous secret',
      tags,
      params,
      body: rotateSecretRequestSchema,
      response: answers(subscriptionSecretSchema, 'The subscription, with its new secret'),
    },
    handler: async ({ params: { subscriptionId: id }, body, raw }, reply) => {
      const { secret, overlapSeconds = 86_400 } = controlBody(rotateSecretRequestSchema, body)
      const overlapMillis = overlapSeconds * 1000
      const request = {
        ask: 'rotate' as const,
        id,
        secret: checkedSecret(secret),
        overlapMillis,
        mayBeOfFile,
      }
      return reply.send(withSecret((await ask(request, 'subscription', raw)).subscription))
    },
  })

  app.route<{ Params: SubscriptionParams }>({
    method: 'POST',
    url: '/subscriptions/:subscriptionId/enable',
    config: { access: 'subscriptions', bodyOptional: true },
    schema: {
      operationId: 'enableSubscription',
      summary: 'Enable a subscription that was disabled',
      tags,
      params,
      body: noFields,
      response: answers(subscriptionSchema, 'The subscription'),
    },
    handler: async ({ params: { subscriptionId: id }, body, raw }, reply) => {
      controlBody(noFields, body)
      const { subscription } = await ask({ ask: 'enable', id }, 'subscription', raw)
      return reply.send(viewSubscription(subscription))
    },
  })

  app.route<{ Params: SubscriptionParams; Querystring: Query }>({
    method: 'GET',
    url: '/subscriptions/:subscriptionId/deliveries',
    config: { access: 'overview' },
    schema: {
      operationId: 'listDeliveries',
      summary: 'The deliveries of a subscription, newest first',
      tags,
      params,
      querystring: Type.Object(pageParameters),
      response: answers(deliveryListSchema, 'One page of deliveries'),
    },
    handler: async ({ params: { subscriptionId: id }, query }, reply) => {
      const after = cursorOf(query, asEvent) ?? Number.MAX_SAFE_INTEGER
      const limit = limitOf(query)
      const request = { ask: 'deliveries' as const, id, after, newestFirst: true, limit }
      const { deliveries } = await ask(request, 'deliveries')
      const last = deliveries.length < limit ? undefined : deliveries.at(-1)
      const list: DeliveryList = {
        deliveries: deliveries.map(viewDelivery),
        next: last === undefined ? null : writeCursor(last.event),
      }
      return reply.send(list)
    },
  })

  app.route<{ Params: SubscriptionParams & { readonly event: string } }>({
    method: 'POST',
    url: '/subscriptions/:subscriptionId/deliveries/:event/redeliver',
    config: { access: 'subscriptions', bodyOptional: true },
    schema: {
      operationId: 'redeliver',
      summary: 'Send an event again, regardless of its state',
      tags,
      params: Type.Object({ ...params.properties, event: Type.Integer({ minimum: 1, examples: [412] }) }),
      body: noFields,
      response: answers(deliverySchema, 'The delivery, which is pending again'),
    },
    handler: async ({ params: { subscriptionId: id, event }, body, raw }, reply) => {
      controlBody(noFields, body)
      const number = /^\d{1,16}$/.test(event) ? Number(event) : 0
      const { delivery } = await ask({ ask: 'redeliver', id, event: number }, 'delivery', raw)
      return reply.send(viewDelivery(delivery))
    },
  })

  app.route<{ Params: SubscriptionParams; Querystring: Query }>({
    method: 'GET',
    url: '/subscriptions/:subscriptionId/events',
    config: { access: 'overview' },
    schema: {
      operationId: 'readEvents',
      summary: 'The events of a subscription after a position, oldest first',
      tags,
      params,
      querystring: Type.Object({
        after: Type.Optional(
          Type.String({
            description:
              'The value of `next` in the previous response; by default, from the oldest stored event',
          }),
        ),
        limit: pageParameters.limit,
      }),
      response: answers(eventPageSchema, 'The events; empty if there are no more events yet'),
    },
    handler: async ({ params: { subscriptionId: id }, query }, reply) => {
      const given = once(query, 'after')
      if (given !== undefined && !/^\d{1,16}$/.test(given))
        throw new RequestProblem(
          'parameter_invalid',
          'the query parameter after must be a value of next from this feed',
        )
      const after = Number(given ?? 0)
      const request = { ask: 'deliveries' as const, id, after, newestFirst: false, limit: limitOf(query) }
      const { deliveries, subscription } = await ask(request, 'deliveries')
      const page: EventPage = {
        events: deliveries.map((delivery) => cloudEvent(delivery, webhooks.source)),
        next: sequenceOf(deliveries.at(-1)?.event ?? after),
        missed: given !== undefined && after < subscription.deletedTo,
      }
      return reply.send(page)
    },
  })

  function checkUrl(text: string): void {
    const fault = receiverUrlFault(text, webhooks.rule)
    if (fault !== undefined) throw brokenControl([{ pointer: '/url', detail: `url ${fault}` }])
  }
}

function checkedSecret(secret: string | undefined): string {
  if (secret === undefined) return newSigningSecret()
  if (isSigningSecret(secret)) return secret
  const detail =
    'secret must be whsec_ followed by 24 to 64 bytes in base64; omit it to have the service generate one'
  throw brokenControl([{ pointer: '/secret', detail }])
}

const withSecret = (stored: StoredSubscription): SubscriptionSecret => ({
  ...viewSubscription(stored),
  secret: stored.secrets[0]?.secret ?? '',
})

const asEvent = (position: unknown): number | undefined =>
  Number.isSafeInteger(position) ? (position as number) : undefined

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
        'the service already has 100 subscriptions; remove one',
      )
    default:
      return new RequestProblem('subscription_unknown', 'no subscription has this id')
  }
}
