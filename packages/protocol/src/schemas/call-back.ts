import Type, { type Static } from 'typebox'
import { type CallBack, CallBackRelations } from '../call-back-relations.ts'
import { type ExtraFields, extraFieldsOf } from '../extra-fields.ts'
import { type FieldFault, fieldFaults } from '../field-faults.ts'
import { DEFAULT_TABLE_FIELD, MAX_LEVELS_PER_CALL_BACK } from '../limits.ts'
import type { UnknownFields } from '../unknown-fields.ts'
import { type CheckFailure, describeValue, pointerTo, soleViolation, ViolationList } from '../violation.ts'
import { descriptorCheck, descriptorSchema } from './descriptor.ts'
import { count } from './schema-parts.ts'

export const callBackAnswerSchema = Type.Object(
  {
    taskId: Type.String({ description: 'The task that was called back', examples: ['orders-2026-03'] }),
    accepted: count({ description: 'Partitions that are new and now stored', examples: [40] }),
    duplicates: count({ description: 'Partitions that were already known, unchanged', examples: [2] }),
  },
  { description: 'Everything in the array is durable once this is answered' },
)
export type CallBackAnswer = Static<typeof callBackAnswerSchema>

export interface CallBackOptions {
  tableField?: string
  /** How to handle fields beyond the contract. */
  unknownFields?: UnknownFields
  /** The most levels in the array. */
  maxLevels?: number
}

const NONE_KEPT: ExtraFields = { text: null, faults: [] }

export type CallBackCheck = { ok: true; callBack: CallBack } | CheckFailure

/**
 * The schema of a call-back body, for documentation. `checkCallBack` also checks the rules across elements.
 */
export function callBackRequestSchema(
  tableField: string = DEFAULT_TABLE_FIELD,
  unknownFields: UnknownFields = 'refuse',
) {
  const element = descriptorSchema(tableField)
  const taken = unknownFields === 'refuse' ? element : { ...element, additionalProperties: true }
  return Type.Array(taken, {
    minItems: 1,
    description: 'Partitions of one task, in ascending order of priorityLevel',
  })
}

/**
 * Checks an array of descriptors against the whole contract. Reports all violations, so that the author of a
 * producer can fix them in one round. Nothing is coerced.
 */
export function checkCallBack(body: unknown, options: CallBackOptions = {}): CallBackCheck {
  if (!Array.isArray(body)) {
    return soleViolation('', `the body must be an array of partition descriptors, got ${describeValue(body)}`)
  }
  if (body.length === 0) return soleViolation('', 'the array must hold at least one partition descriptor')

  const { tableField = DEFAULT_TABLE_FIELD, unknownFields = 'refuse' } = options
  const { maxLevels = MAX_LEVELS_PER_CALL_BACK } = options
  const element = descriptorCheck(tableField, unknownFields)
  const relations = new CallBackRelations(tableField, maxLevels)
  const violations = new ViolationList()
  for (let at = 0; at < body.length; at += 1) {
    const descriptor: unknown = body[at]
    if (element.matches(descriptor)) {
      const extra = unknownFields === 'keep' ? extraFieldsOf(descriptor, element.shape) : NONE_KEPT
      const broken = relations.take(descriptor, at, undefined, extra.text)
      if (broken !== undefined || extra.faults.length > 0)
        report(violations, descriptor, at, [...extra.faults, ...(broken ?? [])])
    } else if (isObject(descriptor)) {
      const faults = fieldFaults(element.shape, descriptor, unknownFields)
      const broken = relations.take(descriptor, at, new Set(faults.map((fault) => fault.field)), null)
      if (unknownFields === 'keep') faults.push(...extraFieldsOf(descriptor, element.shape).faults)
      report(violations, descriptor, at, broken === undefined ? faults : faults.concat(broken))
    } else {
      violations.add(
        pointerTo('', at),
        () => `each element must be a partition descriptor, got ${describeValue(descriptor)}`,
      )
    }
  }
  if (violations.isEmpty) return { ok: true, callBack: relations.callBack() }
  return relations.hasTooManyLevels ? { ...violations.failure(), tooManyLevels: true } : violations.failure()
}

/** Adds the faults of one element in document order of its fields, with missing fields last. */
function report(violations: ViolationList, descriptor: object, at: number, faults: FieldFault[]): void {
  const place = new Map(Object.keys(descriptor).map((field, position) => [field, position]))
  const placeOf = (fault: FieldFault) => place.get(fault.field) ?? place.size
  const base = pointerTo('', at)
  for (const fault of faults.toSorted((a, b) => placeOf(a) - placeOf(b))) {
    violations.add(pointerTo(base, fault.field), fault.detail)
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
