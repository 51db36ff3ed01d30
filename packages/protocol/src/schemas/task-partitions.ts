import Type, { type Static } from 'typebox'
import { DEFAULT_TABLE_FIELD, MAX_LISTED_ATTEMPTS } from '../limits.ts'
import { partitionStates } from '../states.ts'
import { attemptSchema } from './attempt.ts'
import { descriptorFields } from './descriptor.ts'
import { count, oneOf, orNull, timestamp, traceparent } from './schema-parts.ts'

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

const told = {
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
      ...told,
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
    { ...descriptorFields(tableField), ...leaseState, ...told, ...settled, ...kept },
    { description: 'One line of a task manifest: what was called back and what became of it' },
  )
}
export type ManifestLine = Static<ReturnType<typeof manifestLineSchema>>
