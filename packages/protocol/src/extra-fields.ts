import { InexactNumber } from './exact-json.ts'
import type { FieldFault, ObjectShape } from './field-faults.ts'
import { MAX_EXTRA_FIELDS_BYTES, MAX_EXTRA_FIELDS_DEPTH } from './limits.ts'
import { quoted } from './shown-value.ts'
import { DEFAULT_TABLE_FIELD } from './table-field.ts'

/** What a pulled partition has beside its descriptor; and the table's name in the contract, where the wire has another. */
const reserved = new Set(['lease', 'traceparent', DEFAULT_TABLE_FIELD])

export interface ExtraFields {
  /** The text of one JSON object, in the order in which the fields came; null where there are none. */
  readonly text: string | null
  readonly faults: readonly FieldFault[]
}

/** The fields of a descriptor beyond the contract, and why some of them cannot be kept. */
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
    // A program's own object may hold what has no JSON; it is not sent either.
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

/** Why a value would not come out as it went in; phrased to follow the field's name. */
function brokenRule(value: unknown, depth = 0): string | undefined {
  if (value instanceof InexactNumber) return brokenRule(Number(value.text), depth)
  switch (typeof value) {
    case 'number':
      // Beyond these JavaScript has another number than the one that was sent.
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

/** Of a text without lone surrogates, which JSON.stringify escapes. */
function utf8Length(text: string): number {
  let bytes = 0
  for (const character of text) {
    const code = character.codePointAt(0) ?? 0
    bytes += code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x1_0000 ? 3 : 4
  }
  return bytes
}
