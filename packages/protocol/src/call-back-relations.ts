import type { CallBack, CalledBackPartition } from './call-back.ts'
import type { FieldFault } from './field-faults.ts'
import { explainPartitionName, parsePartitionName } from './partition-name.ts'
import { quoted } from './shown-value.ts'

/**
 * The rules of a call-back that reach across fields and elements. Elements are taken in order; those of their
 * fields that are unsound by themselves are named, and left out of every rule that would need them.
 */
export class CallBackRelations {
  readonly #tableField: string
  readonly #partitions: CalledBackPartition[] = []
  /** Position of each identity, by level and index. */
  readonly #positions = new Map<number, Map<number, number>>()
  #taskId: string | undefined
  #taskIdAt = 0
  #previousLevel = 0
  #recordTotal = 0
  #totalExceeded = false

  constructor(tableField: string) {
    this.#tableField = tableField
  }

  /** Takes the next element; answers the rules that it breaks, if any. */
  take(
    descriptor: Record<string, unknown>,
    at: number,
    unsound: ReadonlySet<string> | undefined,
  ): FieldFault[] | undefined {
    const sound = <T>(field: string) => (unsound?.has(field) ? undefined : (descriptor[field] as T))
    const faults: FieldFault[] = []
    const taskId = sound<string>('taskId')
    const name = sound<string>('partition_name')
    const level = sound<number>('priorityLevel')
    const records = sound<number>('record_count')

    if (taskId !== undefined) this.#shareTask(taskId, at, faults)
    if (taskId !== undefined && name !== undefined) {
      this.#name(taskId, name, level, records, descriptor[this.#tableField] as string, at, faults)
    }
    if (level !== undefined) this.#ascend(level, faults)
    if (records !== undefined) this.#total(records, faults)
    return faults.length === 0 ? undefined : faults
  }

  /** What was taken, once no rule was broken. */
  callBack(): CallBack {
    return { taskId: this.#taskId ?? '', recordTotal: this.#recordTotal, partitions: this.#partitions }
  }

  #shareTask(taskId: string, at: number, faults: FieldFault[]): void {
    if (this.#taskId === undefined) {
      this.#taskId = taskId
      this.#taskIdAt = at
    } else if (taskId !== this.#taskId) {
      const [expected, expectedAt] = [this.#taskId, this.#taskIdAt]
      faults.push({
        field: 'taskId',
        detail: () =>
          `taskId must be the same in the whole array: /${expectedAt} has ${quoted(expected)}, ` +
          `this one ${quoted(taskId)}; call each task back by itself`,
      })
    }
  }

  #name(
    taskId: string,
    name: string,
    level: number | undefined,
    records: number | undefined,
    table: string,
    at: number,
    faults: FieldFault[],
  ): void {
    const field = 'partition_name'
    const parsed = parsePartitionName(taskId, name)
    if (parsed === undefined) {
      faults.push({
        field,
        detail: () => `partition_name ${explainPartitionName(taskId, name)}, got ${quoted(name)}`,
      })
      return
    }
    if (level !== undefined && parsed.level !== level) {
      faults.push({
        field,
        detail: () =>
          `the group in partition_name is ${parsed.level} but priorityLevel is ${level}; they must be equal`,
      })
    }
    const earlier = taskId === this.#taskId ? this.#claim(parsed.level, parsed.index, at) : undefined
    if (earlier !== undefined) {
      faults.push({
        field,
        detail: () =>
          `partition_name ${quoted(name)} names the same partition as /${earlier}: ` +
          `level ${parsed.level}, index ${parsed.index}; each may occur once`,
      })
    }
    this.#partitions.push({
      level: parsed.level,
      index: parsed.index,
      // Adding zero turns a -0 from the wire into 0.
      recordCount: (records ?? 0) + 0,
      computeTableName: table,
      spelling: parsed.canonical ? null : name,
    })
  }

  /** Notes an identity; answers where it was seen before. */
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

  #ascend(level: number, faults: FieldFault[]): void {
    const previous = this.#previousLevel
    if (level < previous) {
      faults.push({
        field: 'priorityLevel',
        detail: () =>
          `priorityLevel ${level} comes after ${previous}; order the array by ascending priorityLevel`,
      })
    }
    // Compared with its neighbour, not with the highest so far: one stray element is one violation.
    this.#previousLevel = level
  }

  #total(records: number, faults: FieldFault[]): void {
    if (this.#totalExceeded) return
    this.#recordTotal += records
    if (this.#recordTotal <= Number.MAX_SAFE_INTEGER) return
    this.#totalExceeded = true
    faults.push({
      field: 'record_count',
      detail: () => `with this record_count the array's record total passes ${Number.MAX_SAFE_INTEGER}`,
    })
  }
}
