import Type, { type Static } from 'typebox'
import { DEFAULT_TABLE_FIELD, MAX_LISTED_ATTEMPTS } from '../limits.ts'
import { attemptOutcomes, failureOutcomes, partitionStates } from '../states.ts'
import { descriptorFields } from './descriptor.ts'
import { count, oneOf, orNull, timestamp, traceparent } from './schema-parts.ts'

const seconds = (description: string) => Type.Number({ minimum: 0, description })

export const attemptSecondsSchema = Type.Object(
  {
    median: seconds('Half of them took at most this long'),
    p95: seconds('All but one in twenty took at most this long'),
    attempts: count({ description: 'How many there were' }),
  },
  { description: 'How long the attempts took that finished a partition, within a fifth' },
)
export type AttemptSeconds = Static<typeof attemptSecondsSchema>

export const stragglerSchema = Type.Object(
  {
    partition_name: Type.String({ examples: ['orders-2026-03-0-7'] }),
    holder: orNull(Type.String({ description: 'The instance that holds the lease, if it named itself' })),
    startedAt: timestamp({ description: 'When the lease began' }),
    leaseExpiresAt: timestamp(),
    expectedSeconds: seconds('How long an attempt of its size takes, by what others took'),
  },
  { description: 'A leased partition that takes much longer than others of its task' },
)
export type Straggler = Static<typeof stragglerSchema>

export const attemptSchema = Type.Object(
  {
    attempt: count({
      description: 'Its number; an attempt that was released has the number of the next one',
    }),
    holder: orNull(Type.String({ description: 'The instance that held the lease, if it named itself' })),
    startedAt: timestamp({ description: 'When the lease began' }),
    endedAt: orNull(timestamp({ description: 'Null while it runs' })),
    outcome: orNull(
      oneOf(attemptOutcomes, {
        description: 'expired: the lease ran out or was taken back; delivered: being handed out settled it',
      }),
    ),
    reason: orNull(Type.String({ description: 'Why it failed or was given back; long ones are cut' })),
    records: orNull(count({ description: 'What the worker says it processed' })),
  },
  { description: 'One attempt of a partition' },
)
export type Attempt = Static<typeof attemptSchema>

export const failureSchema = Type.Object(
  {
    outcome: oneOf(failureOutcomes),
    reason: orNull(Type.String({ description: 'The first line of what workers said' })),
    count: count({ description: 'Attempts that ended this way' }),
    firstAt: timestamp(),
    lastAt: timestamp(),
  },
  { description: 'Attempts of a task that came to nothing for the same reason' },
)
export type Failure = Static<typeof failureSchema>

const leaseState = {
  state: oneOf(partitionStates),
  attempts: count({ description: 'Attempts begun' }),
}

const settled = {
  reportedRecords: orNull(count({ description: 'What the worker says it processed' })),
  calledBackAt: timestamp(),
  settledAt: orNull(timestamp({ description: 'When it was done' })),
}

const kept = {
  fields: Type.Optional(
    Type.Unsafe<Record<string, unknown>>({
      type: 'object',
      additionalProperties: true,
      description:
        'What its descriptor had beyond the contract, where the service keeps it; absent if nothing',
      examples: [{ snapshot: 's3://results/orders/0-7' }],
    }),
  ),
  traceparent: Type.Optional(traceparent()),
}

const attempts = {
  lastReason: orNull(Type.String({ description: 'Why it last failed or was given back' })),
  history: Type.Array(attemptSchema, {
    maxItems: MAX_LISTED_ATTEMPTS,
    description: 'Its latest attempts, oldest first, up to the one that runs or has finished it',
  }),
}

export function partitionRowSchema(tableField: string = DEFAULT_TABLE_FIELD) {
  return Type.Object(
    {
      ...descriptorFields(tableField),
      ...leaseState,
      holder: orNull(
        Type.String({ description: 'The instance that holds the live lease, if it named itself' }),
      ),
      leaseExpiresAt: orNull(timestamp()),
      readyAt: orNull(timestamp({ description: 'When the back-off ends' })),
      ...attempts,
      ...settled,
      ...kept,
    },
    { description: 'A partition and where it stands' },
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
    { description: 'One line of a task manifest: what was called back and what became of it' },
  )
}
export type ManifestLine = Static<ReturnType<typeof manifestLineSchema>>
