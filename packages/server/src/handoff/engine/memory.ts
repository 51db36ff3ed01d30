import type { InstanceRole } from '@baton/protocol'
import type { Loaded } from '../disk.ts'
import type { StoredSubscription } from '../outbox.ts'
import { finishedOf } from '../rules/tally.ts'
import type {
  Line,
  NextIds,
  StoredKey,
  StoredLane,
  StoredLevel,
  StoredPace,
  StoredPartition,
  StoredTask,
} from '../stored.ts'
import { LineBuffer } from './line-buffer.ts'
import { Order, type OrderedLane, type OrderedTask } from './order.ts'

/** What changed last in the entry of this number: until that is flushed, the row on the disk is older than memory. */
interface Changing {
  changedIn: number
}

export interface Level extends StoredLevel, Changing {
  /** Lanes of this level in memory, and those of them in the order. */
  lanes: number
  queued: number
}

export interface Task extends StoredTask, OrderedTask<Lane>, Changing {
  readonly rerunning: boolean
  /** Those in memory, by level. */
  readonly lanes: Map<number, Lane>
  pace: StoredPace | null
  /** As of the last event about it, or when it was read. */
  toldState: StoredTask['state']
  toldGeneration: number
  /** The entry in which its failures changed last. */
  failuresChangedIn: number
}

export interface Lane extends StoredLane, OrderedLane<Lane>, Changing {
  readonly owner: Task
  readonly time: Level
  readonly lines: Record<Line, LineBuffer<Partition>>
  /** The largest index that was ever called back here; null for a lane that was read, whose indexes are on the disk. */
  lastIndex: number | null
  /** Partitions in memory that point here. */
  pins: number
  /** How many partitions were done when all of them were, as of the last event about it or when it was read. */
  toldFinished: number | null
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
  /** All of them. */
  readonly subscriptions = new Map<string, StoredSubscription>()
  readonly order = new Order<Lane>()
  readonly nextIds: NextIds
  /** The number of the last entry that rows on the disk contain. */
  flushed: number

  constructor(nextIds: NextIds, flushed: number) {
    this.nextIds = nextIds
    this.flushed = flushed
  }

  isClean = ({ changedIn }: Changing): boolean => changedIn <= this.flushed

  take(loaded: Pick<Loaded, 'tasks' | 'lanes' | 'levels' | 'partitions'>): void {
    for (const task of loaded.tasks) if (!this.tasks.has(task.id)) this.addTask(task)
    for (const level of loaded.levels) if (!this.levels.has(level.level)) this.#addLevel(level)
    // A row without its lane, or a lane without its task, was written by a node that leads now: what it belongs to is
    // flushed later. This node will be told when it appends.
    for (const lane of loaded.lanes)
      if (!this.lanes.has(lane.id) && this.tasks.has(lane.task)) this.addLane(lane, false)
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
      asideForgotten: false,
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
      heapIndex: -1,
      pins: 0,
      toldFinished: finishedOf(row.partitions),
    }
    this.lanes.set(lane.id, lane)
    owner.lanes.set(lane.level, lane)
    time.lanes += 1
    return lane
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
    if (this.partitions.size > bounds.partitions) this.#evictPartitions(bounds.partitions >> 1)
    if (this.lanes.size > bounds.lanes) this.#evictLanes(bounds.lanes >> 1)
    if (this.tasks.size > bounds.lanes) this.#evictTasks(bounds.lanes >> 1)
    if (this.keys.size > bounds.keys) this.#evictKeys(bounds.keys >> 1)
    if (this.instances.size > bounds.keys) this.instances.clear()
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
    for (const lane of this.order.cut(left)) this.#dropLane(lane)
    for (const task of this.tasks.values()) {
      if (this.lanes.size <= left) return
      for (const lane of task.aside) if (this.#dropLane(lane)) task.asideForgotten = true
    }
  }

  #dropLane(lane: Lane): boolean {
    const { owner, time, lines } = lane
    const buffered = [...lines.fresh.items, ...lines.released.items, ...lines.retry.items]
    const isFree = this.isClean(lane) && lane.pins === buffered.length && buffered.every(this.isClean)
    if (!isFree) {
      // It stays, and so does its place in the order.
      if (lane.turn !== null && lane.heapIndex === -1 && !owner.aside.has(lane)) this.order.put(lane)
      return false
    }
    for (const partition of buffered) this.dropPartition(partition)
    this.order.remove(lane)
    owner.aside.delete(lane)
    owner.lanes.delete(lane.level)
    this.lanes.delete(lane.id)
    time.lanes -= 1
    if (time.lanes === 0 && this.isClean(time)) this.levels.delete(time.level)
    return true
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

  #addLevel(row: StoredLevel): Level {
    const level: Level = { ...row, lanes: 0, queued: 0, changedIn: 0 }
    this.levels.set(level.level, level)
    return level
  }
}

export interface MemoryBounds {
  readonly partitions: number
  readonly lanes: number
  readonly keys: number
}
