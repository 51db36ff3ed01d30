import Type, { type Static } from 'typebox'
import { count, orNull, timestamp } from './schema-parts.ts'

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
