import Type, { type Static } from 'typebox'
import { count, oneOf, timestamp } from './schemas/schema-parts.ts'
import { MAX_THROUGHPUT_POINTS, THROUGHPUT_LEVELS, throughputSteps } from './throughput-step.ts'

export const throughputPointSchema = Type.Object(
  {
    at: timestamp({ description: 'When the minute or hour began' }),
    level: Type.Optional(
      count({
        maximum: THROUGHPUT_LEVELS,
        description: `Only with \`by=level\`. Levels from ${THROUGHPUT_LEVELS} up are counted together, as ${THROUGHPUT_LEVELS}`,
      }),
    ),
    partitions: count({ description: 'Partitions that became done' }),
    records: count({ description: 'Their declared records' }),
  },
  { description: 'What became done within one minute or hour' },
)
export type ThroughputPoint = Static<typeof throughputPointSchema>

export const throughputSchema = Type.Object(
  {
    taskId: Type.String({ examples: ['orders-2026-03'] }),
    step: oneOf(throughputSteps, { description: 'How long one point is' }),
    from: timestamp({
      description: `Where the points begin: as asked for, or later where there are more than ${MAX_THROUGHPUT_POINTS}. Those before it are found with this time as \`to\``,
    }),
    to: timestamp({ description: 'Where they end; the last step may not be over yet' }),
    points: Type.Array(throughputPointSchema, {
      maxItems: MAX_THROUGHPUT_POINTS,
      description: 'Oldest first. Steps in which nothing became done are left out',
    }),
  },
  { description: 'What became done of a task, by minute or by hour' },
)
export type Throughput = Static<typeof throughputSchema>
