import type { Line, StoredPartition } from '../../partition.ts'
import type {
  StoredKey,
  StoredLane,
  StoredLaneTable,
  StoredLevel,
  StoredPace,
  StoredTableTime,
  StoredTask,
} from '../../stored.ts'
import type { DoneWithin } from '../throughput.ts'
import type { LineBuffer } from './line-buffer.ts'
import type { OrderedLane } from './order.ts'

// The rows that the engine holds in memory: the stored fields, and what the engine needs beside them.

/**
 * The number of the last entry that changed the object. Until that entry is flushed, the row on disk is older
 * than memory.
 */
export interface Changing {
  changedIn: number
}

export interface Level extends StoredLevel, Changing {
  /** The number of this level's lanes in memory, and of those in the order. */
  lanes: number
  queued: number
}

export interface TableTime extends StoredTableTime, Changing {
  /** The number of lanes in memory that have this table, and of those in its order. */
  lanes: number
  queued: number
}

export interface Task extends StoredTask, Changing {
  readonly rerunning: boolean
  /** Lanes in memory, by level. */
  readonly lanes: Map<number, Lane>
  /**
   * Lanes that reached the front of the order while they may not be served, and the same for tables in table
   * orders.
   */
  readonly aside: Set<Lane>
  readonly asideTables: Set<LaneTable>
  /**
   * Some lanes or tables set aside were evicted. When the task may be served again, orders are read from the
   * start.
   */
  asideForgotten: boolean
  /** Every lane below this level that has a turn is in memory. Infinity: all lanes. */
  waitingLoadedTo: number
  pace: StoredPace | null
  /** As of the last event about the task, or when it was loaded. */
  lastEventState: StoredTask['state']
  lastEventGeneration: number
  /** The last entry that changed its failures. */
  failuresChangedIn: number
}

export type Lines = Record<Line, LineBuffer<Partition>>

export interface Lane extends StoredLane, OrderedLane<Lane>, Changing {
  readonly parentTask: Task
  readonly time: Level
  readonly lines: Lines
  /** All tables of the lane. Empty for a lane without rows. */
  readonly tables: Map<string, LaneTable>
  /** Null if the lane has no table, or more than one. */
  onlyTable: LaneTable | null
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
   * The number of done partitions when all were done, as of the last event about the lane or when it was
   * loaded.
   */
  lastEventFinished: number | null
}

export interface LaneTable extends StoredLaneTable, OrderedLane<LaneTable>, Changing {
  readonly parentTask: Task
  readonly parentLane: Lane
  readonly time: TableTime
  /** Set if its lane has several tables and a pull has named this one. */
  lines: Lines | null
}

export interface Partition extends StoredPartition, Changing {
  readonly parentLane: Lane
}

export interface Key extends Changing {
  /** Null: known not to be on disk. */
  row: StoredKey | null
}

export const nameOfTime = ({ level, table }: Pick<StoredTableTime, 'level' | 'table'>): string =>
  `${level}:${table}`

export const itemsOf = ({ fresh, released, retry }: Lines): Partition[] => [
  ...fresh.items,
  ...released.items,
  ...retry.items,
]
