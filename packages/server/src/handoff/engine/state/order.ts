import { isTableBlocked } from '../../rules/policy.ts'
import { mayServe } from '../../rules/task.ts'
import { ChangedTables } from './changed-tables.ts'
import { Heap } from './heap.ts'
import {
  compareTables,
  type Lane,
  type LaneTable,
  LaneTableEntry,
  laneTablesOf,
  type MutableAmount,
  type Partition,
  Table,
  type TableEntry,
  type Task,
  TaskTable,
  tableOf,
} from './memory-rows.ts'
import { Tables } from './tables.ts'

/**
 * Determines which lane is next. A heap of tables; each is a heap of its tasks, and each of those has its lowest
 * lane. Whatever may not be served is removed when it reaches the front: a task is put back by `reopen`, a table
 * that was blocked by `reorder`.
 *
 * A mixed lane, which has several tables, is an entry of its own. Which of its tables may be served is determined
 * when it comes to the front: those that are blocked then are put under their tables, and return to their lane
 * when they come to the front there.
 */
export class Order {
  readonly tables = new Tables()
  readonly changedTables = new ChangedTables()
  readonly #mixedLanes = new Table(null)
  readonly #heap = new Heap<Table>(compareTables)

  /** The lane that is served next. Undefined if none may be served. */
  front(): Lane | undefined {
    while (true) {
      const first = this.#heap.first?.heap.first
      if (first === undefined) return undefined
      if (first instanceof LaneTableEntry) {
        this.#toLane(first)
        continue
      }
      const { lane } = first
      if (lane !== undefined && mayServe(first.task, lane.level)) {
        if (lane.mixed === null || this.servableTable(lane) !== undefined) return lane
      }
      this.#take(first)
    }
  }

  /** The next table of a mixed lane that may be served. Those that are blocked leave the lane. */
  servableTable({ mixed }: Lane): LaneTable | undefined {
    for (let first = mixed?.servable.first; first !== undefined; first = mixed?.servable.first) {
      if (!isTableBlocked(first.table)) return first.row
      this.#toTable(first)
    }
    return undefined
  }

  /** For pulls that name tasks, which do not look at tables: those that are no longer blocked return to their lane. */
  returnUnblocked({ mixed }: Lane): void {
    for (const entry of mixed?.underTables ?? []) if (!isTableBlocked(entry.table)) this.#toLane(entry)
  }

  /** The likely sources of the next partitions. */
  ahead(count: number): Lane[] {
    const lanes: Lane[] = []
    for (const { heap } of this.#heap.items) {
      for (const one of heap.items) {
        if (lanes.length === count) return lanes
        if (one instanceof TaskTable && one.lane !== undefined) lanes.push(one.lane)
      }
    }
    return lanes
  }

  /** For pulls with a filter, which found that its task may not be served. */
  withdraw(one: TableEntry): void {
    if (one instanceof TaskTable) {
      this.#take(one)
      return
    }
    one.table.arrivals.remove(one)
    one.lane.mixed?.withdrawn.add(one)
  }

  leaseBegan(partition: Partition): void {
    const table = tableOf(partition)
    const { holder } = partition
    table.leases += 1
    if (holder !== null) table.holders.set(holder, (table.holders.get(holder) ?? 0) + 1)
    if (table.leases === table.settings.maxLeases) this.reorder(table)
  }

  leaseEnded(partition: Partition): void {
    const table = tableOf(partition)
    const { holder } = partition
    table.leases -= 1
    const held = holder === null ? 0 : (table.holders.get(holder) ?? 0)
    if (holder !== null && held > 1) table.holders.set(holder, held - 1)
    else if (holder !== null) table.holders.delete(holder)
    if (table.leases + 1 === table.settings.maxLeases) this.reorder(table)
  }

  /** The settings of a table changed, or it reached its limit or is below it again. */
  reorder(table: Table): void {
    const isBlocked = isTableBlocked(table)
    if (isBlocked || table.heap.size === 0) this.#heap.remove(table)
    else this.#heap.put(table)
    if (!isBlocked && table.name !== null) this.changedTables.add(table.name)
  }

  /** Call it after the tag of a lane changed, or after partitions came to it or left it. */
  update(lane: Lane): void {
    const { parentTask: task, mixed, queueEntry: before } = lane
    const isWaiting = lane.partitions.ready > 0 && !task.cancelled
    const isSingle = isWaiting && mixed === null
    count(
      lane.firstTable,
      lane.counted,
      isSingle ? lane.partitions.ready : 0,
      isSingle ? lane.records.ready : 0,
    )
    const table = mixed === null ? lane.firstTable : this.#mixedLanes
    if (before !== null && (!isWaiting || before.table !== table)) this.#leave(lane, before)
    if (!isWaiting) {
      if (before !== null) for (const one of laneTablesOf(lane)) this.updateTable(one)
      return
    }
    if (lane.queueEntry !== null) this.#move(lane.queueEntry)
    else this.#join(lane, table)
  }

  /** Call it after partitions came to a table of a mixed lane, or left it. */
  updateTable({ entry, ready, readyRecords }: LaneTable): void {
    const { lane, table, counted } = entry
    const isWaiting = ready > 0 && !lane.parentTask.cancelled
    count(table, counted, isWaiting ? ready : 0, isWaiting ? readyRecords : 0)
    if (isWaiting) this.#arrive(entry, lane.level)
    else {
      table.arrivals.remove(entry)
      lane.mixed?.withdrawn.delete(entry)
      this.#remove(entry)
      return
    }
    if (!entry.isUnderTable) {
      const isNew = entry.heapIndex < 0
      lane.mixed?.servable.put(entry)
      if (isNew && lane.queueEntry !== null) this.#move(lane.queueEntry)
    }
  }

  /** The task may be served again, or one of its levels has opened. */
  reopen(task: Task): void {
    for (const one of task.tables.values()) {
      this.#move(one)
      const withdrawn = one.lane?.mixed?.withdrawn
      for (const entry of withdrawn ?? []) this.#arrive(entry, entry.lane.level)
      withdrawn?.clear()
    }
  }

  #join(lane: Lane, table: Table): void {
    const { parentTask: task, time } = lane
    const key = table.name ?? lane.id
    let one = task.tables.get(key)
    if (one === undefined) {
      one = new TaskTable(task, table)
      task.tables.set(key, one)
    }
    time.waitingLanes += 1
    lane.queueEntry = one
    one.lanes.put(lane)
    this.#move(one)
  }

  #leave(lane: Lane, one: TaskTable): void {
    lane.time.waitingLanes -= 1
    lane.queueEntry = null
    one.lanes.remove(lane)
    if (one.lanes.size > 0) {
      this.#move(one)
      return
    }
    this.#take(one)
    one.task.tables.delete(one.table.name ?? lane.id)
  }

  #move(one: TableEntry): void {
    const { table, lane } = one
    table.heap.put(one)
    if (one instanceof TaskTable && lane !== undefined) this.#arrive(one, lane.level)
    if (!isTableBlocked(table)) this.#heap.put(table)
  }

  #arrive(one: TableEntry, level: number): void {
    const { table, arrival } = one
    if (arrival?.level === level) return
    table.arrivals.put(one, level)
    if (table.name !== null) this.changedTables.add(table.name)
  }

  /** Removes it from the order, not from its task. */
  #take(one: TableEntry): void {
    const { table } = one
    table.heap.remove(one)
    if (one instanceof TaskTable) table.arrivals.remove(one)
    if (table.heap.size === 0) this.#heap.remove(table)
    else if (!isTableBlocked(table)) this.#heap.put(table)
  }

  #toTable(entry: LaneTableEntry): void {
    const { lane } = entry
    this.#remove(entry)
    entry.isUnderTable = true
    entry.tag = lane.tag
    lane.mixed?.underTables.add(entry)
    this.#move(entry)
  }

  #toLane(entry: LaneTableEntry): void {
    const { lane } = entry
    this.#remove(entry)
    lane.mixed?.servable.put(entry)
    if (lane.queueEntry !== null) this.#move(lane.queueEntry)
  }

  #remove(entry: LaneTableEntry): void {
    const { mixed } = entry.lane
    if (entry.isUnderTable) this.#take(entry)
    else mixed?.servable.remove(entry)
    mixed?.underTables.delete(entry)
    entry.isUnderTable = false
  }
}

/** Changes what a table counts as waiting of a lane. */
function count({ waiting }: Table, counted: MutableAmount, partitions: number, records: number): void {
  waiting.partitions += partitions - counted.partitions
  waiting.records += records - counted.records
  counted.partitions = partitions
  counted.records = records
}
