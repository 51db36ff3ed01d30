import type { StoredPartition } from '../../partition.ts'
import type {
  StoredKey,
  StoredLane,
  StoredLaneTable,
  StoredLevel,
  StoredPace,
  StoredTask,
} from '../../stored.ts'
import type { DoneWithin } from '../throughput.ts'
import { Heap, type InHeap } from './heap.ts'
import { WaitingBuffer } from './waiting-buffer.ts'

// The rows that the engine holds in memory: the stored fields, and what the engine needs in addition.

/**
 * The number of the last entry that changed the object. Until that entry is flushed, the row on disk is older
 * than memory.
 */
export interface Changing {
  changedIn: number
}

export interface Level extends StoredLevel, Changing {
  /** The number of lanes in which partitions wait, whether they may be served or not. */
  waitingLanes: number
}

export interface Task extends StoredTask, Changing {
  /**
   * Whether there are reruns. A getter would give each task a hidden class, which makes every access to a
   * task slow.
   */
  rerunning: boolean
  /** Lanes in memory, by level. */
  readonly lanes: Map<number, Lane>
  /** The lanes in which partitions wait, by compute table. Null: lanes with several. */
  readonly tables: Map<string | null, TaskTable>
  pace: StoredPace | null
  /** As of the last event about the task, or when it was loaded. */
  lastEventState: StoredTask['state']
  lastEventGeneration: number
  /** The last entry that changed its failures. */
  failuresChangedIn: number
}

/** What waits in a lane, or in one table of it. */
export interface Buffers {
  /** What did not come back, by arrival. */
  readonly fresh: WaitingBuffer<Partition>
  /** What came back, the longest ago first. */
  readonly returned: WaitingBuffer<Partition>
}

export interface Lane extends StoredLane, InHeap, Changing {
  readonly parentTask: Task
  readonly time: Level
  readonly buffers: Buffers
  /** What waits by table. Empty unless the lane has several tables. */
  readonly tables: Map<string, LaneTable>
  /** Where it stands in the order. Null if nothing waits in it. */
  standsIn: TaskTable | null
  /**
   * The largest index ever called back on this lane. Null for a lane loaded from disk, whose indexes are on
   * disk.
   */
  lastIndex: number | null
  /** The number of partitions in memory that refer to this lane. */
  pins: number
  /** What became done in the entry `doneIn`. */
  done: DoneWithin | null
  doneIn: number
  /**
   * The number of done partitions when the lane was finished, as of the last event about the lane or when it
   * was loaded.
   */
  lastEventFinished: number | null
}

export interface LaneTable extends StoredLaneTable, Changing {
  readonly parentLane: Lane
  /** Set once a pull has named this table. */
  buffers: Buffers | null
}

/** The heap is that of the leases. */
export interface Partition extends StoredPartition, InHeap, Changing {
  readonly parentLane: Lane
  /** The number of buffers that contain it. */
  buffers: number
}

export interface Key extends Changing {
  /** Null: known not to be on disk. */
  row: StoredKey | null
}

/** Whether a lane is kept in memory: something of it waits, is delayed or is leased. */
export function isOpen({ partitions: { ready, leased, delayed }, parentTask }: Lane): boolean {
  return leased + delayed > 0 || (ready > 0 && !parentTask.cancelled)
}

/** What a pull is served from: a lane, or one table of a lane that has several. */
export type Source = Lane | LaneTable

export const isLaneTable = (source: Source): source is LaneTable => 'parentLane' in source

export const laneOf = (source: Source): Lane => (isLaneTable(source) ? source.parentLane : source)

export const readyOf = (source: Source): number =>
  isLaneTable(source) ? source.ready : source.partitions.ready

export function buffersOf(source: Source): Buffers {
  if (!isLaneTable(source)) return source.buffers
  source.buffers ??= buffersOfTable(source)
  return source.buffers
}

/** Starts with the partitions in memory, because the disk may be behind. The others are read. */
function buffersOfTable({ parentLane, table }: LaneTable): Buffers {
  const begin = (buffer: WaitingBuffer<Partition>) => {
    const begun = new WaitingBuffer<Partition>(false)
    for (const partition of buffer.items) if (partition.computeTable === table) begun.add(partition)
    return begun
  }
  return { fresh: begin(parentLane.buffers.fresh), returned: begin(parentLane.buffers.returned) }
}

/**
 * The lanes of a task that have the same compute table and in which partitions wait, by level. Only the lowest
 * can be served next. Lanes with several tables are together, under null.
 */
export class TaskTable implements InHeap {
  readonly task: Task
  readonly queue: TableQueue
  readonly lanes = new Heap<Lane>((a, b) => a.level - b.level)
  heapIndex = -1

  constructor(task: Task, queue: TableQueue) {
    this.task = task
    this.queue = queue
  }

  get lane(): Lane | undefined {
    return this.lanes.first
  }
}

/** The order of those that have a table: by level, then by tag; the older lane if tags are equal. */
export class TableQueue implements InHeap {
  readonly table: string | null
  readonly heap = new Heap<TaskTable>((a, b) => compareLanes(a.lane as Lane, b.lane as Lane))
  /** Those with the table, whether they are in the heap or not. */
  readonly members = new Set<TaskTable>()
  /** For choices: what moved forward since `logStart`. Written while a choice reads it. */
  readonly log: TaskTable[] = []
  logStart = 0
  readers = 0
  /** Some choice has read the log up to here. */
  readTo = 0
  heapIndex = -1

  constructor(table: string | null) {
    this.table = table
  }

  get logEnd(): number {
    return this.logStart + this.log.length
  }

  note(moved: TaskTable): void {
    if (this.readers === 0) return
    if (this.log.at(-1) === moved && this.readTo < this.logEnd) return
    this.log.push(moved)
    if (this.log.length <= MOST_LOGGED) return
    this.logStart += this.log.length >> 1
    this.log.splice(0, this.log.length >> 1)
  }
}

/** A choice that has missed more than about this many movements is built again. */
const MOST_LOGGED = 1000

export function compareLanes(a: Lane, b: Lane): number {
  if (a.level !== b.level) return a.level - b.level
  if (a.tag !== b.tag) return a.tag < b.tag ? -1 : 1
  return a.id - b.id
}
