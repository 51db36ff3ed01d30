import type { InstanceRole } from '@baton/protocol'
import type { LoadedRows } from '../../disk.ts'
import type { StoredSubscription } from '../../outbox.ts'
import { finishedOf } from '../../rules/task-facts.ts'
import type {
  Line,
  NextIds,
  StoredKey,
  StoredLane,
  StoredLaneTable,
  StoredLevel,
  StoredPace,
  StoredPartition,
  StoredTableTime,
  StoredTask,
} from '../../stored.ts'
import type { DoneWithin } from '../throughput.ts'
import { LineBuffer } from './line-buffer.ts'
import { Order, type OrderedLane } from './order.ts'
import { Rotations } from './rotation.ts'
import { TableOrders } from './table-orders.ts'

/** What changed last in the entry of this number: until that is flushed, the row on the disk is older than memory. */
interface Changing {
  changedIn: number
}

export interface Level extends StoredLevel, Changing {
  /** Lanes of this level in memory, and those of them in the order. */
  lanes: number
  queued: number
}

export interface TableTime extends StoredTableTime, Changing {
  /** Lanes in memory that have this table, and those of them in its order. */
  lanes: number
  queued: number
}

export interface Task extends StoredTask, Changing {
  readonly rerunning: boolean
  /** Those in memory, by level. */
  readonly lanes: Map<number, Lane>
  /** Lanes that were met at the front of the order while they may not serve; and their tables, of the orders of tables. */
  readonly aside: Set<Lane>
  readonly asideTables: Set<LaneTable>
  /** Some of them were forgotten: when the task may serve again, orders are read from their beginning. */
  asideForgotten: boolean
  /** Every lane below this level that has a turn is in memory; Infinity: all of them. */
  waitingLoadedTo: number
  pace: StoredPace | null
  /** As of the last event about it, or when it was read. */
  toldState: StoredTask['state']
  toldGeneration: number
  /** The entry in which its failures changed last. */
  failuresChangedIn: number
}

export type Lines = Record<Line, LineBuffer<Partition>>

export interface Lane extends StoredLane, OrderedLane<Lane>, Changing {
  readonly owner: Task
  readonly time: Level
  readonly lines: Lines
  /** All of them; a lane without rows has none. */
  readonly tables: Map<string, LaneTable>
  /** Null where there are several, or none. */
  onlyTable: LaneTable | null
  /** The largest index that was ever called back here; null for a lane that was read, whose indexes are on the disk. */
  lastIndex: number | null
  /** Partitions in memory that point here. */
  pins: number
  /** What became done in the entry of this number. */
  done: DoneWithin | null
  doneIn: number
  /** How many partitions were done when all of them were, as of the last event about it or when it was read. */
  toldFinished: number | null
}

export interface LaneTable extends StoredLaneTable, OrderedLane<LaneTable>, Changing {
  readonly owner: Task
  readonly home: Lane
  readonly time: TableTime
  /** Where its lane has several tables, and a pull has asked for this one. */
  lines: Lines | null
}

export interface Partition extends StoredPartition, Changing {
  readonly home: Lane
}

export interface Key extends Changing {
  /** Null: known not to be on the disk. */
  row: StoredKey | null
}

/**
 * What the engine has in memory: a bounded part of what is on the disk, brought up to date by all entries. Rows come in
 * by `take`, which fills in only what is not here; what is clean, that is flushed, may go by `evict`.
 */
export class Memory {
  readonly tasks = new Map<number, Task>()
  readonly tasksByName = new Map<string, Task>()
  readonly lanes = new Map<number, Lane>()
  readonly levels = new Map<number, Level>()
  readonly partitions = new Map<number, Partition>()
  readonly keys = new Map<string, Key>()
  /** Names that the disk was told of: their instances have rows. */
  readonly instances = new Map<string, InstanceRole>()
  readonly tableTimes = new Map<string, TableTime>()
  /** All of them. */
  readonly subscriptions = new Map<string, StoredSubscription>()
  readonly order = new Order<Lane>()
  readonly tableOrders = new TableOrders<LaneTable>(this.lanes)
  readonly rotations = new Rotations()
  readonly nextIds: NextIds
  #flushed: number
  /** Of what could not be evicted as far as it should: what was flushed then, and how much was left. */
  readonly #stuck = new Map<ReadonlyMap<unknown, unknown>, { flushed: number; left: number }>()
  /** Partitions whose last images were flushed since memory was evicted. */
  #flushedLately: Iterable<number>[] = []

  constructor(nextIds: NextIds, flushed: number) {
    this.nextIds = nextIds
    this.#flushed = flushed
  }

  isClean = ({ changedIn }: Changing): boolean => changedIn <= this.#flushed

  /** Rows on the disk contain all entries up to this number, and with them these partitions. */
  flushed(upTo: number, partitions: Iterable<number>): void {
    this.#flushed = upTo
    this.#flushedLately.push(partitions)
  }

  take(loaded: LoadedRows): void {
    for (const task of loaded.tasks) if (!this.tasks.has(task.id)) this.addTask(task)
    for (const level of loaded.levels) if (!this.levels.has(level.level)) this.#addLevel(level)
    for (const time of loaded.tableTimes) if (!this.tableTimes.has(nameOfTime(time))) this.#addTableTime(time)
    // A row without its lane, or a lane without its task, was written by a node that leads now: what it belongs to is
    // flushed later. This node will be told when it appends.
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
      get rerunning() {
        return task.reruns.length > 0
      },
      changedIn: 0,
      lanes: new Map(),
      aside: new Set(),
      asideTables: new Set(),
      asideForgotten: false,
      waitingLoadedTo: 0,
      pace: null,
      toldState: row.state,
      toldGeneration: row.generation,
      failuresChangedIn: 0,
    }
    this.tasks.set(task.id, task)
    this.tasksByName.set(task.taskId, task)
    return task
  }

  /** A new lane has nothing on the disk. */
  addLane(row: StoredLane, isNew: boolean): Lane {
    const owner = this.tasks.get(row.task)
    if (owner === undefined) throw new Error(`lane ${row.id} was read without its task`)
    const time = this.levels.get(row.level) ?? this.#addLevel({ level: row.level, virtual: 0n, served: 0n })
    const lane: Lane = {
      ...row,
      owner,
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
      aside: owner.aside,
      heapIndex: -1,
      pins: 0,
      done: null,
      doneIn: 0,
      toldFinished: finishedOf(row.partitions),
    }
    this.lanes.set(lane.id, lane)
    owner.lanes.set(lane.level, lane)
    time.lanes += 1
    return lane
  }

  addLaneTable(lane: Lane, row: StoredLaneTable): LaneTable {
    const { owner, level } = lane
    const time =
      this.tableTimes.get(nameOfTime(row)) ?? this.#addTableTime({ level, table: row.table, virtual: 0n })
    const added: LaneTable = {
      ...row,
      id: lane.id,
      home: lane,
      owner,
      time,
      aside: owner.asideTables,
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
    const home = this.lanes.get(row.lane)
    if (home === undefined) throw new Error(`partition ${row.id} was read without its lane`)
    const partition: Partition = { ...row, home, changedIn: 0 }
    this.partitions.set(partition.id, partition)
    home.pins += 1
    return partition
  }

  dropPartition(partition: Partition): void {
    if (!this.partitions.delete(partition.id)) return
    partition.home.pins -= 1
  }

  /** Keeps memory within bounds. Nothing goes that is not flushed. */
  evict(bounds: MemoryBounds): void {
    this.#dropFinished()
    this.#evictFrom(this.partitions, bounds.partitions, (left) => this.#evictPartitions(left))
    this.#evictFrom(this.lanes, bounds.lanes, (left) => {
      // Finished partitions hold their lanes, and small tasks have many lanes for few partitions.
      this.#evictPartitions(this.partitions.size >> 1)
      this.#evictLanes(left)
    })
    this.#evictFrom(this.tasks, bounds.lanes, (left) => this.#evictTasks(left))
    this.#evictFrom(this.keys, bounds.keys, (left) => this.#evictKeys(left))
    if (this.instances.size > bounds.keys) this.instances.clear()
  }

  /**
   * A quarter at a time, so that no transaction takes long for it. Where less could go, because it is not flushed, looking
   * through all of it again is worth its time only after the next flush, or when much was added.
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

  /** What is done is rarely named again. Kept, it would live long enough to be dear to the garbage collector. */
  #dropFinished(): void {
    for (const ids of this.#flushedLately)
      for (const id of ids) {
        const partition = this.partitions.get(id)
        if (partition?.state === 'done' && this.isClean(partition)) this.dropPartition(partition)
      }
    this.#flushedLately = []
  }

  /** The oldest first. Those at the front of a line stay: they go with their lane. */
  #evictPartitions(left: number): void {
    for (const partition of this.partitions.values()) {
      if (this.partitions.size <= left) return
      if (partition.state !== 'ready' && this.isClean(partition)) this.dropPartition(partition)
    }
  }

  /** Those without work first, then the last in the order, then those that may not serve. */
  #evictLanes(left: number): void {
    for (const lane of this.lanes.values()) {
      if (this.lanes.size <= left) return
      if (lane.turn === null) this.#dropLane(lane)
    }
    // What pulls by table are about to be given stays: it may be far behind in the order of all.
    this.tableOrders.cut(left >> 1, this.isClean)
    const isAhead = ({ tables }: Lane) => [...tables.values()].some(({ heapIndex }) => heapIndex >= 0)
    for (const lane of this.order.cut(left, isAhead)) this.#dropLane(lane)
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
    const { owner, time, tables } = lane
    const buffered = this.isClean(lane) ? bufferedOf(lane) : null
    const isFree =
      buffered !== null &&
      lane.pins === buffered.size &&
      [...tables.values(), ...buffered].every(this.isClean)
    if (!isFree) {
      // It stays, and so does its place in the order.
      if (lane.turn !== null && lane.heapIndex === -1 && !owner.aside.has(lane)) this.order.put(lane)
      return false
    }
    for (const partition of buffered) this.dropPartition(partition)
    this.order.remove(lane)
    owner.aside.delete(lane)
    owner.lanes.delete(lane.level)
    if (lane.turn !== null && lane.level < owner.waitingLoadedTo) owner.waitingLoadedTo = lane.level
    this.lanes.delete(lane.id)
    time.lanes -= 1
    if (time.lanes === 0 && this.isClean(time)) this.levels.delete(time.level)
    for (const table of tables.values()) this.#dropLaneTable(table)
    return true
  }

  #dropLaneTable(table: LaneTable): void {
    const { owner, time } = table
    this.tableOrders.forget(table)
    if (owner.asideTables.delete(table)) owner.asideForgotten = true
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

export const nameOfTime = ({ level, table }: Pick<StoredTableTime, 'level' | 'table'>): string =>
  `${level}:${table}`

export const itemsOf = ({ fresh, released, retry }: Lines): Partition[] => [
  ...fresh.items,
  ...released.items,
  ...retry.items,
]

/** Partitions that are in memory because they are next on a line of this lane. */
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
