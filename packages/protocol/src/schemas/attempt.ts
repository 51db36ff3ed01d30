import Type, { type Static } from 'typebox'
import { attemptOutcomes, failureOutcomes } from '../states.ts'
import { count, oneOf, orNull, timestamp } from './schema-parts.ts'

const seconds = (description: string) => Type.Number({ minimum: 0, description })

export const attemptSecondsSchema = Type.Object(
  {
    median: seconds('Half of them took at most so long'),
    p95: seconds('All but one in twenty took at most so long'),
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
    count: count({ description: 'Attempts that ended so' }),
    firstAt: timestamp(),
    lastAt: timestamp(),
  },
  { description: 'Attempts of a task that came to nothing for the same reason' },
)
export type Failure = Static<typeof failureSchema>
