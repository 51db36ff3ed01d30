import { InexactNumber } from './exact-json.ts'
import type { FieldFault, ObjectShape } from './field-faults.ts'
import { DEFAULT_TABLE_FIELD, MAX_EXTRA_FIELDS_BYTES, MAX_EXTRA_FIELDS_DEPTH } from './limits.ts'
import { quoted } from './violation.ts'

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
    ? 'is how the contract names the compute table, which has another name at this service; choose another name'
    : 'is a field that the service adds to a pulled partition; choose another name'

const tooLong = (field: string): FieldFault => ({
  field,
  detail: () =>
    `with ${quoted(field)} the fields beyond the contract take more than ${MAX_EXTRA_FIELDS_BYTES} bytes as JSON; ` +
    'keep what is larger elsewhere, and send where it is',
})

/** Why a value would not survive storing it and handing it out. Phrased to follow the field's name. */
function brokenRule(value: unknown, depth = 0): string | undefined {
  if (value instanceof InexactNumber) return brokenRule(Number(value.text), depth)
  switch (typeof value) {
    case 'number':
      // JavaScript cannot represent larger integers exactly.
      return Number.isSafeInteger(value) || (Number.isFinite(value) && !Number.isInteger(value))
        ? undefined
        : 'holds a number beyond 2^53 - 1, which would not be handed out as it was sent; send it as a string'
    case 'bigint':
      return 'holds a BigInt, for which JSON has no form; send it as a string'
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
