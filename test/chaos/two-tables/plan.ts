import type { PartitionDescriptor } from '@baton/protocol'

export type Table = 'results.orders' | 'results.sales'

const LEVELS = 3
/** Partitions of one task. */
const TASK_SIZE = 5000

/** A task has partitions of one table, of the other, or alternately of both on each level. */
const KINDS: readonly (readonly Table[])[] = [
  ['results.sales'],
  ['results.orders'],
  ['results.orders', 'results.sales'],
]

/** Which partitions there are, of which table, and which of them were accepted as done. */
export class Plan {
  readonly size: number
  readonly taskSize: number
  readonly #done: Uint8Array
  readonly total: Record<Table, number> = { 'results.orders': 0, 'results.sales': 0 }
  readonly done: Record<Table, number> = { 'results.orders': 0, 'results.sales': 0 }

  constructor(size: number) {
    this.size = size
    // Several tasks of each kind even with few partitions.
    this.taskSize = Math.min(TASK_SIZE, Math.ceil(size / 12))
    this.#done = new Uint8Array(size)
    for (let number = 0; number < size; number += 1) this.total[this.#tableOf(number)] += 1
  }

  get tasks(): string[] {
    return Array.from({ length: Math.ceil(this.size / this.taskSize) }, (_, task) => `task-${task}`)
  }

  /** What producers call back, task by task, the lowest level first. */
  descriptors(taskId: string): PartitionDescriptor[] {
    const first = taskNumber(taskId) * this.taskSize
    const count = Math.min(this.taskSize, this.size - first)
    const all = Array.from({ length: count }, (_, at) => {
      const level = at % LEVELS
      return {
        taskId,
        computeTableName: this.#tableOf(first + at),
        partition_name: `${taskId}-${level}-${Math.floor(at / LEVELS)}`,
        record_count: 1 + ((at * 37) % 900),
        priorityLevel: level,
      }
    })
    return all.toSorted((a, b) => a.priorityLevel - b.priorityLevel)
  }

  /** Undefined for a name that was never called back. */
  tableOf(name: string): Table | undefined {
    const number = this.#numberOf(name)
    return number === undefined ? undefined : this.#tableOf(number)
  }

  /** Returns false if it was done before. */
  markDone(name: string): boolean {
    const number = this.#numberOf(name)
    if (number === undefined || this.#done[number] === 1) return false
    this.#done[number] = 1
    this.done[this.#tableOf(number)] += 1
    return true
  }

  isDone(table: Table): boolean {
    return this.done[table] === this.total[table]
  }

  /** Tasks with partitions of a table that are not done. */
  unfinished(table: Table): string[] {
    const found = new Set<number>()
    for (let number = 0; number < this.size; number += 1)
      if (this.#done[number] === 0 && this.#tableOf(number) === table)
        found.add(Math.floor(number / this.taskSize))
    return [...found].map((task) => `task-${task}`)
  }

  #tableOf(number: number): Table {
    const kind = KINDS[Math.floor(number / this.taskSize) % KINDS.length] as readonly Table[]
    // The place within its level, so that each level has both.
    return kind[Math.floor((number % this.taskSize) / LEVELS) % kind.length] as Table
  }

  #numberOf(name: string): number | undefined {
    const [, task, level, index] = /^task-(\d+)-(\d+)-(\d+)$/.exec(name)?.map(Number) ?? []
    if (task === undefined || level === undefined || index === undefined) return undefined
    const number = task * this.taskSize + index * LEVELS + level
    return level < LEVELS && number < this.size ? number : undefined
  }
}

const taskNumber = (taskId: string): number => Number(taskId.slice('task-'.length))
