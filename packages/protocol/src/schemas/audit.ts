import Type, { type Static } from 'typebox'
import { MAX_FEED_ENTRIES } from '../limits.ts'
import { count, oneOf, orNull, timestamp } from './schema-parts.ts'

const nameSchema = orNull(
  Type.String({
    description: 'The name of the token or of the user; null if there is none',
    examples: ['on call'],
  }),
)

const requestBodySchema = Type.Unsafe<Record<string, unknown>>(
  Type.Object({}, { additionalProperties: true, description: 'The body of the request, shortened' }),
)

const stampSchema = Type.Object(
  {
    at: timestamp(),
    name: nameSchema,
  },
  { description: 'When, and by whom' },
)

const pauseSchema = Type.Object(
  {
    at: timestamp(),
    name: nameSchema,
    because: orNull(
      Type.String({
        description: 'Why the task paused itself; null if a request paused it',
        examples: ['12 of the last 20 attempts failed or expired'],
      }),
    ),
  },
  { description: 'When, and by whom or why' },
)

export const taskControlSchema = Type.Object(
  {
    paused: orNull(pauseSchema),
    cancelled: orNull(stampSchema),
    sealed: orNull(stampSchema),
    changed: orNull(stampSchema),
  },
  {
    description:
      'Who paused, cancelled or sealed the task, and who last changed its settings, level barrier or owner; null for what nobody did',
  },
)
export type TaskControl = Static<typeof taskControlSchema>

export const changeSchema = Type.Object(
  {
    at: timestamp(),
    name: nameSchema,
    address: orNull(Type.String({ description: 'The client address', examples: ['10.0.0.7'] })),
    action: Type.String({ description: 'What was requested', examples: ['pause'] }),
    taskId: orNull(Type.String({ description: 'The task that was changed', examples: ['orders-2026-03'] })),
    target: orNull(
      Type.String({
        description: 'The partition, instance, table or subscription that was changed',
        examples: ['worker-7'],
      }),
    ),
    changed: count({ description: 'How many partitions, leases or settings were changed', examples: [1] }),
    request: orNull(requestBodySchema),
  },
  { description: 'A change, and who requested it' },
)
export type Change = Static<typeof changeSchema>

export const auditListSchema = Type.Object({
  entries: Type.Array(changeSchema),
  next: orNull(Type.String({ description: 'Cursor of the next page; null on the last page' })),
})
export type AuditList = Static<typeof auditListSchema>

export const nodeAuditKinds = ['refused', 'reload'] as const

export const nodeAuditEntrySchema = Type.Object(
  {
    at: timestamp({
      description: 'Time of the event; if the entry combines several events, of the last one',
    }),
    kind: oneOf(nodeAuditKinds, {
      description:
        'refused: a token that is unknown or not sufficient. reload: a file of tokens, subscriptions or certificates that changed',
    }),
    name: orNull(Type.String({ description: 'The name of the token; null without a known token' })),
    address: orNull(Type.String({ description: 'The client address' })),
    action: Type.String({ description: 'The request', examples: ['GET /tasks'] }),
    outcome: Type.String({
      description: 'done, or the error code of the response',
      examples: ['token_unknown'],
    }),
    detail: orNull(Type.String({ description: 'Details for people' })),
    times: count({
      description: 'Number of occurrences: consecutive refusals from one address are one entry',
    }),
  },
  { description: 'A refused token or a reloaded file' },
)
export type NodeAuditEntry = Static<typeof nodeAuditEntrySchema>

export const nodeAuditSchema = Type.Object({
  entries: Type.Array(nodeAuditEntrySchema),
  next: orNull(Type.String({ description: 'Cursor of the next page; null on the last page' })),
})
export type NodeAudit = Static<typeof nodeAuditSchema>

export const feedEntrySchema = Type.Object(
  {
    at: timestamp(),
    event: Type.String({
      description:
        '`call-back`: the first one. `level-done`: all partitions of a level are done. `done`: all of the task are. Others are what was requested, such as `pause` or `retry`',
      examples: ['pause'],
    }),
    name: nameSchema,
    level: orNull(count({ description: 'The level that is done' })),
    partitions: orNull(
      count({ description: 'The number of partitions of the level, or of those that the request changed' }),
    ),
    target: orNull(Type.String({ description: 'The partition that was changed' })),
    request: orNull(requestBodySchema),
  },
  { description: 'Something that happened to a task' },
)
export type FeedEntry = Static<typeof feedEntrySchema>

export const taskFeedSchema = Type.Object(
  {
    taskId: Type.String({ examples: ['orders-2026-03'] }),
    entries: Type.Array(feedEntrySchema, { maxItems: MAX_FEED_ENTRIES, description: 'Newest first' }),
    complete: Type.Boolean({ description: 'False if there are older entries, or more levels' }),
  },
  { description: 'What happened to a task' },
)
export type TaskFeed = Static<typeof taskFeedSchema>
