import type { Prepared } from '../readied.ts'
import { advance, cost, drain, isLaneOpen } from '../rules/lane-rules.ts'
import { weightOfTask } from '../rules/task-settings.ts'
import type { Line } from '../stored.ts'
import type { Lane, LaneTable, Level, Memory, Partition, TableTime, Task } from './state/memory.ts'

/** What of a transaction this needs. */
interface Changes {
  readonly memory: Memory
  readonly readied: Prepared
  touchLane(lane: Lane): void
  touchLevel(level: Level): void
  touchLaneTable(table: LaneTable): void
  touchTableTime(time: TableTime): void
}

/**
 * How a transaction changes who waits: partitions join and leave the lines of their lane, the order is charged for what is
 * handed out, and the turns of lanes and of their tables follow.
 */
export class WaitingLines {
  readonly #tx: Changes
  readonly #memory: Memory

  constructor(tx: Changes) {
    this.#tx = tx
    this.#memory = tx.memory
  }

  /** A partition begins to wait on a line. Its state, line and place are set, and it is counted as ready. */
  enqueue(partition: Partition): void {
    const { home: lane, line } = partition
    this.#startLine(lane, line, line === 'retry' ? lane.retries : firstWaiting(lane) - 1)
    if (line === 'retry') lane.retries += 1
    else if (line === 'released') lane.released += 1
    lane.lines[line].add(partition)
    const table = tableOf(partition)
    if (table !== null) this.#joinTable(table, partition)
    this.#turn(lane)
    if (isLaneOpen(lane.owner, lane.level)) this.#tx.readied.add(lane.owner.taskId, partition.computeTable, 1)
  }

  /** Fresh partitions joined the end of a lane and are counted as ready; `waitedBefore` did so before. */
  enqueueFresh(lane: Lane, waitedBefore: number, tables: ReadonlyMap<string, number>): void {
    this.#startLine(lane, 'fresh', waitedBefore)
    this.#joinTables(lane, tables, waitedBefore)
    this.#turn(lane)
  }

  /** A partition that waited is needed elsewhere. To be called before its state, line or place change. */
  dequeue(partition: Partition): void {
    const { home: lane, line } = partition
    lane.lines[line].remove(partition)
    if (line === 'retry') lane.retries -= 1
    else if (line === 'released') lane.released -= 1
    const table = tableOf(partition)
    if (table !== null) this.#leaveTable(table, partition)
    this.#tx.touchLane(lane)
  }

  /** The turn of a lane follows from its counters and tags: to be called when those changed. */
  requeue(lane: Lane): void {
    this.#turn(lane)
  }

  /**
   * Takes a partition out of its line and charges the order from which it was chosen: that of all lanes, that of a table, or
   * none. It is the first of its line; or the first of its table in it.
   */
  serve(partition: Partition, chosenFrom: Lane | LaneTable | null): void {
    const { home: lane, line, recordCount } = partition
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
    // What was given back unused has been charged before.
    if (line === 'released' || chosenFrom === null) return
    const start = line === 'retry' ? chosenFrom.retryTag : chosenFrom.tag
    const weight = weightOfTask(lane.owner)
    let finish: bigint
    if ('table' in chosenFrom) {
      const { time } = chosenFrom
      if (time.virtual < start) time.virtual = start
      finish = start + cost(recordCount, weight)
      this.#tx.touchTableTime(time)
      this.#tx.touchLaneTable(chosenFrom)
    } else {
      finish = advance(lane.time, start, recordCount, weight)
      this.#tx.touchLevel(lane.time)
    }
    if (line === 'retry') chosenFrom.retryTag = finish
    else chosenFrom.tag = finish
  }

  /** The turn of a lane for one of its tables, when its tags changed. */
  requeueTable(table: LaneTable): void {
    this.#turnOfTable(table)
  }

  /** A lane that was set aside, or read from the disk, may be behind the level's time. */
  catchUp(lane: Lane): void {
    if (lane.turn !== null && lane.turn < lane.time.virtual) this.#turn(lane)
  }

  catchUpTable(table: LaneTable): void {
    if (table.turn !== null && table.turn < table.time.virtual) this.#turnOfTable(table)
  }

  /** Of a task that may serve again: its lanes return to the order at the level's time. */
  reopen(task: Task): void {
    const { order, tableOrders } = this.#memory
    if (task.asideForgotten) {
      task.asideForgotten = false
      order.rewind()
      tableOrders.rewind()
    }
    for (const lane of task.aside) order.reopen(lane)
    for (const table of task.asideTables) tableOrders.reopen(table)
    // Also those that were not met while they might not serve: they kept their place, and others moved on.
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

  /** A line that had nothing starts where the level stands. */
  #startLine(lane: Lane, line: Line, waitedBefore: number): void {
    if (waitedBefore > 0) return
    const { time } = lane
    if (time.queued === 0 && time.virtual < time.served && this.#memory.order.isLoadedPast(time.level)) {
      drain(time)
      this.#tx.touchLevel(time)
    }
    if (line === 'retry') {
      if (lane.retryTag < time.virtual) lane.retryTag = time.virtual
    } else if (lane.tag < time.virtual) lane.tag = time.virtual
  }

  #turn(lane: Lane): void {
    const { owner, level, time } = lane
    if (isLaneOpen(owner, level)) {
      // Behind the time is only one that might not serve for a while, and had not been met since.
      if (lane.tag < time.virtual) lane.tag = time.virtual
      if (lane.retryTag < time.virtual) lane.retryTag = time.virtual
    }
    const first = firstWaiting(lane) > 0 ? lane.tag : null
    const retry = lane.retries > 0 ? lane.retryTag : null
    lane.turn = earlier(first, retry)
    this.#tx.touchLane(lane)
    this.#memory.order.put(lane)
    if (lane.onlyTable !== null) this.#turnOfTable(lane.onlyTable)
  }

  /** Fresh partitions arrive. A lane that has one table keeps no counts for it; with the second one it begins to. */
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
      // What arrived is on the disk, behind all that was read.
      if (table.lines !== null) table.lines.fresh.isComplete = false
      this.#turnOfTable(table)
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
    this.#turnOfTable(table)
  }

  /** Most changes of a lane leave the turn of its table as it is: then nothing is written. */
  #turnOfTable(table: LaneTable): void {
    const { owner, level, time } = table
    const first = firstWaiting(table)
    const retries = retriesOf(table)
    const before = table.turn
    let isMoved = false
    if (isLaneOpen(owner, level) || before === null) {
      // Only lines that have work: a tag that moved has to be written, also where the turn stays as it is.
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

/** How many wait on the first line of a lane, or of one of its tables: fresh, or given back unused. */
export const firstWaiting = (source: Lane | LaneTable): number => waitingOf(source) - retriesOf(source)

/** A lane's only table keeps no counts of its own. */
export const waitingOf = (source: Lane | LaneTable): number =>
  'partitions' in source
    ? source.partitions.ready
    : source.home.onlyTable === source
      ? source.home.partitions.ready
      : source.ready

export const retriesOf = (source: Lane | LaneTable): number =>
  'home' in source && source.home.onlyTable === source ? source.home.retries : source.retries

/** Null where its lane has no other: then no counts are kept by table. */
function tableOf({ home, computeTable }: Partition): LaneTable | null {
  return home.onlyTable === null ? (home.tables.get(computeTable) ?? null) : null
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

/** The smaller one, of those that there are. */
function earlier(first: bigint | null, retry: bigint | null): bigint | null {
  return first === null ? retry : retry === null || first <= retry ? first : retry
}
