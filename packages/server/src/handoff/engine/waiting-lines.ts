import type { Line } from '../partition.ts'
import { advance, advanceLevel, drain, startOf } from '../rules/fair-order.ts'
import { weightOfTask } from '../rules/policy.ts'
import { isLaneOpen } from '../rules/task.ts'
import type { Readied } from './readied.ts'
import type { Memory } from './state/memory.ts'
import {
  freshOrReleased,
  isLaneTable,
  type Lane,
  type LaneTable,
  type Level,
  type Partition,
  retriesOf,
  type TableTime,
  type Task,
} from './state/memory-rows.ts'

/** The part of a transaction that is needed here. */
interface Changes {
  readonly memory: Memory
  readonly readied: Readied
  touchLane(lane: Lane): void
  touchLevel(level: Level): void
  touchLaneTable(table: LaneTable): void
  touchTableTime(time: TableTime): void
}

/**
 * Maintains the lines of waiting partitions for a transaction: partitions enter and leave the lines of
 * their lane, the order is charged for what is handed out, and the turns of lanes and their tables are
 * updated.
 */
export class WaitingLines {
  readonly #tx: Changes
  readonly #memory: Memory

  constructor(tx: Changes) {
    this.#tx = tx
    this.#memory = tx.memory
  }

  /**
   * Adds a partition to its line. Its state, line and place must be set, and it must be counted as ready.
   */
  enqueue(partition: Partition): void {
    const { parentLane: lane, line } = partition
    this.#startLine(lane, line, line === 'retry' ? lane.retries : freshOrReleased(lane) - 1)
    if (line === 'retry') lane.retries += 1
    else if (line === 'released') lane.released += 1
    lane.lines[line].add(partition)
    const table = tableOf(partition)
    if (table !== null) this.#joinTable(table, partition)
    this.updateTurn(lane)
    if (isLaneOpen(lane.parentTask, lane.level))
      this.#tx.readied.add(lane.parentTask.taskId, partition.computeTable, 1)
  }

  /**
   * Fresh partitions were appended to a lane and are counted as ready; `waitedBefore` were waiting before.
   */
  enqueueFresh(lane: Lane, waitedBefore: number, tables: ReadonlyMap<string, number>): void {
    this.#startLine(lane, 'fresh', waitedBefore)
    this.#joinTables(lane, tables, waitedBefore)
    this.updateTurn(lane)
  }

  /** Removes a waiting partition from its line. Call it before its state, line or place changes. */
  dequeue(partition: Partition): void {
    const { parentLane: lane, line } = partition
    lane.lines[line].remove(partition)
    if (line === 'retry') lane.retries -= 1
    else if (line === 'released') lane.released -= 1
    const table = tableOf(partition)
    if (table !== null) this.#leaveTable(table, partition)
    this.#tx.touchLane(lane)
  }

  /**
   * Removes a partition from its line and charges the order it was chosen from: that of all lanes, that of a
   * table, or none. The partition must be the first of its line, or the first of its table in that line.
   */
  serve(partition: Partition, chosenFrom: Lane | LaneTable | null): void {
    const { parentLane: lane, line, recordCount } = partition
    if (line === 'fresh') {
      const { fresh } = lane.lines
      if (fresh.first === partition) {
        fresh.items.shift()
        lane.cursor = partition.id
      } else fresh.remove(partition)
      const table = tableOf(partition)
      if (table !== null) {
        table.cursor = partition.id
        this.#leaveTable(table, partition)
      }
    } else this.dequeue(partition)
    // Released partitions were charged when they were first handed out.
    if (line === 'released' || chosenFrom === null) return
    const start = line === 'retry' ? chosenFrom.retryTag : chosenFrom.tag
    const weight = weightOfTask(lane.parentTask)
    let finish: bigint
    if (isLaneTable(chosenFrom)) {
      finish = advance(chosenFrom.time, start, recordCount, weight)
      this.#tx.touchTableTime(chosenFrom.time)
      this.#tx.touchLaneTable(chosenFrom)
    } else {
      finish = advanceLevel(lane.time, start, recordCount, weight)
      this.#tx.touchLevel(lane.time)
    }
    if (line === 'retry') chosenFrom.retryTag = finish
    else chosenFrom.tag = finish
  }

  /** A lane that was set aside or read from the disk may be behind the virtual time of its level. */
  catchUp(lane: Lane): void {
    if (lane.turn !== null && lane.turn < lane.time.virtual) this.updateTurn(lane)
  }

  catchUpTable(table: LaneTable): void {
    if (table.turn !== null && table.turn < table.time.virtual) this.updateTurnOfTable(table)
  }

  /**
   * Called when a task may be served again: its lanes return to the order at the virtual time of their level.
   */
  reopen(task: Task): void {
    const { order, tableOrders } = this.#memory
    if (task.asideForgotten) {
      task.asideForgotten = false
      order.rewind()
      tableOrders.rewind()
    }
    for (const lane of task.aside) order.reopen(lane)
    for (const table of task.asideTables) tableOrders.reopen(table)
    // Includes lanes that were not set aside: they kept their place while others advanced.
    for (const lane of task.lanes.values()) {
      this.catchUp(lane)
      for (const table of lane.tables.values()) this.catchUpTable(table)
    }
  }

  reopenLane(lane: Lane): void {
    this.#memory.order.reopen(lane)
    this.catchUp(lane)
    for (const table of lane.tables.values()) {
      this.#memory.tableOrders.reopen(table)
      this.catchUpTable(table)
    }
  }

  /** An empty line starts at the virtual time of its level. */
  #startLine(lane: Lane, line: Line, waitedBefore: number): void {
    if (waitedBefore > 0) return
    const { time } = lane
    if (time.queued === 0 && time.virtual < time.served && this.#memory.order.isLoadedPast(time.level)) {
      drain(time)
      this.#tx.touchLevel(time)
    }
    if (line === 'retry') lane.retryTag = startOf(time, lane.retryTag)
    else lane.tag = startOf(time, lane.tag)
  }

  /** The turn depends on the counters and tags of the lane. Call it when those changed. */
  updateTurn(lane: Lane): void {
    const { parentTask: task, level, time } = lane
    if (isLaneOpen(task, level)) {
      // Only a lane that was closed for a while and has not been visited since can be behind the virtual
      // time.
      lane.tag = startOf(time, lane.tag)
      lane.retryTag = startOf(time, lane.retryTag)
    }
    const first = freshOrReleased(lane) > 0 ? lane.tag : null
    const retry = lane.retries > 0 ? lane.retryTag : null
    lane.turn = earlier(first, retry)
    this.#tx.touchLane(lane)
    this.#memory.order.put(lane)
    if (lane.onlyTable !== null) this.updateTurnOfTable(lane.onlyTable)
  }

  /**
   * Adds fresh partitions. A lane counts by table from its second table on.
   */
  #joinTables(lane: Lane, arrived: ReadonlyMap<string, number>, waitedBefore: number): void {
    const only = lane.onlyTable
    for (const name of arrived.keys())
      if (!lane.tables.has(name))
        this.#tx.touchLaneTable(this.#memory.addLaneTable(lane, newLaneTable(lane, name)))
    if (lane.tables.size === 1) return
    if (only !== null) {
      only.ready = waitedBefore + lane.retries
      only.released = lane.released
      only.retries = lane.retries
      only.cursor = lane.cursor
    }
    for (const [name, count] of arrived) {
      const table = lane.tables.get(name) as LaneTable
      table.ready += count
      this.#tx.touchLaneTable(table)
      // The new partitions are on disk, after all that were read.
      if (table.lines !== null) table.lines.fresh.isComplete = false
      this.updateTurnOfTable(table)
    }
    if (only !== null) this.#tx.touchLaneTable(only)
  }

  #joinTable(table: LaneTable, partition: Partition): void {
    this.#countInTable(table, partition.line, 1)
    table.lines?.[partition.line].add(partition)
  }

  #leaveTable(table: LaneTable, partition: Partition): void {
    this.#countInTable(table, partition.line, -1)
    table.lines?.[partition.line].remove(partition)
  }

  #countInTable(table: LaneTable, line: Line, change: 1 | -1): void {
    table.ready += change
    if (line === 'retry') table.retries += change
    else if (line === 'released') table.released += change
    this.#tx.touchLaneTable(table)
    this.updateTurnOfTable(table)
  }

  /** Most changes of a lane do not change the turn of its table. Then nothing is written. */
  updateTurnOfTable(table: LaneTable): void {
    const { parentTask: task, level, time } = table
    const first = freshOrReleased(table)
    const retries = retriesOf(table)
    const before = table.turn
    let isMoved = false
    if (isLaneOpen(task, level) || before === null) {
      // Only lines that have work: a tag that moved has to be written, even if the turn stays the same.
      if (first > 0 && table.tag < time.virtual) {
        table.tag = time.virtual
        isMoved = true
      }
      if (retries > 0 && table.retryTag < time.virtual) {
        table.retryTag = time.virtual
        isMoved = true
      }
    }
    table.turn = earlier(first > 0 ? table.tag : null, retries > 0 ? table.retryTag : null)
    if (table.turn === before && !isMoved) return
    this.#tx.touchLaneTable(table)
    this.#memory.tableOrders.put(table)
  }
}

/** Null if it is the only table of its lane: then no counts are kept by table. */
function tableOf({ parentLane: lane, computeTable }: Partition): LaneTable | null {
  return lane.onlyTable === null ? (lane.tables.get(computeTable) ?? null) : null
}

const newLaneTable = ({ id, level }: Lane, table: string) => ({
  lane: id,
  table,
  level,
  tag: 0n,
  retryTag: 0n,
  turn: null,
  cursor: 0,
  ready: 0,
  released: 0,
  retries: 0,
})

/** Returns the smaller value, ignoring nulls. */
function earlier(first: bigint | null, retry: bigint | null): bigint | null {
  return first === null ? retry : retry === null || first <= retry ? first : retry
}
