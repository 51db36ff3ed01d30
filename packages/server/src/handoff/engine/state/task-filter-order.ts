import { isTableBlocked } from '../../rules/policy.ts'
import { mayServe } from '../../rules/task.ts'
import { FilterOrder } from './filter-order.ts'
import type { Lane, Task, TaskTable } from './memory-rows.ts'
import type { Order } from './order.ts'

/** Looks at all that the tasks have: a pull names few. */
export class TaskFilterOrder extends FilterOrder {
  readonly #tasks: readonly string[]
  readonly #tasksByName: ReadonlyMap<string, Task>

  constructor(
    order: Order,
    tasksByName: ReadonlyMap<string, Task>,
    tasks: readonly string[],
    tables: readonly string[] | null,
  ) {
    super(order, { tables, tasks })
    this.#tasks = tasks
    this.#tasksByName = tasksByName
  }

  next(): Lane | undefined {
    let first: Lane | undefined
    let isWaiting = false
    for (const name of this.#tasks) {
      const task = this.#tasksByName.get(name)
      if (task === undefined) continue
      for (const one of task.tables.values()) {
        const { name: table } = one.table
        if (this.tables !== null && table !== null && !this.tables.has(table)) continue
        isWaiting = true
        const lane = this.#laneOf(one)
        if (lane === undefined || !mayServe(task, lane.level)) continue
        if (first === undefined || this.#isBefore(lane, first)) first = lane
      }
    }
    if (!isWaiting) this.drain()
    return first
  }

  ahead(): Lane[] {
    return []
  }

  /** The lowest lane with one of the named tables that may be served. */
  #laneOf({ lane, table }: TaskTable): Lane | undefined {
    if (lane === undefined) return undefined
    if (table.name !== null) return isTableBlocked(table) ? undefined : lane
    if (this.tables !== null) return hasSome(lane, this.tables) ? lane : undefined
    this.order.returnUnblocked(lane)
    return this.order.servableTable(lane) === undefined ? undefined : lane
  }

  #isBefore(a: Lane, b: Lane): boolean {
    if (a.level !== b.level) return a.level < b.level
    const [tagA, tagB] = [this.startOf(a), this.startOf(b)]
    return tagA === tagB ? a.id < b.id : tagA < tagB
  }
}

const hasSome = (lane: Lane, tables: ReadonlySet<string>): boolean => {
  for (const name of tables) {
    const table = lane.mixed?.tables.get(name)
    if (table !== undefined && table.ready > 0 && !isTableBlocked(table.entry.table)) return true
  }
  return false
}
