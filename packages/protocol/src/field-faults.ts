import type { TSchema } from 'typebox'
import { ruleOfPattern } from './text-form.ts'
import {
  type CheckFailure,
  describeValue,
  pointerTo,
  quoted,
  soleViolation,
  ViolationList,
} from './violations.ts'

/** How the service handles fields of a descriptor that are not in the contract. */
export const unknownFieldRules = ['refuse', 'ignore', 'keep'] as const
export type UnknownFields = (typeof unknownFieldRules)[number]

const MAX_EDITS = 2

/** Returns the candidate that a misspelt field name is most likely intended to be. */
export function didYouMean(field: string, candidates: readonly string[]): string | undefined {
  const sought = simplified(field)
  let best: string | undefined
  let fewest = MAX_EDITS + 1
  for (const candidate of candidates) {
    const target = simplified(candidate)
    // Comparing the lengths first keeps very long hostile names cheap.
    if (Math.abs(target.length - sought.length) > MAX_EDITS) continue
    const edits = editDistance(sought, target)
    if (edits < fewest) {
      fewest = edits
      best = candidate
    }
  }
  return best
}

/** The contract mixes camelCase and snake_case, so names that differ only in style count as equal. */
function simplified(name: string): string {
  return name.replaceAll(/[_\-\s]/g, '').toLowerCase()
}

function editDistance(one: string, other: string): number {
  // Paths and settings often start alike; what is equal at the start needs no table.
  let start = 0
  while (start < one.length && one[start] === other[start]) start += 1
  const from = one.slice(start)
  const to = other.slice(start)
  let previous = Array.from({ length: to.length + 1 }, (_, column) => column)
  for (let row = 1; row <= from.length; row += 1) {
    const current = [row]
    for (let column = 1; column <= to.length; column += 1) {
      const substitution = (previous[column - 1] ?? 0) + (from[row - 1] === to[column - 1] ? 0 : 1)
      const deletion = (previous[column] ?? 0) + 1
      const insertion = (current[column - 1] ?? 0) + 1
      current.push(Math.min(substitution, deletion, insertion))
    }
    previous = current
  }
  return previous[to.length] ?? 0
}

/** A fault in one field of an object. The field may be missing or unknown. */
export interface FieldFault {
  field: string
  /** The position of the element if the field is an array, or the name of the field in it if it is an object. */
  element?: number | string
  detail: () => string
}

export interface ObjectShape {
  required?: readonly string[]
  properties: Readonly<Record<string, TSchema>>
  /**
   * The field that another name refers to, for example the default name of the table field. Gives better
   * suggestions than the spelling alone.
   */
  aliases?: Readonly<Record<string, string>>
  /** What to do about a field that resembles none of the shape. */
  advice?: string
}

/** The JSON Schema keywords that scalar fields of the protocol use. */
interface ScalarKeywords {
  type?: string | readonly string[]
  minimum?: number
  maximum?: number
  minLength?: number
  maxLength?: number
  pattern?: string
  enum?: readonly string[]
}

/**
 * Lists the faults of an object's fields, worded after their schema: first the fields that are present, in
 * document order, then the missing ones. Runs only for objects that already failed their compiled check.
 */
export function fieldFaults(
  shape: ObjectShape,
  subject: Record<string, unknown>,
  unknownFields: UnknownFields,
): FieldFault[] {
  const faults: FieldFault[] = []
  for (const field of Object.keys(subject)) {
    const known = Object.hasOwn(shape.properties, field) ? shape.properties[field] : undefined
    if (known !== undefined && isArraySchema(known)) {
      faults.push(...arrayFaults(field, known, subject[field]))
    } else if (known !== undefined && isObjectSchema(known)) {
      faults.push(...nestedFaults(field, known, subject[field], unknownFields))
    } else if (known !== undefined) {
      const rule = brokenRule(known, subject[field])
      if (rule !== undefined) {
        faults.push({ field, detail: () => `${field} ${rule}, got ${describeValue(subject[field])}` })
      }
    } else if (unknownFields === 'refuse') {
      faults.push({ field, detail: () => unknownField(shape, subject, field) })
    }
  }
  for (const field of shape.required ?? []) {
    if (!Object.hasOwn(subject, field)) faults.push({ field, detail: () => `${field} is missing` })
  }
  return faults
}

interface ArrayKeywords {
  type: 'array'
  items: TSchema
  minItems?: number
  maxItems?: number
}

function isArraySchema(schema: TSchema): schema is TSchema & ArrayKeywords {
  return (schema as { type?: unknown }).type === 'array'
}

function arrayFaults(
  field: string,
  { items, minItems, maxItems }: ArrayKeywords,
  value: unknown,
): FieldFault[] {
  const fault = (rule: string) => [{ field, detail: () => `${field} ${rule}` }]
  if (!Array.isArray(value)) return fault(`must be an array, got ${describeValue(value)}`)
  if (value.length < (minItems ?? 0)) return fault('must not be empty; omit it or add an element')
  if (maxItems !== undefined && value.length > maxItems) {
    return fault(`must have at most ${maxItems} elements, got ${value.length}`)
  }
  return value.flatMap((one: unknown, element) => {
    const rule = brokenRule(items, one)
    const detail = () => `each element of ${field} ${rule}, got ${describeValue(one)}`
    return rule === undefined ? [] : [{ field, element, detail }]
  })
}

/** An object in the object. It may be null if its schema says so. */
function isObjectSchema(schema: TSchema): schema is TSchema & ObjectShape {
  const { type } = schema as { type?: unknown }
  return type === 'object' || (Array.isArray(type) && type[0] === 'object')
}

function nestedFaults(
  field: string,
  shape: TSchema & ObjectShape,
  value: unknown,
  unknownFields: UnknownFields,
): FieldFault[] {
  const isNullable = Array.isArray((shape as { type?: unknown }).type)
  if (value === null && isNullable) return []
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    const kinds = isNullable ? 'an object or null' : 'an object'
    return [{ field, detail: () => `${field} must be ${kinds}, got ${describeValue(value)}` }]
  }
  return fieldFaults(shape, value as Record<string, unknown>, unknownFields).map((fault) => ({
    field,
    element: fault.field,
    detail: fault.detail,
  }))
}

/** The rule of a scalar schema that a value breaks. Phrased to follow the field's name. */
export function brokenRule(schema: TSchema, value: unknown): string | undefined {
  const rules = schema as ScalarKeywords
  if (Array.isArray(rules.type)) {
    const [type] = rules.type
    const rule = value === null ? undefined : brokenRule({ ...schema, type }, value)
    return rule === undefined ? undefined : `${rule}, or null`
  }
  switch (rules.type) {
    case 'integer':
      return brokenNumberRule(rules, value, 'integer')
    case 'number':
      return brokenNumberRule(rules, value, 'number')
    case 'string':
      return brokenTextRule(rules, value)
    case 'boolean':
      return typeof value === 'boolean' ? undefined : 'must be true or false'
    default:
      throw new TypeError(`no wording for a schema of type ${rules.type}`)
  }
}

function brokenNumberRule(rules: ScalarKeywords, value: unknown, noun: string): string | undefined {
  const { minimum = -Infinity, maximum = Infinity } = rules
  const right = noun === 'integer' ? Number.isInteger(value) : Number.isFinite(value)
  if (!right || (value as number) < minimum) {
    return minimum === 0
      ? `must be a non-negative ${noun}`
      : `must be ${noun === 'integer' ? 'an integer' : 'a number'} of at least ${minimum}`
  }
  return (value as number) > maximum ? `must be at most ${maximum}` : undefined
}

function brokenTextRule(rules: ScalarKeywords, value: unknown): string | undefined {
  if (rules.enum !== undefined) {
    const words = rules.enum.map((word) => JSON.stringify(word)).join(', ')
    return rules.enum.includes(value as string) ? undefined : `must be one of ${words}`
  }
  if (typeof value !== 'string') return 'must be a string'
  if (value === '' && (rules.minLength ?? 0) > 0) return 'must not be empty'
  // JSON Schema counts code points. A string never has more code points than code units.
  if (
    rules.maxLength !== undefined &&
    value.length > rules.maxLength &&
    [...value].length > rules.maxLength
  ) {
    return `must have at most ${rules.maxLength} characters`
  }
  if (rules.pattern !== undefined && !new RegExp(rules.pattern, 'u').test(value)) {
    return ruleOfPattern(rules.pattern, value)
  }
  return undefined
}

function unknownField(shape: ObjectShape, subject: Record<string, unknown>, field: string): string {
  const absent = Object.keys(shape.properties).filter((name) => !Object.hasOwn(subject, name))
  const alias = Object.hasOwn(shape.aliases ?? {}, field) ? shape.aliases?.[field] : undefined
  const suggestion = alias !== undefined && absent.includes(alias) ? alias : didYouMean(field, absent)
  const advice = suggestion === undefined ? (shape.advice ?? 'remove it') : `did you mean ${suggestion}?`
  return `${quoted(field)} is not a field of the contract; ${advice}`
}

/** Lists all faults of a body that should be one object. The body is known to be invalid. */
export function objectFaults(shape: ObjectShape, body: unknown): CheckFailure {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) {
    return soleViolation('', `the body must be ${expected(shape)}, got ${describeValue(body)}`)
  }
  const violations = new ViolationList()
  for (const { field, element, detail } of fieldFaults(shape, body as Record<string, unknown>, 'refuse')) {
    const pointer = pointerTo('', field)
    violations.add(element === undefined ? pointer : pointerTo(pointer, element), detail)
  }
  return violations.failure()
}

function expected({ properties }: ObjectShape): string {
  const fields = Object.keys(properties)
  if (fields.length === 0) return 'omitted, or an empty object'
  const words = fields.length === 1 ? fields : [fields.slice(0, -1).join(', '), fields.at(-1)]
  return `an object with ${words.join(' or ')}`
}
