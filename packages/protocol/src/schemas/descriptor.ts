import Type, { type Static, type TSchema } from 'typebox'
import { Compile } from 'typebox/schema'
import { InexactNumber } from '../exact-json.ts'
import type { FieldFault, ObjectShape, UnknownFields } from '../field-faults.ts'
import {
  DEFAULT_TABLE_FIELD,
  MAX_EXTRA_FIELDS_BYTES,
  MAX_EXTRA_FIELDS_DEPTH,
  MAX_PARTITION_NAME_LENGTH,
  MAX_TABLE_NAME_LENGTH,
  MAX_TASK_ID_LENGTH,
} from '../limits.ts'
import { qualifiedTableName, taskIdText, wellFormedText } from '../text-form.ts'
import { quoted } from '../violations.ts'
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
    description: 'The compute table that contains the records, as <schema>.<table>',
    examples: ['results.orders'],
  }),
  partition_name: Type.String({
    minLength: 1,
    maxLength: MAX_PARTITION_NAME_LENGTH,
    pattern: wellFormedText.pattern,
    description: 'The name of the partition, as <taskId>-<group>-<index>; unique within the task',
    examples: ['orders-2026-03-0-7'],
  }),
  record_count: count({ description: 'Number of records in the partition', examples: [25000] }),
  priorityLevel: count({
    description:
      'The level of the partition. Level 0 is handed out first. Must equal the group in partition_name',
    examples: [0],
  }),
}

const defaultDescriptorSchema = Type.Object(descriptorProperties, {
  additionalProperties: false,
  description: 'One partition of a task, as its producer describes it',
})

export type PartitionDescriptor = Static<typeof defaultDescriptorSchema>

const UNKNOWN_FIELD_ADVICE =
  'remove it, or start the service with --unknown-fields keep to hand it to the worker'

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
 * Three fields are compiled without their patterns. In one array nearly all task ids and table names are the
 * same text, so their patterns are tested only when the text changes. Partition names need no pattern test,
 * because a name must parse as the task id and digits.
 */
function makeCheck(tableField: string, unknownFields: UnknownFields): DescriptorCheck {
  const { properties, required } = descriptorSchema(tableField)
  const fields: Record<string, TSchema> = { ...properties }
  for (const field of ['taskId', tableField, 'partition_name']) fields[field] = withoutPattern(fields[field])
  const structure = Compile({
    type: 'object',
    required,
    properties: fields,
    additionalProperties: unknownFields !== 'refuse',
  })
  const taskIdFits = patternTest(properties.taskId)
  const tableFits = patternTest((properties as Record<string, TSchema>)[tableField])
  return {
    shape: {
      properties,
      required,
      aliases: { [DEFAULT_TABLE_FIELD]: tableField },
      advice: UNKNOWN_FIELD_ADVICE,
    },
    matches: (value): value is Record<string, unknown> =>
      structure.Check(value) &&
      taskIdFits((value as Record<string, string>)['taskId'] as string) &&
      tableFits((value as Record<string, string>)[tableField] as string),
  }
}

function withoutPattern(schema: TSchema | undefined): TSchema {
  const { pattern: _, ...others } = schema as TSchema & { pattern?: unknown }
  return others
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

/**
 * Fields that a pulled partition has in addition to its descriptor, and the contract's name of the table
 * field, in case the deployment uses another name on the wire.
 */
const reserved = new Set(['lease', 'traceparent', DEFAULT_TABLE_FIELD])

export interface ExtraFields {
  /** The text of one JSON object, with the fields in their original order. Null if there are none. */
  readonly text: string | null
  readonly faults: readonly FieldFault[]
}

/**
 * Returns the fields of a descriptor beyond the contract, and the reasons why some of them cannot be kept.
 */
export function extraFieldsOf(descriptor: Record<string, unknown>, { properties }: ObjectShape): ExtraFields {
  const faults: FieldFault[] = []
  let text = ''
  let bytes = 2
  for (const field of Object.keys(descriptor)) {
    if (Object.hasOwn(properties, field)) continue
    const rule = reserved.has(field) ? reservedRule(field) : brokenRule(descriptor[field])
    if (rule !== undefined) {
      faults.push({ field, detail: () => `${quoted(field)} ${rule}` })
      continue
    }
    const value = JSON.stringify(descriptor[field])
    // An object from a program may have values without a JSON form. JSON.stringify omits these.
    if (value === undefined) continue
    const member = `${text === '' ? '' : ','}${JSON.stringify(field)}:${value}`
    bytes += utf8Length(member)
    if (bytes > MAX_EXTRA_FIELDS_BYTES) {
      faults.push(tooLong(field))
      break
    }
    text += member
  }
  return { text: text === '' ? null : `{${text}}`, faults }
}

const reservedRule = (field: string) =>
  field === DEFAULT_TABLE_FIELD
    ? 'is reserved: it is the name of the compute table field in the contract, and this service uses another name for that field'
    : 'is reserved for a field that the service adds to pulled partitions; choose another name'

const tooLong = (field: string): FieldFault => ({
  field,
  detail: () =>
    `with ${quoted(field)}, the additional fields exceed ${MAX_EXTRA_FIELDS_BYTES} bytes of JSON; ` +
    'store large values elsewhere and send a reference',
})

/** Why a value would not survive storing it and handing it out. Phrased to follow the field's name. */
function brokenRule(value: unknown, depth = 0): string | undefined {
  if (value instanceof InexactNumber) return brokenRule(Number(value.text), depth)
  switch (typeof value) {
    case 'number':
      // JavaScript cannot represent larger integers exactly.
      return Number.isSafeInteger(value) || (Number.isFinite(value) && !Number.isInteger(value))
        ? undefined
        : 'contains a number beyond 2^53 - 1, which cannot be represented exactly; send it as a string'
    case 'bigint':
      return 'contains a BigInt, which JSON cannot represent; send it as a string'
    case 'object':
      break
    default:
      return undefined
  }
  if (value === null) return undefined
  if (depth === MAX_EXTRA_FIELDS_DEPTH) return `is nested more than ${MAX_EXTRA_FIELDS_DEPTH} levels deep`
  for (const one of Object.values(value as object)) {
    const rule = brokenRule(one, depth + 1)
    if (rule !== undefined) return rule
  }
  return undefined
}

/** The text must have no lone surrogates; JSON.stringify escapes them. */
function utf8Length(text: string): number {
  let bytes = 0
  for (const character of text) {
    const code = character.codePointAt(0) ?? 0
    bytes += code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x1_0000 ? 3 : 4
  }
  return bytes
}
