import type { LinePosition } from '../../disk.ts'
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
import type { HeapLane } from './lane-heap.ts'

// The rows that the engine holds in memory: the stored fields, and what the engine needs in addition.

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
  /**
   * Whether there are reruns. A getter would give each task a hidden class, which makes every access to a
   * task slow.
   */
  rerunning: boolean
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

type Lines = Record<Line, LineBuffer<Partition>>

export interface Lane extends StoredLane, HeapLane<Lane>, Changing {
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
   * The number of done partitions when the lane was finished, as of the last event about the lane or when it
   * was loaded.
   */
  lastEventFinished: number | null
}

export interface LaneTable extends StoredLaneTable, HeapLane<LaneTable>, Changing {
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

/** The fields that determine a partition's position in its line. */
type Waiting = Pick<StoredPartition, 'id' | 'line' | 'dueAt'>

/**
 * The beginning of one of a lane's lines, in memory. `items` contains everything that is on disk up to
 * `loadedTo`. Beyond that it contains only recent changes and may have gaps, so an item beyond it is never
 * the first of the line.
 */
export class LineBuffer<Partition extends Waiting> {
  /** In line order. */
  readonly items: Partition[] = []
  loadedTo: LinePosition | null = null
  /** Every partition of the line on disk is also in memory. */
  isComplete: boolean

  constructor(isComplete: boolean) {
    this.isComplete = isComplete
  }

  /** The first partition of the line. Undefined if the line is empty or must be loaded first. */
  get first(): Partition | undefined {
    const first = this.items[0]
    if (first === undefined || this.isComplete) return first
    return this.loadedTo !== null && comparePlaces(placeOf(first), this.loadedTo) <= 0 ? first : undefined
  }

  add(partition: Partition): void {
    const { items } = this
    const last = items.at(-1)
    if (last === undefined || comparePlaces(placeOf(last), placeOf(partition)) < 0) items.push(partition)
    else items.splice(this.#indexOf(placeOf(partition)), 0, partition)
  }

  /** Call it before the partition's position changes. Partitions that are not buffered are ignored. */
  remove(partition: Partition): void {
    const at = this.#indexOf(placeOf(partition))
    if (this.items[at] === partition) this.items.splice(at, 1)
  }

  /** Adds rows that were read after `loadedTo`. `isEnd` is true if there are no more. */
  fill(partitions: readonly Partition[], last: LinePosition | null, isEnd: boolean): void {
    for (const partition of partitions) this.add(partition)
    this.isComplete = isEnd
    if (last !== null) this.loadedTo = last
  }

  /** Drops partitions far from the front, except those not on disk yet. Returns the dropped partitions. */
  trim(keep: number, isClean: (partition: Partition) => boolean): Partition[] {
    const { items } = this
    if (items.length <= keep) return []
    const kept = items[keep - 1]
    if (kept === undefined) return []
    const dropped: Partition[] = []
    const place = placeOf(kept)
    const rest = items.splice(keep)
    for (const partition of rest) (isClean(partition) ? dropped : items).push(partition)
    const isBefore = this.isComplete || (this.loadedTo !== null && comparePlaces(place, this.loadedTo) < 0)
    if (dropped.length > 0 && isBefore) {
      this.loadedTo = place
      this.isComplete = false
    }
    return dropped
  }

  #indexOf(place: LinePosition): number {
    const { items } = this
    let low = 0
    let high = items.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if (comparePlaces(placeOf(items[middle] as Partition), place) < 0) low = middle + 1
      else high = middle
    }
    return low
  }
}

/** Fresh and released partitions are ordered by arrival, retries by due time. */
const placeOf = ({ line, dueAt, id }: Waiting): LinePosition => ({
  dueAt: line === 'retry' ? (dueAt ?? 0) : 0,
  id,
})

const comparePlaces = (a: LinePosition, b: LinePosition): number => a.dueAt - b.dueAt || a.id - b.id

/** What a pull is served from: a lane, or one table of a lane. */
export type Source = Lane | LaneTable

export const isLaneTable = (source: Source): source is LaneTable => 'parentLane' in source

export const laneOf = (source: Source): Lane => (isLaneTable(source) ? source.parentLane : source)

/** A lane's only table has no counts and no lines. Those of the lane are used. */
const countedIn = (source: Source): Source =>
  isLaneTable(source) && source.parentLane.onlyTable === source ? source.parentLane : source

/** Set if the source covers only some of the lane's partitions. */
export const onlyTableOf = (source: Source): string | undefined =>
  isLaneTable(source) && source.parentLane.onlyTable === null ? source.table : undefined

export function linesOf(source: Source): Lines {
  const counted = countedIn(source)
  if (!isLaneTable(counted)) return counted.lines
  counted.lines ??= beginLines(counted)
  return counted.lines
}

/** Starts with the partitions in memory, because the disk may be behind. The others are read. */
function beginLines({ parentLane, table }: LaneTable): Lines {
  const begin = (line: Line) => {
    const buffer = new LineBuffer<Lines[Line]['items'][number]>(false)
    for (const partition of parentLane.lines[line].items)
      if (partition.computeTable === table) buffer.items.push(partition)
    return buffer
  }
  return { fresh: begin('fresh'), released: begin('released'), retry: begin('retry') }
}

/**
 * Released partitions come before fresh ones. Between these and retries, the smaller tag comes first.
 */
export function lineToServe(source: Source): Line {
  const retries = retriesOf(source)
  if (freshOrReleased(source) === 0 || (retries > 0 && source.retryTag < source.tag)) return 'retry'
  return countedIn(source).released > 0 ? 'released' : 'fresh'
}

/** The number of waiting partitions, without retries. */
export const freshOrReleased = (source: Source): number => waitingOf(source) - retriesOf(source)

export function waitingOf(source: Source): number {
  const counted = countedIn(source)
  return isLaneTable(counted) ? counted.ready : counted.partitions.ready
}

export const retriesOf = (source: Source): number => countedIn(source).retries
