import Type, { type Static } from 'typebox'
import { MAX_FAILURE_KEY_LENGTH, MAX_PARTITION_NAME_LENGTH, MAX_RETRIED_BY_NAME } from '../limits.ts'
import { pauseAfterFailuresKeywords, settingKeywords } from '../setting-keywords.ts'
import { taskStates } from '../states.ts'
import { printableText, wellFormedText } from '../text-form.ts'
import { count, oneOf, orNull } from './schema-parts.ts'

export const retryRequestSchema = Type.Object(
  {
    level: Type.Optional(count({ description: 'Only partitions of this level' })),
    partitions: Type.Optional(
      Type.Array(
        Type.String({
          minLength: 1,
          maxLength: MAX_PARTITION_NAME_LENGTH,
          pattern: wellFormedText.pattern,
          examples: ['orders-2026-03-0-7'],
        }),
        { minItems: 1, maxItems: MAX_RETRIED_BY_NAME, description: 'Only partitions with these names' },
      ),
    ),
    reason: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: MAX_FAILURE_KEY_LENGTH,
        description: 'Only partitions that are parked for this reason: a `key` of the failures of the task',
        examples: ['compute-table-is-locked-0mofb80'],
      }),
    ),
    done: Type.Optional(Type.Boolean({ description: 'Also run done partitions again; false by default' })),
  },
  {
    additionalProperties: false,
    description: 'Which partitions to retry; all parked partitions by default',
    examples: [{ partitions: ['orders-2026-03-0-7'] }],
  },
)
export type RetryRequest = Static<typeof retryRequestSchema>

export const sealRequestSchema = Type.Object(
  {
    partitions: Type.Optional(
      count({
        description: 'Total number of partitions of the task. The task then shows how many are missing',
        examples: [42],
      }),
    ),
  },
  {
    additionalProperties: false,
    description: 'Seals the task: new partitions are refused, even if fewer were called back than expected',
  },
)
export type SealRequest = Static<typeof sealRequestSchema>

export const ownerRequestSchema = Type.Object(
  {
    name: Type.String({
      minLength: 1,
      maxLength: 200,
      pattern: printableText.pattern,
      description: 'The name of a token in the tokens file',
      examples: ['orders compute'],
    }),
  },
  {
    additionalProperties: false,
    description: 'Gives the task to another producer, which then may call it back, view, seal and set it',
  },
)
export type OwnerRequest = Static<typeof ownerRequestSchema>

export const levelBarrierRequestSchema = Type.Object(
  { enabled: Type.Optional(Type.Boolean({ default: true, description: 'False removes the level barrier' })) },
  {
    additionalProperties: false,
    description: 'Whether each level of the task waits until all lower levels are finished',
  },
)
export type LevelBarrierRequest = Static<typeof levelBarrierRequestSchema>

export const controlAnswerSchema = Type.Object(
  {
    taskId: Type.String({ examples: ['orders-2026-03'] }),
    state: oneOf(taskStates, { description: 'The state of the task after the request' }),
    changed: count({ description: 'Number of partitions that the request changed or will change' }),
  },
  { description: 'The result of a control request' },
)
export type ControlAnswer = Static<typeof controlAnswerSchema>

const { levelBarrier, pauseAfterFailures, ...numbers } = settingKeywords

const settingFields = {
  leaseSeconds: Type.Number(numbers.leaseSeconds),
  maxAttempts: Type.Integer(numbers.maxAttempts),
  backoffSeconds: Type.Number(numbers.backoffSeconds),
  backoffMaxSeconds: Type.Number(numbers.backoffMaxSeconds),
  levelBarrier: Type.Boolean(levelBarrier),
  maxLeases: Type.Integer(numbers.maxLeases),
  weight: Type.Number(numbers.weight),
}

const pauseAfterFailuresShape = Type.Object(
  {
    share: Type.Number(pauseAfterFailuresKeywords.share),
    of: Type.Integer(pauseAfterFailuresKeywords.of),
  },
  { additionalProperties: false, ...pauseAfterFailures },
)
const pauseAfterFailuresOrNull = Type.Unsafe<Static<typeof pauseAfterFailuresShape> | null>({
  ...pauseAfterFailuresShape,
  type: ['object', 'null'],
})

export const taskSettingsRequestSchema = Type.Object(
  {
    leaseSeconds: Type.Optional(orNull(settingFields.leaseSeconds)),
    maxAttempts: Type.Optional(orNull(settingFields.maxAttempts)),
    backoffSeconds: Type.Optional(orNull(settingFields.backoffSeconds)),
    backoffMaxSeconds: Type.Optional(orNull(settingFields.backoffMaxSeconds)),
    levelBarrier: Type.Optional(orNull(settingFields.levelBarrier)),
    maxLeases: Type.Optional(orNull(settingFields.maxLeases)),
    weight: Type.Optional(orNull(settingFields.weight)),
    pauseAfterFailures: Type.Optional(pauseAfterFailuresOrNull),
  },
  {
    additionalProperties: false,
    description:
      'Settings of one task. A setting that is omitted stays as it is; null goes back to the value of the service',
    examples: [{ leaseSeconds: 600, maxLeases: 16 }],
  },
)
export type TaskSettingsRequest = Static<typeof taskSettingsRequestSchema>

export const taskSettingsSchema = Type.Object(
  {
    ...settingFields,
    maxLeases: orNull(settingFields.maxLeases),
    pauseAfterFailures: pauseAfterFailuresOrNull,
    own: Type.Array(Type.String({ examples: ['leaseSeconds'] }), {
      description: 'The settings that are set for this task; the others have the values of the service',
    }),
  },
  { description: 'The settings that apply to a task' },
)
export type TaskSettings = Static<typeof taskSettingsSchema>

export const taskSettingsAnswerSchema = Type.Object(
  { taskId: Type.String({ examples: ['orders-2026-03'] }), settings: taskSettingsSchema },
  { description: 'The settings that apply to a task' },
)
export type TaskSettingsAnswer = Static<typeof taskSettingsAnswerSchema>
