import Type, { type Static } from 'typebox'
import { attemptOutcomes, failureOutcomes } from './attempt-outcome.ts'
import { count, oneOf, orNull, timestamp } from './schema-parts.ts'

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
