import Type, { type Static } from 'typebox'
import { MAX_PARTITION_NAME_LENGTH, MAX_RETRIED_BY_NAME } from '../limits.ts'
import { settingKeywords } from '../setting-keywords.ts'
import { taskStates } from '../states.ts'
import { wellFormedText } from '../text-form.ts'
import { count, oneOf, orNull } from './schema-parts.ts'

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
      Type.Boolean({ description: 'Also run again what is done already; otherwise never' }),
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

const { levelBarrier, ...numbers } = settingKeywords

const settingFields = {
  leaseSeconds: Type.Number(numbers.leaseSeconds),
  maxAttempts: Type.Integer(numbers.maxAttempts),
  backoffSeconds: Type.Number(numbers.backoffSeconds),
  backoffMaxSeconds: Type.Number(numbers.backoffMaxSeconds),
  levelBarrier: Type.Boolean(levelBarrier),
  maxLeases: Type.Integer(numbers.maxLeases),
  weight: Type.Number(numbers.weight),
}

export const taskSettingsRequestSchema = Type.Object(
  {
    leaseSeconds: Type.Optional(settingFields.leaseSeconds),
    maxAttempts: Type.Optional(settingFields.maxAttempts),
    backoffSeconds: Type.Optional(settingFields.backoffSeconds),
    backoffMaxSeconds: Type.Optional(settingFields.backoffMaxSeconds),
    levelBarrier: Type.Optional(settingFields.levelBarrier),
    maxLeases: Type.Optional(settingFields.maxLeases),
    weight: Type.Optional(settingFields.weight),
  },
  {
    additionalProperties: false,
    description:
      'The settings of one task, in place of those it had; what is left out is as the service is set. ' +
      'A level barrier that is left out stays as it is',
  },
)
export type TaskSettingsRequest = Static<typeof taskSettingsRequestSchema>

export const taskSettingsSchema = Type.Object(
  {
    ...settingFields,
    maxLeases: orNull(settingFields.maxLeases),
    own: Type.Array(Type.String({ examples: ['leaseSeconds'] }), {
      description: 'Which of them are set for this task; the others are as the service is set',
    }),
  },
  { description: 'The settings that hold for a task' },
)
export type TaskSettings = Static<typeof taskSettingsSchema>

export const taskSettingsAnswerSchema = Type.Object(
  { taskId: Type.String({ examples: ['orders-2026-03'] }), settings: taskSettingsSchema },
  { description: 'What holds for the task from now on' },
)
export type TaskSettingsAnswer = Static<typeof taskSettingsAnswerSchema>
