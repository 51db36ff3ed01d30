import Type, { type Static } from 'typebox'
import { settingKeywords } from '../setting-keywords.ts'
import { orNull } from './schema-parts.ts'

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
