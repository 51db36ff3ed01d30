import Type, { type Static, type TSchema } from 'typebox'
import { MAX_COUNTED_DELIVERIES, MAX_PARTITION_NAME_LENGTH, MAX_TASK_ID_LENGTH } from '../limits.ts'
import { deliveryStates, type EventName, subscriptionStates, webhookEventTypes } from '../states.ts'
import { wellFormedText } from '../text-form.ts'
import { type InstanceStatus, instanceStatusSchema } from './instance.ts'
import { count, oneOf, orNull, timestamp } from './schema-parts.ts'
import { type TaskSummary, taskSummarySchema } from './task.ts'

export const parkedEventSchema = Type.Object(
  {
    taskId: Type.String({ examples: ['orders-2026-03'] }),
    partition_name: Type.String({ maxLength: MAX_PARTITION_NAME_LENGTH, examples: ['orders-2026-03-0-7'] }),
    priorityLevel: count({ examples: [0] }),
    attempts: count({ description: 'Number of attempts so far', examples: [5] }),
    reason: orNull(
      Type.String({ description: 'Why the last attempt failed', examples: ['compute table is locked'] }),
    ),
  },
  { description: 'A partition ran out of attempts and waits for an operator' },
)
export type ParkedEvent = Static<typeof parkedEventSchema>

export const resetEventSchema = Type.Object(
  {},
  { description: 'Events may have been missed; the client must read everything again' },
)

/** The schema of `data`, by event name. */
export const eventSchemas = {
  task: taskSummarySchema,
  parked: parkedEventSchema,
  instance: instanceStatusSchema,
  reset: resetEventSchema,
} as const satisfies Record<EventName, TSchema>

/** One event as a client receives it. */
export type StreamEvent =
  | { readonly name: 'task'; readonly data: TaskSummary }
  | { readonly name: 'parked'; readonly data: ParkedEvent }
  | { readonly name: 'instance'; readonly data: InstanceStatus }
  | { readonly name: 'reset'; readonly data: Record<string, never> }

const MAX_URL_LENGTH = 2000
/** How long an old secret may still sign events after a rotation. */
const MAX_OVERLAP_SECONDS = 30 * 86_400

const secret = Type.String({
  maxLength: 100,
  description: 'The signing secret: `whsec_` followed by 24 to 64 bytes in base64',
  examples: ['whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD'],
})
const url = Type.String({
  minLength: 1,
  maxLength: MAX_URL_LENGTH,
  pattern: wellFormedText.pattern,
  examples: ['https://pipeline.example/hooks/baton'],
})
const types = Type.Array(oneOf(webhookEventTypes), {
  minItems: 1,
  maxItems: webhookEventTypes.length,
  examples: [['task.done', 'task.stalled']],
})

export const subscribeRequestSchema = Type.Object(
  {
    url: Type.Optional(
      Type.String({
        ...url,
        description:
          'The http or https URL that events are sent to. Without a URL, events are stored for reading',
      }),
    ),
    types: Type.Optional({ ...types, description: 'The types of events to send; all types by default' }),
    taskPrefix: Type.Optional(
      Type.String({
        maxLength: MAX_TASK_ID_LENGTH,
        pattern: wellFormedText.pattern,
        description: 'Only events of tasks whose id begins with this prefix',
        examples: ['orders-'],
      }),
    ),
    secret: Type.Optional(secret),
  },
  {
    additionalProperties: false,
    description: 'A new subscription. The service generates a secret if the request has none',
  },
)
export type SubscribeRequest = Static<typeof subscribeRequestSchema>

export const rotateSecretRequestSchema = Type.Object(
  {
    secret: Type.Optional(secret),
    overlapSeconds: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: MAX_OVERLAP_SECONDS,
        default: 86_400,
        description: 'How long events are also signed with the previous secret',
      }),
    ),
  },
  {
    additionalProperties: false,
    description: 'A new secret. The service generates one if the request has none',
    examples: [{ overlapSeconds: 3600 }],
  },
)
export type RotateSecretRequest = Static<typeof rotateSecretRequestSchema>

const subscriptionFields = {
  id: Type.String({ examples: ['sub_Zk3vU0f1pQ7cXw2d'] }),
  name: orNull(
    Type.String({
      description: 'The name in the subscriptions file; null if the subscription was created over HTTP',
      examples: ['pipeline'],
    }),
  ),
  url: orNull({ ...url, description: 'Null if events are not sent but stored for reading' }),
  types,
  taskPrefix: Type.String({ examples: ['orders-'] }),
  state: oneOf(subscriptionStates),
  reason: orNull(Type.String({ description: 'Why the subscription is disabled' })),
  createdAt: timestamp(),
}

export const subscriptionSchema = Type.Object(subscriptionFields, {
  description: 'A subscription: where events are sent, and which',
})
export type Subscription = Static<typeof subscriptionSchema>

export const subscriptionSecretSchema = Type.Object(
  { ...subscriptionFields, secret },
  { description: 'A subscription and its secret, which is not shown again' },
)
export type SubscriptionSecret = Static<typeof subscriptionSecretSchema>

export const subscriptionStatusSchema = Type.Object(
  {
    ...subscriptionFields,
    pending: Type.Integer({
      minimum: 0,
      maximum: MAX_COUNTED_DELIVERIES,
      description: 'Number of events to deliver; counted up to this maximum',
      examples: [3],
    }),
    oldestPendingAt: orNull(timestamp({ description: 'Time of the oldest pending event' })),
    circuitOpenUntil: orNull(
      timestamp({
        description: 'The receiver failed too often or asked for a pause; no event is sent before this time',
      }),
    ),
  },
  { description: 'A subscription and its pending events' },
)
export type SubscriptionStatus = Static<typeof subscriptionStatusSchema>

export const subscriptionListSchema = Type.Object({ subscriptions: Type.Array(subscriptionStatusSchema) })
export type SubscriptionList = Static<typeof subscriptionListSchema>

export const unsubscribeAnswerSchema = Type.Object(
  { id: Type.String({ examples: ['sub_Zk3vU0f1pQ7cXw2d'] }), removed: Type.Boolean({ description: 'True' }) },
  { description: 'The subscription was removed' },
)
export type UnsubscribeAnswer = Static<typeof unsubscribeAnswerSchema>

export const deliverySchema = Type.Object(
  {
    event: count({ description: 'The position of the event in the sequence of all events', examples: [412] }),
    id: Type.String({ description: 'The `webhook-id`', examples: ['evt_9aQx3LmT0bYw5KcE'] }),
    type: oneOf(webhookEventTypes),
    taskId: Type.String({ examples: ['orders-2026-03'] }),
    time: timestamp({ description: 'When the event occurred' }),
    state: oneOf(deliveryStates),
    attempts: count(),
    attemptedAt: orNull(timestamp({ description: 'Time of the last attempt' })),
    nextAttemptAt: orNull(
      timestamp({ description: 'Earliest time of the next attempt; null unless the delivery is pending' }),
    ),
    status: orNull(Type.Integer({ description: 'HTTP status of the last response' })),
    error: orNull(Type.String({ description: 'Why the last attempt failed' })),
    durationSeconds: orNull(Type.Number({ description: 'How long the last attempt took' })),
  },
  { description: 'The delivery of one event to one subscription' },
)
export type Delivery = Static<typeof deliverySchema>

export const deliveryListSchema = Type.Object({
  deliveries: Type.Array(deliverySchema),
  next: orNull(Type.String({ description: 'Cursor of the next page' })),
})
export type DeliveryList = Static<typeof deliveryListSchema>

export const cloudEventSchema = Type.Object(
  {
    specversion: oneOf(['1.0']),
    id: Type.String({ examples: ['evt_9aQx3LmT0bYw5KcE'] }),
    source: Type.String({ examples: ['/baton'] }),
    type: oneOf(webhookEventTypes),
    subject: Type.String({ description: 'The task', examples: ['orders-2026-03'] }),
    time: timestamp(),
    datacontenttype: oneOf(['application/json']),
    sequence: Type.String({
      description: 'Sorted as strings, these values give the order of the events',
      examples: ['0000000000000412'],
    }),
    data: Type.Unsafe<Record<string, unknown>>({
      type: 'object',
      description: 'The data of the event; depends on its type',
    }),
  },
  { description: 'An event in the format of CloudEvents 1.0' },
)
export type CloudEvent = Static<typeof cloudEventSchema>

export const eventPageSchema = Type.Object(
  {
    events: Type.Array(cloudEventSchema),
    next: Type.String({
      description: 'The value of `after` for the next request',
      examples: ['0000000000000412'],
    }),
    missed: Type.Boolean({
      description: 'True if retention deleted events after `after` before they were read',
    }),
  },
  { description: 'Events of a subscription, oldest first' },
)
export type EventPage = Static<typeof eventPageSchema>
