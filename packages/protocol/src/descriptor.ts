import Type, { type Static } from 'typebox'
import { MAX_PARTITION_NAME_LENGTH, MAX_TABLE_NAME_LENGTH, MAX_TASK_ID_LENGTH } from './limits.ts'
import { count } from './schema-parts.ts'
import { DEFAULT_TABLE_FIELD } from './table-field.ts'
import { qualifiedTableName, taskIdText, wellFormedText } from './text-form.ts'

const descriptorProperties = {
  taskId: Type.String({
    minLength: 1,
    maxLength: MAX_TASK_ID_LENGTH,
    pattern: taskIdText.pattern,
    description: 'The task that the partition belongs to',
    examples: ['orders-2026-03'],
  }),
  [DEFAULT_TABLE_FIELD]: Type.String({
    minLength: 1,
    maxLength: MAX_TABLE_NAME_LENGTH,
    pattern: qualifiedTableName.pattern,
    description: 'The compute table that holds the records, as <schema>.<table>',
    examples: ['results.orders'],
  }),
  partition_name: Type.String({
    minLength: 1,
    maxLength: MAX_PARTITION_NAME_LENGTH,
    pattern: wellFormedText.pattern,
    description: 'Names the partition within its task, as <taskId>-<group>-<index>',
    examples: ['orders-2026-03-0-7'],
  }),
  record_count: count({ description: 'How many records the partition holds', examples: [25000] }),
  priorityLevel: count({
    description: 'The level; partitions of level 0 are handed out first. Equals the group in the name',
    examples: [0],
  }),
}

const defaultDescriptorSchema = Type.Object(descriptorProperties, {
  additionalProperties: false,
  description: 'One partition of a task, as its producer describes it',
})

export type PartitionDescriptor = Static<typeof defaultDescriptorSchema>

/** The five properties, with the table under the name that this deployment uses on the wire. */
export function descriptorFields(tableField: string = DEFAULT_TABLE_FIELD): typeof descriptorProperties {
  if (tableField === DEFAULT_TABLE_FIELD) return descriptorProperties
  if (tableField === '' || tableField === '__proto__' || Object.hasOwn(descriptorProperties, tableField)) {
    throw new RangeError(`the table field cannot be named ${JSON.stringify(tableField)}`)
  }
  const { taskId, [DEFAULT_TABLE_FIELD]: table, ...others } = descriptorProperties
  // The static type keeps the default name: inside a program there is only one.
  return { taskId, [tableField]: table, ...others } as unknown as typeof descriptorProperties
}

export function descriptorSchema(tableField: string = DEFAULT_TABLE_FIELD): typeof defaultDescriptorSchema {
  if (tableField === DEFAULT_TABLE_FIELD) return defaultDescriptorSchema
  return Type.Object(descriptorFields(tableField), {
    additionalProperties: false,
    description: 'One partition of a task, as its producer describes it',
  })
}
