import type { InstanceRole } from '@baton/protocol'
import type { Lanes } from '../../disk.ts'
import type { StoredSubscription } from '../../outbox.ts'
import type { StoredPartition } from '../../partition.ts'
import type { LanesOfTask } from '../../rules/open-work-limits.ts'
import { finishedOf } from '../../rules/task.ts'
import type { NextIds, StoredLane, StoredLaneTable, StoredLevel, StoredTask } from '../../stored.ts'
import { Checkpoints } from './checkpoints.ts'
import { FilterOrders } from './filter-orders.ts'
import { Leases } from './leases.ts'
import {
  type Changing,
  hasWork,
  type Key,
  type Lane,
  type LaneTable,
  LaneTableEntry,
  type Level,
  laneTablesOf,
  MixedLaneTables,
  type Partition,
  type Task,
} from './memory-rows.ts'
import { Order } from './order.ts'
import { OwnedWork } from './owned-work.ts'
import { tablesOf } from './tables.ts'
import { WaitingBuffer } from './waiting-buffer.ts'

/**
 * The engine's memory: all open work, kept up to date by all entries. That is every task that is not finished,
 * its lanes with waiting, delayed or leased partitions, and every lease. Of the waiting partitions it has the
 * next ones of some lanes. Everything else is read when it is needed, and dropped when its last change is
 * flushed.
 */
export class Memory {
  readonly tasks = new Map<number, Task>()
  readonly tasksByName = new Map<string, Task>()
  readonly lanes = new Map<number, Lane>()
  readonly levels = new Map<number, Level>()
  readonly partitions = new Map<number, Partition>()
  readonly checkpoints = new Checkpoints()
  readonly keys = new Map<string, Key>()
  /** Instances that are known to have a row on disk. */
  readonly instances = new Map<string, InstanceRole>()
  /** All paused instances, and since when. */
  readonly pausedInstances = new Map<string, number>()
  readonly subscriptions = new Map<string, StoredSubscription>()
  readonly order = new Order()
  readonly leases = new Leases(this.order)
  readonly filterOrders = new FilterOrders(this.order, this.tasksByName)
  readonly ownedWork = new OwnedWork(this.tasks)
  readonly nextIds: NextIds
  /** The number of tables beyond the first of all lanes. */
  furtherTables = 0
  #flushed: number
  /** What was flushed since the last eviction. */
  #flushedLately: RowIds[] = []
  /** Lanes with buffered partitions. Those filled longest ago are first. */
  readonly #buffered = new Set<Lane>()

  constructor(nextIds: NextIds, flushed: number) {
    this.nextIds = nextIds
    this.#flushed = flushed
  }

  /** As compared with the limit: every further table of a lane counts as a tenth. */
  get lanesUsed(): number {
    return this.lanes.size + this.furtherTables / 10
  }

  widestTasks(count: number): LanesOfTask[] {
    const widest: Task[] = []
    for (const task of this.tasks.values()) {
      if (widest.length === count && task.lanes.size <= (widest.at(-1) as Task).lanes.size) continue
      widest.push(task)
      widest.sort((a, b) => b.lanes.size - a.lanes.size)
      widest.length = Math.min(widest.length, count)
    }
    return widest.map(({ taskId, lanes }) => ({ taskId, lanes: lanes.size }))
  }

  isClean = ({ changedIn }: Changing): boolean => changedIn <= this.#flushed

  addLevel(row: StoredLevel): Level {
    const level: Level = { ...row, waitingLanes: 0, changedIn: 0 }
    this.levels.set(level.level, level)
    return level
  }

  addTask(row: StoredTask): Task {
    const task: Task = {
      ...row,
      changedIn: 0,
      lanes: new Map(),
      tables: new Map(),
      pace: null,
      lastEventState: row.state,
      lastEventGeneration: row.generation,
      failuresChangedIn: 0,
    }
    this.tasks.set(task.id, task)
    this.tasksByName.set(task.taskId, task)
    return task
  }

  /** Adds lanes that were read, unless they are in memory. Memory is never older than the disk. */
  addLanes({ lanes, tables }: Lanes): void {
    const added = new Map<number, Lane>()
    // A lane without its task is of a node that leads now: appending fails then.
    for (const row of lanes)
      if (!this.lanes.has(row.id) && this.tasks.has(row.task)) added.set(row.id, this.addLane(row, false))
    for (const row of tables) {
      const lane = added.get(row.lane)
      if (lane !== undefined) this.addLaneTable(lane, row)
    }
    for (const lane of added.values()) {
      for (const table of laneTablesOf(lane)) this.order.updateTable(table)
      this.order.update(lane)
    }
  }

  /** A new lane has no rows on disk. */
  addLane(row: StoredLane, isNew: boolean): Lane {
    const task = this.tasks.get(row.task)
    if (task === undefined) throw new Error(`lane ${row.id} was read without its task`)
    const lane: Lane = {
      ...row,
      parentTask: task,
      time: this.levels.get(row.level) ?? this.addLevel({ level: row.level, virtual: 0n, maxFinishTag: 0n }),
      buffers: {
        fresh: new WaitingBuffer(isNew || row.cursor >= row.tail),
        returned: new WaitingBuffer(isNew || row.returned === 0),
      },
      changedIn: 0,
      lastIndex: isNew ? -1 : null,
      firstTable: this.order.tables.use(row.table, task),
      mixed: null,
      counted: { partitions: 0, records: 0 },
      queueEntry: null,
      heapIndex: -1,
      pins: 0,
      done: null,
      doneIn: 0,
      lastEventFinished: finishedOf(row, task),
    }
    this.lanes.set(lane.id, lane)
    task.lanes.set(lane.level, lane)
    return lane
  }

  addLaneTable(lane: Lane, row: StoredLaneTable): LaneTable {
    const isFirst = row.table === lane.table
    const used = isFirst ? lane.firstTable : this.order.tables.use(row.table, lane.parentTask)
    const entry = new LaneTableEntry(lane, used)
    const table: LaneTable = { ...row, parentLane: lane, entry, buffers: null, changedIn: 0 }
    if (lane.mixed === null) lane.mixed = new MixedLaneTables()
    else this.furtherTables += 1
    lane.mixed.tables.set(row.table, table)
    return table
  }

  /** Its lane must be in memory. */
  addPartition(row: StoredPartition): Partition {
    const lane = this.lanes.get(row.lane)
    if (lane === undefined) throw new Error(`partition ${row.id} was read without its lane`)
    const partition: Partition = {
      ...row,
      parentLane: lane,
      progress: null,
      bufferCount: 0,
      heapIndex: -1,
      changedIn: 0,
    }
    this.partitions.set(partition.id, partition)
    lane.pins += 1
    if (partition.state === 'leased') this.leases.put(partition)
    return partition
  }

  keepPartition(partition: Partition): void {
    if (this.partitions.has(partition.id)) return
    this.partitions.set(partition.id, partition)
    partition.parentLane.pins += 1
  }

  dropPartition(partition: Partition): void {
    if (this.partitions.delete(partition.id)) partition.parentLane.pins -= 1
  }

  /** Rows were put into the buffers of a lane. */
  buffered(lane: Lane): void {
    this.#buffered.delete(lane)
    this.#buffered.add(lane)
  }

  /** The rows on disk contain all entries up to this number, which changed these rows. */
  flushed(upTo: number, changed: RowIds): void {
    this.#flushed = upTo
    this.#flushedLately.push(changed)
    this.checkpoints.flushed(upTo)
  }

  /** Drops those of these rows that are not open work and have no unflushed change. */
  #dropUnneeded({ tasks, lanes, partitions }: RowIds): void {
    for (const id of partitions) {
      const partition = this.partitions.get(id)
      if (partition !== undefined) this.#dropPartitionIfUnneeded(partition)
    }
    for (const id of lanes) {
      const lane = this.lanes.get(id)
      if (lane !== undefined) this.#dropLaneIfUnneeded(lane)
    }
    for (const id of tasks) {
      const task = this.tasks.get(id)
      if (task !== undefined) this.#dropTaskIfUnneeded(task)
    }
  }

  /** Drops flushed rows that are not open work, or beyond the bounds. Call it after a transaction. */
  evict(read: RowIds, bounds: MemoryBounds): void {
    this.#dropUnneeded(read)
    for (const changed of this.#flushedLately) this.#dropUnneeded(changed)
    this.#flushedLately = []
    if (this.partitions.size - this.leases.size > bounds.partitions)
      this.#clearBuffers(bounds.partitions >> 1)
    if (this.instances.size > bounds.keys) this.instances.clear()
    if (this.keys.size <= bounds.keys) return
    for (const [name, key] of this.keys) {
      if (this.keys.size <= bounds.keys >> 1) return
      if (this.isClean(key)) this.keys.delete(name)
    }
  }

  /** Nothing of a task that was cancelled is handed out any more. */
  closeLanes(task: Task): void {
    for (const lane of task.lanes.values()) {
      this.order.update(lane)
      this.#clearBuffersOf(lane, () => true)
    }
  }

  #clearBuffers(left: number): void {
    for (const lane of this.#buffered) {
      if (this.partitions.size - this.leases.size <= left) return
      this.#clearBuffersOf(lane, this.isClean)
    }
  }

  #clearBuffersOf(lane: Lane, mayLeave: (partition: Partition) => boolean): void {
    this.#buffered.delete(lane)
    for (const { buffers } of [lane, ...laneTablesOf(lane)]) {
      if (buffers === null) continue
      for (const buffer of [buffers.fresh, buffers.returned])
        for (const partition of buffer.clear(mayLeave)) this.#dropPartitionIfUnneeded(partition)
    }
  }

  #dropPartitionIfUnneeded(partition: Partition): void {
    if (partition.state === 'leased' || partition.bufferCount > 0 || !this.isClean(partition)) return
    this.dropPartition(partition)
    this.#dropLaneIfUnneeded(partition.parentLane)
  }

  #dropLaneIfUnneeded(lane: Lane): void {
    if (lane.pins > 0 || hasWork(lane) || !this.isClean(lane)) return
    for (const table of laneTablesOf(lane)) if (!this.isClean(table)) return
    this.removeLane(lane)
    this.#dropTaskIfUnneeded(lane.parentTask)
  }

  #dropTaskIfUnneeded(task: Task): void {
    if (task.lanes.size > 0 || task.finishedAt === null || !this.isClean(task)) return
    this.removeTask(task)
  }

  removeTask(task: Task): void {
    this.tasks.delete(task.id)
    this.tasksByName.delete(task.taskId)
  }

  removeLane(lane: Lane): void {
    if (lane.mixed !== null) this.furtherTables -= lane.mixed.tables.size - 1
    this.lanes.delete(lane.id)
    for (const table of tablesOf(lane)) this.order.tables.unuse(table, lane.parentTask)
    this.#buffered.delete(lane)
    lane.parentTask.lanes.delete(lane.level)
  }

  removeLaneTable(table: LaneTable): void {
    const { parentLane: lane, entry } = table
    table.ready = 0
    this.order.updateTable(table)
    if (entry.table !== lane.firstTable) this.order.tables.unuse(entry.table, lane.parentTask)
    const { mixed } = lane
    if (mixed === null) return
    mixed.tables.delete(table.table)
    if (mixed.tables.size > 0) this.furtherTables -= 1
    else lane.mixed = null
  }
}

export interface RowIds {
  readonly tasks: Iterable<number>
  readonly lanes: Iterable<number>
  readonly partitions: Iterable<number>
}

export interface MemoryBounds {
  /** Waiting partitions, and others that were used lately. */
  readonly partitions: number
  readonly keys: number
}
