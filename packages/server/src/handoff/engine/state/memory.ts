import type { InstanceRole } from '@baton/protocol'
import type { LoadedRows } from '../../disk.ts'
import type { StoredSubscription } from '../../outbox.ts'
import type { StoredPartition } from '../../partition.ts'
import { finishedOf } from '../../rules/task.ts'
import type {
  NextIds,
  StoredLane,
  StoredLaneTable,
  StoredLevel,
  StoredTableTime,
  StoredTask,
} from '../../stored.ts'
import { LaneHeap } from './lane-heap.ts'
import {
  type Changing,
  itemsOf,
  type Key,
  type Lane,
  type LaneTable,
  type Level,
  LineBuffer,
  nameOfTime,
  type Partition,
  type TableTime,
  type Task,
} from './memory-rows.ts'
import { Rotations, TableOrders } from './table-orders.ts'

/**
 * The engine's memory: a bounded part of the disk's rows, kept up to date by all entries. `take` adds loaded
 * rows that are not in memory yet. `evict` removes clean rows, which means rows whose last change is flushed.
 */
export class Memory {
  readonly tasks = new Map<number, Task>()
  readonly tasksByName = new Map<string, Task>()
  readonly lanes = new Map<number, Lane>()
  readonly levels = new Map<number, Level>()
  readonly partitions = new Map<number, Partition>()
  readonly keys = new Map<string, Key>()
  /** Instances that are known to have a row on disk. */
  readonly instances = new Map<string, InstanceRole>()
  readonly tableTimes = new Map<string, TableTime>()
  /** All subscriptions. */
  readonly subscriptions = new Map<string, StoredSubscription>()
  readonly order = new LaneHeap<Lane>()
  readonly tableOrders = new TableOrders<LaneTable>(this.lanes)
  readonly rotations = new Rotations()
  readonly nextIds: NextIds
  #flushed: number
  /**
   * Maps that could not be evicted down to their bound: what was flushed at that time, and how many rows
   * remained.
   */
  readonly #stuck = new Map<ReadonlyMap<unknown, unknown>, { flushed: number; left: number }>()
  /** Partitions whose last image was flushed since the last eviction. */
  #flushedLately: Iterable<number>[] = []

  constructor(nextIds: NextIds, flushed: number) {
    this.nextIds = nextIds
    this.#flushed = flushed
  }

  isClean = ({ changedIn }: Changing): boolean => changedIn <= this.#flushed

  /** The rows on disk contain all entries up to this number, which changed these partitions. */
  flushed(upTo: number, partitions: Iterable<number>): void {
    this.#flushed = upTo
    this.#flushedLately.push(partitions)
  }

  take(loaded: LoadedRows): void {
    for (const task of loaded.tasks) if (!this.tasks.has(task.id)) this.addTask(task)
    for (const level of loaded.levels) if (!this.levels.has(level.level)) this.#addLevel(level)
    for (const time of loaded.tableTimes) if (!this.tableTimes.has(nameOfTime(time))) this.#addTableTime(time)
    // A row without its lane, or a lane without its task, was written by a node that has become leader: the
    // row it belongs to is flushed later. This node gets an error when it appends.
    const added = new Map<number, Lane>()
    for (const lane of loaded.lanes)
      if (!this.lanes.has(lane.id) && this.tasks.has(lane.task)) added.set(lane.id, this.addLane(lane, false))
    for (const row of loaded.laneTables) {
      const lane = added.get(row.lane)
      if (lane !== undefined) this.addLaneTable(lane, row)
    }
    for (const row of loaded.partitions)
      if (!this.partitions.has(row.id) && this.lanes.has(row.lane)) this.addPartition(row)
  }

  addTask(row: StoredTask): Task {
    const task: Task = {
      ...row,
      rerunning: row.reruns.length > 0,
      changedIn: 0,
      lanes: new Map(),
      aside: new Set(),
      asideTables: new Set(),
      asideForgotten: false,
      waitingLoadedTo: 0,
      pace: null,
      lastEventState: row.state,
      lastEventGeneration: row.generation,
      failuresChangedIn: 0,
    }
    this.tasks.set(task.id, task)
    this.tasksByName.set(task.taskId, task)
    return task
  }

  /** A new lane has no rows on disk. */
  addLane(row: StoredLane, isNew: boolean): Lane {
    const task = this.tasks.get(row.task)
    if (task === undefined) throw new Error(`lane ${row.id} was read without its task`)
    const time = this.levels.get(row.level) ?? this.#addLevel({ level: row.level, virtual: 0n, served: 0n })
    const lane: Lane = {
      ...row,
      parentTask: task,
      time,
      lines: {
        fresh: new LineBuffer(isNew || row.cursor >= row.tail),
        released: new LineBuffer(isNew || row.released === 0),
        retry: new LineBuffer(isNew || row.retries === 0),
      },
      changedIn: 0,
      lastIndex: isNew ? -1 : null,
      tables: new Map(),
      onlyTable: null,
      aside: task.aside,
      heapIndex: -1,
      pins: 0,
      done: null,
      doneIn: 0,
      lastEventFinished: finishedOf(row, task),
    }
    this.lanes.set(lane.id, lane)
    task.lanes.set(lane.level, lane)
    time.lanes += 1
    return lane
  }

  addLaneTable(lane: Lane, row: StoredLaneTable): LaneTable {
    const { parentTask: task, level } = lane
    const time =
      this.tableTimes.get(nameOfTime(row)) ?? this.#addTableTime({ level, table: row.table, virtual: 0n })
    const added: LaneTable = {
      ...row,
      id: lane.id,
      parentLane: lane,
      parentTask: task,
      time,
      aside: task.asideTables,
      lines: null,
      heapIndex: -1,
      changedIn: 0,
    }
    time.lanes += 1
    lane.tables.set(row.table, added)
    lane.onlyTable = lane.tables.size === 1 ? added : null
    return added
  }

  addPartition(row: StoredPartition): Partition {
    const lane = this.lanes.get(row.lane)
    if (lane === undefined) throw new Error(`partition ${row.id} was read without its lane`)
    const partition: Partition = { ...row, parentLane: lane, changedIn: 0 }
    this.partitions.set(partition.id, partition)
    lane.pins += 1
    return partition
  }

  dropPartition(partition: Partition): void {
    if (!this.partitions.delete(partition.id)) return
    partition.parentLane.pins -= 1
  }

  /** Keeps memory within bounds. Only flushed rows are evicted. */
  evict(bounds: MemoryBounds): void {
    this.#dropFinished()
    this.#evictFrom(this.partitions, bounds.partitions, (left) => this.#evictPartitions(left))
    this.#evictFrom(this.lanes, bounds.lanes, (left) => {
      // Finished partitions pin their lanes, and small tasks have many lanes for few partitions.
      this.#evictPartitions(this.partitions.size >> 1)
      this.#evictLanes(left)
    })
    this.#evictFrom(this.tasks, bounds.lanes, (left) => this.#evictTasks(left))
    this.#evictFrom(this.keys, bounds.keys, (left) => this.#evictKeys(left))
    if (this.instances.size > bounds.keys) this.instances.clear()
  }

  /**
   * Evicts a quarter at a time, so that no transaction takes long. If unflushed rows prevented that, a new
   * scan is worthwhile only after the next flush, or when many rows were added.
   */
  #evictFrom(rows: ReadonlyMap<unknown, unknown>, most: number, evict: (left: number) => void): void {
    if (rows.size <= most) return
    const stuck = this.#stuck.get(rows)
    if (stuck !== undefined && stuck.flushed === this.#flushed && rows.size < stuck.left + (most >> 2)) return
    const left = Math.max(most >> 1, rows.size - (most >> 2))
    evict(left)
    if (rows.size > left) this.#stuck.set(rows, { flushed: this.#flushed, left: rows.size })
    else this.#stuck.delete(rows)
  }

  /** Done partitions are rarely used again. Dropping them early keeps garbage collection cheap. */
  #dropFinished(): void {
    for (const ids of this.#flushedLately)
      for (const id of ids) {
        const partition = this.partitions.get(id)
        if (partition?.state === 'done' && this.isClean(partition)) this.dropPartition(partition)
      }
    this.#flushedLately = []
  }

  /** Evicts the oldest first. Ready partitions stay: they are evicted with their lane. */
  #evictPartitions(left: number): void {
    for (const partition of this.partitions.values()) {
      if (this.partitions.size <= left) return
      if (partition.state !== 'ready' && this.isClean(partition)) this.dropPartition(partition)
    }
  }

  /** Evicts lanes without work first, then the last in the order, then those set aside. */
  #evictLanes(left: number): void {
    for (const lane of this.lanes.values()) {
      if (this.lanes.size <= left) return
      if (lane.turn === null) this.#dropLane(lane)
    }
    // Lanes that come next in a table's order stay: they may be far back in the order of all lanes.
    this.tableOrders.cut(left >> 1, this.isClean)
    const isAhead = ({ tables }: Lane) => [...tables.values()].some(({ heapIndex }) => heapIndex >= 0)
    // A lane that must stay in memory keeps its position in the order.
    for (const lane of this.order.cut(left, isAhead)) if (!this.#dropLane(lane)) this.order.put(lane)
    for (const lane of this.lanes.values()) {
      if (this.lanes.size <= left) return
      if (lane.heapIndex < 0 && !lane.aside.has(lane) && !isAhead(lane)) this.#dropLane(lane)
    }
    for (const task of this.tasks.values()) {
      if (this.lanes.size <= left) return
      for (const lane of task.aside) if (this.#dropLane(lane)) task.asideForgotten = true
    }
  }

  #dropLane(lane: Lane): boolean {
    const { parentTask: task, time, tables } = lane
    const buffered = this.isClean(lane) ? bufferedOf(lane) : null
    const isFree =
      buffered !== null &&
      lane.pins === buffered.size &&
      [...tables.values(), ...buffered].every(this.isClean)
    if (!isFree) return false
    for (const partition of buffered) this.dropPartition(partition)
    this.order.remove(lane)
    task.aside.delete(lane)
    task.lanes.delete(lane.level)
    if (lane.turn !== null && lane.level < task.waitingLoadedTo) task.waitingLoadedTo = lane.level
    this.lanes.delete(lane.id)
    time.lanes -= 1
    if (time.lanes === 0 && this.isClean(time)) this.levels.delete(time.level)
    for (const table of tables.values()) this.#dropLaneTable(table)
    return true
  }

  #dropLaneTable(table: LaneTable): void {
    const { parentTask: task, time } = table
    this.tableOrders.forget(table)
    if (task.asideTables.delete(table)) task.asideForgotten = true
    time.lanes -= 1
    if (time.lanes === 0 && this.isClean(time)) this.tableTimes.delete(nameOfTime(time))
  }

  #evictTasks(left: number): void {
    for (const task of this.tasks.values()) {
      if (this.tasks.size <= left) return
      if (task.lanes.size > 0 || task.asideForgotten || !this.isClean(task)) continue
      this.tasks.delete(task.id)
      this.tasksByName.delete(task.taskId)
    }
  }

  #evictKeys(left: number): void {
    for (const [name, key] of this.keys) {
      if (this.keys.size <= left) return
      if (this.isClean(key)) this.keys.delete(name)
    }
  }

  #addTableTime(row: StoredTableTime): TableTime {
    const time: TableTime = { ...row, lanes: 0, queued: 0, changedIn: 0 }
    this.tableTimes.set(nameOfTime(row), time)
    return time
  }

  #addLevel(row: StoredLevel): Level {
    const level: Level = { ...row, lanes: 0, queued: 0, changedIn: 0 }
    this.levels.set(level.level, level)
    return level
  }
}

/** Partitions that are in memory because they are next in a line of this lane. */
function bufferedOf({ lines, tables }: Lane): Set<Partition> {
  const buffered = new Set(itemsOf(lines))
  for (const { lines: ofTable } of tables.values())
    if (ofTable !== null) for (const partition of itemsOf(ofTable)) buffered.add(partition)
  return buffered
}

export interface MemoryBounds {
  readonly partitions: number
  readonly lanes: number
  readonly keys: number
}
