import { advance, drain } from '../rules/fair-order.ts'
import { weightOfTask } from '../rules/policy.ts'
import { isLaneOpen } from '../rules/task.ts'
import type { StoredLaneTable } from '../stored.ts'
import type { NewlyReady } from './newly-ready.ts'
import type { FilterOrder } from './state/filter-order.ts'
import type { Memory } from './state/memory.ts'
import type { Lane, LaneTable, Level, MutableAmount, Partition, Task } from './state/memory-rows.ts'

/** The part of a transaction that is needed here. */
interface Changes {
  readonly memory: Memory
  readonly newlyReady: NewlyReady
  touchLane(lane: Lane): void
  touchLevel(level: Level): void
  touchLaneTable(table: LaneTable): void
  addLaneTable(lane: Lane, row: StoredLaneTable): LaneTable
}

export interface ArrivedOfTable extends MutableAmount {
  readonly firstId: number
}

/** What waits: partitions begin and end to wait in their lanes, and the order is charged when served. */
export class WaitingPartitions {
  readonly #tx: Changes
  readonly #memory: Memory

  constructor(tx: Changes) {
    this.#tx = tx
    this.#memory = tx.memory
  }

  /** A partition came back. Its state and time must be set, and it must be counted as ready. */
  add(partition: Partition): void {
    const { parentLane: lane, computeTable, recordCount } = partition
    this.#tx.touchLane(lane)
    this.#drainIfEmpty(lane)
    lane.returned += 1
    lane.buffers.returned.add(partition)
    this.#memory.buffered(lane)
    const table = lane.mixed?.tables.get(computeTable)
    if (table !== undefined) {
      this.#tx.touchLaneTable(table)
      table.returned += 1
      table.buffers?.returned.add(partition)
      this.#countInTable(table, 1, recordCount)
    }
    this.#memory.order.update(lane)
    if (isLaneOpen(lane.parentTask, lane.level))
      this.#tx.newlyReady.add(lane.parentTask.taskId, computeTable, 1)
  }

  /** Partitions arrived at the end of a lane and are counted as ready. `tailBefore` is its tail before. */
  addArrivals(lane: Lane, tables: ReadonlyMap<string, ArrivedOfTable>, tailBefore: number): void {
    this.#tx.touchLane(lane)
    this.#drainIfEmpty(lane)
    this.#addToTables(lane, tables, tailBefore)
    this.#memory.order.update(lane)
  }

  /** Call it before its state or time changes, and `update` after it is counted. */
  remove(partition: Partition): void {
    const { parentLane: lane, computeTable, recordCount, dueAt } = partition
    const kind = dueAt === null ? 'fresh' : 'returned'
    this.#tx.touchLane(lane)
    if (kind === 'returned') lane.returned -= 1
    lane.buffers[kind].remove(partition)
    const table = lane.mixed?.tables.get(computeTable)
    if (table !== undefined) {
      this.#tx.touchLaneTable(table)
      if (kind === 'returned') table.returned -= 1
      table.buffers?.[kind].remove(partition)
      this.#countInTable(table, -1, -recordCount)
    }
  }

  /** Hands out the first of its lane, or of its table there. Call `update` after it is counted. */
  serve(partition: Partition, filterOrder: FilterOrder | null): void {
    const { parentLane: lane, recordCount, dueAt, computeTable } = partition
    this.#tx.touchLane(lane)
    if (dueAt === null) {
      if (lane.buffers.fresh.first === partition) lane.cursor = partition.id
      const table = lane.mixed?.tables.get(computeTable)
      if (table !== undefined) {
        this.#tx.touchLaneTable(table)
        table.cursor = partition.id
      }
    }
    this.remove(partition)
    if (filterOrder !== null) {
      filterOrder.charge(lane, recordCount)
      return
    }
    this.#tx.touchLevel(lane.time)
    lane.tag = advance(lane.time, lane.tag, recordCount, weightOfTask(lane.parentTask))
  }

  /** The tag of the lane or the number of partitions that wait in it has changed. */
  update(lane: Lane): void {
    this.#memory.order.update(lane)
  }

  /** The task may be served again, or one of its levels has opened. */
  reopen(task: Task): void {
    this.#memory.order.reopen(task)
  }

  /** All lanes are equal again when nothing waited on the level. */
  #drainIfEmpty({ time }: Lane): void {
    if (time.waitingLanes > 0 || time.virtual >= time.maxFinishTag) return
    this.#tx.touchLevel(time)
    drain(time)
  }

  /** What waits is counted by table from the second table of a lane on. */
  #addToTables(lane: Lane, arrived: ReadonlyMap<string, ArrivedOfTable>, tailBefore: number): void {
    const total = { partitions: 0, records: 0 }
    for (const { partitions, records } of arrived.values()) {
      total.partitions += partitions
      total.records += records
    }
    const isNew = lane.mixedAfter === null && (arrived.size > 1 || !arrived.has(lane.table))
    if (isNew) {
      lane.mixedAfter = tailBefore
      const { id, table, cursor, returned, partitions, records } = lane
      const ready = partitions.ready - total.partitions
      const readyRecords = records.ready - total.records
      const row = { lane: id, table, cursor, ready, returned, readyRecords }
      this.#memory.order.updateTable(this.#tx.addLaneTable(lane, row))
    }
    if (lane.mixedAfter === null) return
    for (const [name, { firstId, partitions, records }] of arrived) {
      const table = lane.mixed?.tables.get(name) ?? this.#newTable(lane, name, firstId)
      this.#countInTable(table, partitions, records)
      // The new partitions are on disk, after all that were read.
      if (table.buffers !== null) table.buffers.fresh.isComplete = false
    }
  }

  /** The cursor is where its first partition is, so that tables are served in the order of their arrival. */
  #newTable(lane: Lane, name: string, firstId: number): LaneTable {
    const row = { lane: lane.id, table: name, cursor: firstId - 1, ready: 0, returned: 0, readyRecords: 0 }
    return this.#tx.addLaneTable(lane, row)
  }

  #countInTable(table: LaneTable, partitions: number, records: number): void {
    this.#tx.touchLaneTable(table)
    table.ready += partitions
    table.readyRecords += records
    this.#memory.order.updateTable(table)
  }
}
