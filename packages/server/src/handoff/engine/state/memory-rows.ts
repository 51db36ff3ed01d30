import type { StoredPartition } from '../../partition.ts'
import { NO_TABLE_SETTINGS, type TableSettings } from '../../rules/policy.ts'
import type { Progress } from '../../rules/progress.ts'
import type { StoredKey, StoredLane, StoredLaneTable, StoredLevel, StoredTask } from '../../stored.ts'
import type { Amount } from '../../views/queries.ts'
import type { DoneWithin } from '../throughput.ts'
import { type Arrival, Arrivals } from './arrivals.ts'
import { Heap, type InHeap } from './heap.ts'
import type { RecentPace } from './recent-pace.ts'
import { WaitingBuffer } from './waiting-buffer.ts'

// The rows that the engine holds in memory: the stored fields, and what the engine needs in addition.

/** The number of the last entry that changed it. Until that is flushed, the row on disk is older. */
export interface Changing {
  changedIn: number
}

export interface Level extends StoredLevel, Changing {
  /** The number of lanes in which partitions wait, whether they may be served or not. */
  waitingLanes: number
}

export interface Task extends StoredTask, Changing {
  /** Lanes in memory, by level. */
  readonly lanes: Map<number, Lane>
  /** Its lanes in which partitions wait, by compute table. A mixed lane is by itself, by its id. */
  readonly tables: Map<string | number, TaskTable>
  pace: RecentPace | null
  /** As of the last event about the task, or when it was loaded. */
  lastEventState: StoredTask['state']
  lastEventGeneration: number
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
  /** Its compute table, or the first of several. */
  readonly firstTable: Table
  /** What waits by table in a mixed lane: one with several tables. Null if the lane has one. */
  mixed: MixedLaneTables | null
  /** What its only table counts of it as waiting. */
  readonly counted: MutableAmount
  /** What it is part of in the order. Null if nothing waits in it. */
  queueEntry: TaskTable | null
  /** The largest index ever called back. Null: the lane was loaded, and the disk has its indexes. */
  lastIndex: number | null
  /** The number of partitions in memory that refer to this lane. */
  pins: number
  /** What became done in the entry `doneIn`. */
  done: DoneWithin | null
  doneIn: number
  /** How many were done when it was finished, as of the last event about it or when it was loaded. */
  lastEventFinished: number | null
}

export interface LaneTable extends StoredLaneTable, Changing {
  readonly parentLane: Lane
  readonly entry: LaneTableEntry
  /** Set once a pull has looked for this table. */
  buffers: Buffers | null
}

export type MutableAmount = { -readonly [Unit in keyof Amount]: number }

/** The heap is that of the leases. */
export interface Partition extends StoredPartition, InHeap, Changing {
  readonly parentLane: Lane
  /** What its worker last reported of its lease. It is not stored: a new leader starts without it. */
  progress: Progress | null
  bufferCount: number
}

export interface Key extends Changing {
  /** Null: known not to be on disk. */
  row: StoredKey | null
}

export function hasWork({ partitions: { ready, leased, delayed }, parentTask }: Lane): boolean {
  return leased + delayed > 0 || (ready > 0 && !parentTask.cancelled)
}

export function tableOf({ parentLane: lane, computeTable }: Partition): Table {
  if (lane.mixed === null || lane.firstTable.name === computeTable) return lane.firstTable
  return lane.mixed.tables.get(computeTable)?.entry.table ?? lane.firstTable
}

/** What a pull is served from: a lane, or one table of a mixed lane. */
export type Source = Lane | LaneTable

export const isLaneTable = (source: Source): source is LaneTable => 'parentLane' in source

export const laneTablesOf = ({ mixed }: Lane): Iterable<LaneTable> => mixed?.tables.values() ?? []

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

/** The lanes of a task with one compute table, by level: only the lowest is next. A mixed lane is alone. */
export class TaskTable implements InHeap {
  readonly task: Task
  readonly table: Table
  readonly lanes = new Heap<Lane>((a, b) => a.level - b.level)
  /** Its place among the arrivals of its table. Null while it has left the order. */
  arrival: Arrival<TableEntry> | null = null
  heapIndex = -1

  constructor(task: Task, table: Table) {
    this.task = task
    this.table = table
  }

  get lane(): Lane | undefined {
    return this.lanes.first
  }

  get tag(): bigint {
    return this.lanes.first?.tag ?? 0n
  }
}

/** A table of a mixed lane: under its lane, or under the table if that was blocked when its turn came. */
export class LaneTableEntry implements InHeap {
  readonly lane: Lane
  readonly table: Table
  isUnderTable = false
  /** That of the lane when it was put under the table. */
  tag = 0n
  /** What the table counts of it as waiting. */
  readonly counted: MutableAmount = { partitions: 0, records: 0 }
  /** Its place among the arrivals of its table. Null while nothing of it waits, or its task may not be served. */
  arrival: Arrival<TableEntry> | null = null
  heapIndex = -1

  constructor(lane: Lane, table: Table) {
    this.lane = lane
    this.table = table
  }

  get row(): LaneTable {
    return this.lane.mixed?.tables.get(this.table.name as string) as LaneTable
  }
}

export class MixedLaneTables {
  readonly tables = new Map<string, LaneTable>()
  /** What came back is first, then what was served longest ago. */
  readonly servable = new Heap<LaneTableEntry>(({ row: a }, { row: b }) => {
    if (a.returned > 0 !== b.returned > 0) return a.returned > 0 ? -1 : 1
    return a.cursor - b.cursor || (a.table < b.table ? -1 : 1)
  })
  readonly underTables = new Set<LaneTableEntry>()
  /** Those that a filter took from the arrivals, because their task may not be served. */
  readonly withdrawn = new Set<LaneTableEntry>()
}

/** What a pull that names a table may be served from. */
export type TableEntry = TaskTable | LaneTableEntry

/** A compute table over all tasks. While it is blocked, it takes itself and all below out of the order. */
export class Table implements InHeap {
  /** Null: for mixed lanes. */
  readonly name: string | null
  settings: TableSettings = NO_TABLE_SETTINGS
  leases = 0
  readonly holders = new Map<string, number>()
  readonly waiting: MutableAmount = { partitions: 0, records: 0 }
  /** When a worker last asked for it by name, or got a partition of it. */
  askedAt: number | null = null
  pace: RecentPace | null = null
  /** The number of lanes in memory that have it, by task. */
  readonly lanesOf = new Map<Task, number>()
  /** The order of those that have waiting partitions of it: by level, then by tag; the older lane if tags are equal. */
  readonly heap = new Heap<TableEntry>(compareInTable)
  /** For filters: what of it may be served, or was not yet found to be closed. */
  readonly arrivals = new Arrivals<TableEntry>()
  heapIndex = -1

  constructor(name: string | null) {
    this.name = name
  }
}

function compareInTable(a: TableEntry, b: TableEntry): number {
  const [laneA, laneB] = [a.lane as Lane, b.lane as Lane]
  if (laneA.level !== laneB.level) return laneA.level - laneB.level
  if (a.tag !== b.tag) return a.tag < b.tag ? -1 : 1
  return laneA.id - laneB.id
}

export const compareTables = (a: Table, b: Table): number =>
  compareInTable(a.heap.first as TableEntry, b.heap.first as TableEntry)
