import Type, { type Static, type TSchema } from 'typebox'
import { Compile } from 'typebox/schema'
import type { ObjectShape } from '../field-faults.ts'
import {
  DEFAULT_TABLE_FIELD,
  MAX_PARTITION_NAME_LENGTH,
  MAX_TABLE_NAME_LENGTH,
  MAX_TASK_ID_LENGTH,
} from '../limits.ts'
import { qualifiedTableName, taskIdText, wellFormedText } from '../text-form.ts'
import type { UnknownFields } from '../unknown-fields.ts'
import { count } from './schema-parts.ts'

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

/**
 * Texts of a called-back partition that few partitions have, and that are never empty: the optional
 * properties of a descriptor, and `extraFields`, which are its fields beyond the contract as the text of one
 * JSON object.
 */
export const optionalFields = ['extraFields'] as const
export type OptionalField = (typeof optionalFields)[number]

/**
 * The five properties of a descriptor, with the table field under the name that this deployment uses on the
 * wire.
 */
export function descriptorFields(tableField: string = DEFAULT_TABLE_FIELD): typeof descriptorProperties {
  if (tableField === DEFAULT_TABLE_FIELD) return descriptorProperties
  if (tableField === '' || tableField === '__proto__' || Object.hasOwn(descriptorProperties, tableField)) {
    throw new RangeError(`the table field cannot be named ${JSON.stringify(tableField)}`)
  }
  const { taskId, [DEFAULT_TABLE_FIELD]: table, ...others } = descriptorProperties
  // The static type keeps the default name, which is the only one used inside a program.
  return { taskId, [tableField]: table, ...others } as unknown as typeof descriptorProperties
}

export function descriptorSchema(tableField: string = DEFAULT_TABLE_FIELD): typeof defaultDescriptorSchema {
  if (tableField === DEFAULT_TABLE_FIELD) return defaultDescriptorSchema
  return Type.Object(descriptorFields(tableField), {
    additionalProperties: false,
    description: 'One partition of a task, as its producer describes it',
  })
}

/** Checks a single descriptor. The shape explains a refusal. */
interface DescriptorCheck {
  shape: ObjectShape
  matches: (value: unknown) => value is Record<string, unknown>
}

/** A cache, because compiling is slow and a deployment uses one combination. */
const made = new Map<string, DescriptorCheck>()

export function descriptorCheck(tableField: string, unknownFields: UnknownFields): DescriptorCheck {
  const key = `${unknownFields} ${tableField}`
  let check = made.get(key)
  if (check === undefined) {
    check = makeCheck(tableField, unknownFields)
    made.set(key, check)
  }
  return check
}

/**
 * The schema is compiled without its patterns. In one array nearly all task ids and table names are the same
 * text, so their patterns are tested only when the text changes. Partition names need no pattern test,
 * because a name must parse as the task id and digits.
 */
function makeCheck(tableField: string, unknownFields: UnknownFields): DescriptorCheck {
  const { properties, required } = descriptorSchema(tableField)
  const structure = Compile(
    Type.Object(
      Object.fromEntries(
        Object.entries(properties).map(([field, schema]) => [field, withoutPattern(schema)]),
      ),
      { additionalProperties: unknownFields !== 'refuse' },
    ),
  )
  const fields = properties as Record<string, TSchema>
  const taskIdFits = patternTest(fields['taskId'])
  const tableFits = patternTest(fields[tableField])
  return {
    shape: { properties, required, aliases: { [DEFAULT_TABLE_FIELD]: tableField } },
    matches: (value): value is Record<string, unknown> =>
      structure.Check(value) &&
      taskIdFits((value as Record<string, string>)['taskId'] as string) &&
      tableFits((value as Record<string, string>)[tableField] as string),
  }
}

function withoutPattern(schema: TSchema): TSchema {
  const { pattern: _, ...others } = schema as TSchema & { pattern?: unknown }
  return Type.Unsafe(others)
}

/** Caches the last text that matched. */
function patternTest(schema: TSchema | undefined): (text: string) => boolean {
  const form = new RegExp((schema as { pattern?: string } | undefined)?.pattern ?? '', 'u')
  let fitting: string | undefined
  return (text) => {
    if (text === fitting) return true
    if (!form.test(text)) return false
    fitting = text
    return true
  }
}
