import Type, { type Static } from 'typebox'
import { MAX_PARTITION_NAME_LENGTH, MAX_RETRIED_BY_NAME } from '../limits.ts'
import { taskStates } from '../states.ts'
import { wellFormedText } from '../text-form.ts'
import { count, oneOf } from './schema-parts.ts'

export const retryRequestSchema = Type.Object(
  {
    level: Type.Optional(count({ description: 'Only this level' })),
    partitions: Type.Optional(
      Type.Array(
        Type.String({
          minLength: 1,
          maxLength: MAX_PARTITION_NAME_LENGTH,
          pattern: wellFormedText.pattern,
          examples: ['orders-2026-03-0-7'],
        }),
        { minItems: 1, maxItems: MAX_RETRIED_BY_NAME, description: 'Only these, by partition_name' },
      ),
    ),
    done: Type.Optional(
      Type.Boolean({ description: 'Also run again what is done already; never without saying so' }),
    ),
  },
  {
    additionalProperties: false,
    description: 'Which partitions get fresh attempts; with nothing said, all that are parked',
  },
)
export type RetryRequest = Static<typeof retryRequestSchema>

export const sealRequestSchema = Type.Object(
  {
    partitions: Type.Optional(
      count({
        description: 'How many partitions the task has in all; the task then tells how many are missing',
        examples: [42],
      }),
    ),
  },
  {
    additionalProperties: false,
    description:
      'Says that no more partitions will come: new ones are refused, however many are expected in all',
  },
)
export type SealRequest = Static<typeof sealRequestSchema>

export const levelBarrierRequestSchema = Type.Object(
  { enabled: Type.Optional(Type.Boolean({ default: true, description: 'False takes the barrier away' })) },
  {
    additionalProperties: false,
    description: 'Whether a level of the task waits until all lower ones are finished',
  },
)
export type LevelBarrierRequest = Static<typeof levelBarrierRequestSchema>

export const controlAnswerSchema = Type.Object(
  {
    taskId: Type.String({ examples: ['orders-2026-03'] }),
    state: oneOf(taskStates, { description: 'The state of the task now' }),
    changed: count({ description: 'Partitions that the request has moved or will move' }),
  },
  { description: 'What a control request did' },
)
export type ControlAnswer = Static<typeof controlAnswerSchema>
