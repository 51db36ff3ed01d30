import Type, { type Static } from 'typebox'
import { type FieldFault, fieldFaults, type UnknownFields } from '../field-faults.ts'
import { explainPartitionName, parsePartitionName } from '../identifiers.ts'
import { DEFAULT_TABLE_FIELD, MAX_LEVELS_PER_CALL_BACK } from '../limits.ts'
import {
  type CheckFailure,
  describeValue,
  pointerTo,
  quoted,
  soleViolation,
  ViolationList,
} from '../violations.ts'
import {
  descriptorCheck,
  descriptorSchema,
  type ExtraFields,
  extraFieldsOf,
  type OptionalField,
  optionalFields,
} from './descriptor.ts'
import { count } from './schema-parts.ts'

export const callBackAnswerSchema = Type.Object(
  {
    taskId: Type.String({ description: 'The task that was called back', examples: ['orders-2026-03'] }),
    accepted: count({ description: 'New partitions that were stored', examples: [40] }),
    duplicates: count({
      description: 'Partitions that were already stored with the same content',
      examples: [2],
    }),
  },
  { description: 'All partitions of the array are stored durably' },
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

/** Checks an array of descriptors against the whole contract. */
export function checkCallBack(body: unknown, options: CallBackOptions = {}): CallBackCheck {
  if (!Array.isArray(body)) {
    return soleViolation('', `the body must be an array of partition descriptors, got ${describeValue(body)}`)
  }
  const checker = new CallBackChecker(options)
  for (const descriptor of body) checker.take(descriptor)
  return checker.result()
}

/**
 * Checks the descriptors of an array one by one. Reports all violations, so that the author of a producer can
 * fix them in one round. Nothing is coerced.
 */
export class CallBackChecker {
  readonly #unknownFields: UnknownFields
  readonly #element: ReturnType<typeof descriptorCheck>
  readonly #relations: CallBackRelations
  readonly #violations = new ViolationList()
  #count = 0

  constructor(options: CallBackOptions = {}) {
    const { tableField = DEFAULT_TABLE_FIELD, unknownFields = 'refuse' } = options
    const { maxLevels = MAX_LEVELS_PER_CALL_BACK } = options
    this.#unknownFields = unknownFields
    this.#element = descriptorCheck(tableField, unknownFields)
    this.#relations = new CallBackRelations(tableField, maxLevels)
  }

  take(descriptor: unknown): void {
    const at = this.#count
    this.#count += 1
    const [element, relations] = [this.#element, this.#relations]
    if (element.matches(descriptor)) {
      const extra = this.#unknownFields === 'keep' ? extraFieldsOf(descriptor, element.shape) : NONE_KEPT
      const broken = relations.take(descriptor, at, undefined, extra.text)
      if (broken !== undefined || extra.faults.length > 0)
        report(this.#violations, descriptor, at, [...extra.faults, ...(broken ?? [])])
    } else if (isObject(descriptor)) {
      const faults = fieldFaults(element.shape, descriptor, this.#unknownFields)
      const broken = relations.take(descriptor, at, new Set(faults.map((fault) => fault.field)), null)
      if (this.#unknownFields === 'keep') faults.push(...extraFieldsOf(descriptor, element.shape).faults)
      report(this.#violations, descriptor, at, broken === undefined ? faults : faults.concat(broken))
    } else {
      this.#violations.add(
        pointerTo('', at),
        () => `each element must be a partition descriptor, got ${describeValue(descriptor)}`,
      )
    }
  }

  result(): CallBackCheck {
    if (this.#count === 0) return soleViolation('', 'the array must have at least one partition descriptor')
    if (this.#violations.isEmpty) return { ok: true, callBack: this.#relations.callBack() }
    const failure = this.#violations.failure()
    return this.#relations.hasTooManyLevels ? { ...failure, tooManyLevels: true } : failure
  }
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

/** A partition of a valid call-back. Optional fields are absent if the partition does not have them. */
export interface CalledBackPartition extends Partial<Record<OptionalField, string | null>> {
  level: number
  index: number
  recordCount: number
  computeTableName: string
  /** The name as it was sent, if it differs from the canonical name for this level and index. */
  spelling: string | null
}

export interface CallBack {
  taskId: string
  recordTotal: number
  partitions: CalledBackPartition[]
}

/**
 * Checks the rules of a call-back that span several fields or elements. Elements are checked in array order.
 * `invalid` names the fields that are invalid by themselves; every rule that needs one is skipped.
 */
class CallBackRelations {
  readonly #tableField: string
  readonly #maxLevels: number
  readonly #partitions: CalledBackPartition[] = []
  /** The array position of each partition, by level and index. */
  readonly #positions = new Map<number, Map<number, number>>()
  #taskId: string | undefined
  #taskIdAt = 0
  #previousLevel = 0
  #recordTotal = 0
  #totalExceeded = false
  #levelsExceeded = false
  /** Faults of the element being checked. */
  #faults: FieldFault[] = []

  constructor(tableField: string, maxLevels: number) {
    this.#tableField = tableField
    this.#maxLevels = maxLevels
  }

  /** Checks the next element. Returns the rules that it breaks, if any. */
  take(
    descriptor: Record<string, unknown>,
    at: number,
    invalid: ReadonlySet<string> | undefined,
    extraFields: string | null,
  ): FieldFault[] | undefined {
    const taskId = invalid?.has('taskId') ? undefined : (descriptor['taskId'] as string)
    const name = invalid?.has('partition_name') ? undefined : (descriptor['partition_name'] as string)
    const level = invalid?.has('priorityLevel') ? undefined : (descriptor['priorityLevel'] as number)
    const records = invalid?.has('record_count') ? undefined : (descriptor['record_count'] as number)

    if (taskId !== undefined) this.#shareTask(taskId, at)
    if (taskId !== undefined && name !== undefined) {
      const parsed = this.#readName(taskId, name, level, at)
      if (parsed !== undefined) {
        const partition: CalledBackPartition = {
          level: parsed.level,
          index: parsed.index,
          // Adding zero turns a -0 from the wire into 0.
          recordCount: (records ?? 0) + 0,
          computeTableName: descriptor[this.#tableField] as string,
          spelling: parsed.canonical ? null : name,
        }
        for (const field of optionalFields) {
          const text = field === 'extraFields' ? extraFields : descriptor[field]
          if (typeof text === 'string') partition[field] = text
        }
        this.#partitions.push(partition)
      }
    }
    if (level !== undefined) this.#ascend(level)
    this.#countLevels()
    if (records !== undefined) this.#addRecords(records)
    return this.#takeFaults()
  }

  /** Whether the call-back has more levels than allowed. */
  get hasTooManyLevels(): boolean {
    return this.#levelsExceeded
  }

  /** The checked call-back. Valid only if no rule was broken. */
  callBack(): CallBack {
    return { taskId: this.#taskId ?? '', recordTotal: this.#recordTotal, partitions: this.#partitions }
  }

  #shareTask(taskId: string, at: number): void {
    if (this.#taskId === undefined) {
      this.#taskId = taskId
      this.#taskIdAt = at
    } else if (taskId !== this.#taskId) {
      const [expected, expectedAt] = [this.#taskId, this.#taskIdAt]
      this.#fault(
        'taskId',
        () =>
          `taskId must be the same in the whole array: /${expectedAt} has ${quoted(expected)}, ` +
          `this element has ${quoted(taskId)}; send one array per task`,
      )
    }
  }

  #readName(taskId: string, name: string, level: number | undefined, at: number) {
    const parsed = parsePartitionName(taskId, name)
    if (parsed === undefined) {
      this.#fault(
        'partition_name',
        () => `partition_name ${explainPartitionName(taskId, name)}, got ${quoted(name)}`,
      )
      return undefined
    }
    if (level !== undefined && parsed.level !== level) {
      this.#fault(
        'partition_name',
        () =>
          `the group in partition_name is ${parsed.level} but priorityLevel is ${level}; they must be equal`,
      )
    }
    const earlier = taskId === this.#taskId ? this.#claim(parsed.level, parsed.index, at) : undefined
    if (earlier !== undefined) {
      this.#fault(
        'partition_name',
        () =>
          `partition_name ${quoted(name)} names the same partition as /${earlier}: ` +
          `level ${parsed.level}, index ${parsed.index}; a partition can occur only once`,
      )
    }
    return parsed
  }

  /** Records a partition. Returns the position of its first occurrence if it is a duplicate. */
  #claim(level: number, index: number, at: number): number | undefined {
    let ofLevel = this.#positions.get(level)
    if (ofLevel === undefined) {
      ofLevel = new Map()
      this.#positions.set(level, ofLevel)
    }
    const earlier = ofLevel.get(index)
    if (earlier === undefined) ofLevel.set(index, at)
    return earlier
  }

  #ascend(level: number): void {
    const previous = this.#previousLevel
    if (level < previous) {
      this.#fault(
        'priorityLevel',
        () => `priorityLevel ${level} comes after ${previous}; sort the array by ascending priorityLevel`,
      )
    }
    // Compare with the previous element, not with the highest level so far: one misplaced element is one
    // violation.
    this.#previousLevel = level
  }

  /** Reported once, at the first element that exceeds the limit. */
  #countLevels(): void {
    if (this.#levelsExceeded || this.#positions.size <= this.#maxLevels) return
    this.#levelsExceeded = true
    this.#fault(
      'priorityLevel',
      () =>
        `an array can have at most ${this.#maxLevels} different values of priorityLevel; ` +
        'send this level and those after it in another array',
    )
  }

  #addRecords(records: number): void {
    if (this.#totalExceeded) return
    this.#recordTotal += records
    if (this.#recordTotal <= Number.MAX_SAFE_INTEGER) return
    this.#totalExceeded = true
    this.#fault(
      'record_count',
      () => `with this record_count, the record total of the array exceeds ${Number.MAX_SAFE_INTEGER}`,
    )
  }

  #fault(field: string, detail: () => string): void {
    this.#faults.push({ field, detail })
  }

  #takeFaults(): FieldFault[] | undefined {
    if (this.#faults.length === 0) return undefined
    const faults = this.#faults
    this.#faults = []
    return faults
  }
}
