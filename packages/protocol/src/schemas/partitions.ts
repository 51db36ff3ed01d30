import Type, { type Static } from 'typebox'
import { DEFAULT_TABLE_FIELD, MAX_LISTED_ATTEMPTS } from '../limits.ts'
import { attemptOutcomes, failureOutcomes, partitionStates } from '../states.ts'
import { descriptorFields } from './descriptor.ts'
import { checkpointSchema, progressSchema } from './leases.ts'
import { count, oneOf, orNull, timestamp, traceparent } from './schema-parts.ts'

const seconds = (description: string) => Type.Number({ minimum: 0, description })

export const attemptSecondsSchema = Type.Object(
  {
    median: seconds('Median duration'),
    p95: seconds('95th percentile of the duration'),
    attempts: count({ description: 'Number of attempts' }),
  },
  { description: 'Duration of the attempts that finished a partition, accurate to 20 %' },
)
export type AttemptSeconds = Static<typeof attemptSecondsSchema>

export const stragglerSchema = Type.Object(
  {
    partition_name: Type.String({ examples: ['orders-2026-03-0-7'] }),
    holder: orNull(
      Type.String({
        description: 'The instance that holds the lease; null if the worker sent no X-Instance-Id',
      }),
    ),
    startedAt: timestamp({ description: 'When the lease began' }),
    leaseExpiresAt: timestamp(),
    expectedSeconds: seconds('Expected duration of an attempt of this size, based on other attempts'),
    progress: Type.Optional(progressSchema),
  },
  { description: 'A leased partition that takes much longer than other partitions of the task' },
)
export type Straggler = Static<typeof stragglerSchema>

export const attemptSchema = Type.Object(
  {
    attempt: count({
      description:
        'The number of the attempt. A released attempt does not count, so the next one has the same number',
    }),
    holder: orNull(
      Type.String({
        description: 'The instance that held the lease; null if the worker sent no X-Instance-Id',
      }),
    ),
    startedAt: timestamp({ description: 'When the lease began' }),
    endedAt: orNull(timestamp({ description: 'Null while the lease is live' })),
    outcome: orNull(
      oneOf(attemptOutcomes, {
        description:
          'expired: the lease expired or was revoked; delivered: settled by delivery (at most once)',
      }),
    ),
    reason: orNull(
      Type.String({ description: 'Why the attempt failed or was released; long reasons are truncated' }),
    ),
    records: orNull(count({ description: 'Number of records that the worker reported' })),
    logUrl: Type.Optional(
      Type.String({ description: 'Where its log is, if the service is configured with --log-url' }),
    ),
  },
  { description: 'One attempt of a partition' },
)
export type Attempt = Static<typeof attemptSchema>

export const failureSchema = Type.Object(
  {
    key: Type.String({
      description:
        'Names the group. `expired` and `revoked` have all such attempts, `none` those without a reason, and `other` those whose reason is not listed',
      examples: ['compute-table-is-locked-1bwt6u5'],
    }),
    outcome: oneOf(failureOutcomes),
    reason: orNull(
      Type.String({
        description:
          'The line that says what went wrong, with numbers and ids masked; null if there is none, or if there are several',
        examples: ['compute table is locked by transaction #'],
      }),
    ),
    count: count({ description: 'Number of attempts' }),
    parked: Type.Object(
      { partitions: count(), records: count() },
      { description: 'What is parked, and whose last attempt is of this group' },
    ),
    firstAt: timestamp(),
    lastAt: timestamp(),
  },
  { description: 'Failed or expired attempts of a task for the same reason' },
)
export type Failure = Static<typeof failureSchema>

const leaseState = {
  state: oneOf(partitionStates),
  attempts: count({ description: 'Number of attempts' }),
}

const settled = {
  reportedRecords: orNull(count({ description: 'Number of records that the worker reported' })),
  calledBackAt: timestamp(),
  settledAt: orNull(timestamp({ description: 'When the partition was done' })),
}

const kept = {
  fields: Type.Optional(
    Type.Unsafe<Record<string, unknown>>({
      type: 'object',
      additionalProperties: true,
      description: 'Additional fields of the descriptor, if the service keeps them; absent if there are none',
      examples: [{ snapshot: 's3://results/orders/0-7' }],
    }),
  ),
  traceparent: Type.Optional(traceparent()),
}

const attempts = {
  lastReason: orNull(Type.String({ description: 'Why the last attempt failed or was released' })),
  history: Type.Array(attemptSchema, {
    maxItems: MAX_LISTED_ATTEMPTS,
    description: 'The latest attempts, oldest first, including the current one',
  }),
}

export function partitionRowSchema(tableField: string = DEFAULT_TABLE_FIELD) {
  return Type.Object(
    {
      ...descriptorFields(tableField),
      ...leaseState,
      holder: orNull(
        Type.String({
          description: 'The instance that holds the live lease; null if the worker sent no X-Instance-Id',
        }),
      ),
      leaseExpiresAt: orNull(timestamp()),
      readyAt: orNull(timestamp({ description: 'When the back-off ends' })),
      ...attempts,
      ...settled,
      progress: Type.Optional(progressSchema),
      checkpoint: checkpointSchema,
      ...kept,
    },
    { description: 'A partition and its state' },
  )
}
export type PartitionRow = Static<ReturnType<typeof partitionRowSchema>>

export function partitionListSchema(tableField: string = DEFAULT_TABLE_FIELD) {
  return Type.Object({
    partitions: Type.Array(partitionRowSchema(tableField)),
    next: orNull(Type.String({ description: 'Cursor of the next page' })),
  })
}
export type PartitionList = Static<ReturnType<typeof partitionListSchema>>

export function manifestLineSchema(tableField: string = DEFAULT_TABLE_FIELD) {
  return Type.Object(
    { ...descriptorFields(tableField), ...leaseState, ...attempts, ...settled, ...kept },
    { description: 'One line of a task manifest: the descriptor of a partition and its result' },
  )
}
export type ManifestLine = Static<ReturnType<typeof manifestLineSchema>>
