import type { InstanceRole, ThroughputStep } from '@baton/protocol'
import type { Heartbeat } from './heartbeats.ts'
import type { OutboxDisk, OutboxImages } from './outbox.ts'
import type {
  KnownPartition,
  Line,
  PartitionDescriptor,
  PartitionStatus,
  StoredPartition,
} from './partition.ts'
import type { IndexRange } from './rules/index-runs.ts'
import type { StoredState } from './rules/life-cycle.ts'
import type { Tallies } from './rules/task.ts'
import type {
  IndexRangeOfLane,
  NextIds,
  StagedIds,
  StoredKey,
  StoredLane,
  StoredLaneTable,
  StoredLevel,
  StoredPace,
  StoredTableTime,
  StoredTask,
  StoredThroughput,
} from './stored.ts'
import type {
  InstanceDetails,
  InstanceQuery,
  PaceSecond,
  TaskDetails,
  ThroughputRow,
  TotalsAdded,
} from './views/queries.ts'
import type { LeasedOrDelayed } from './views/time-left.ts'

/**
 * The storage interface of the engine. A disk stores data and knows SQL, but none of the rules.
 *
 * A change is durable when `append` resolves: one entry, one small write. `flush` writes rows later, for many
 * entries at a time, with only the last image of each row. So rows may be older than memory, and the engine
 * never reads rows that it has in memory.
 *
 * Every call that fails rejects with StoreUnavailable. After a failed `append` or `flush` the engine drops
 * its memory and calls `open` again. What the disk returns then is authoritative.
 */
export interface Disk {
  /**
   * Becomes the only writer. On a database that several nodes share, this takes over the leadership: writes
   * of the node that led before fail. Returns entries that were appended but not flushed, in order, for the
   * engine to flush.
   */
  open(): Promise<OpenedDisk>

  /**
   * Reads rows. Each partition is returned with its lane, and each lane with its task, level, tables and
   * their virtual times.
   */
  load(needs: Needs): Promise<Loaded>

  /**
   * Makes one entry durable, together with the rows of its new partitions. Rejects with KnownKeys, and stores
   * nothing, if one of `newKeys` already exists.
   */
  append(entry: Appended): Promise<void>

  /**
   * Writes images into rows and deletes the entries up to this number, in one transaction. A large flush is
   * split into pieces: all but the last use the number of the previous flush. Flushed rows may be lost in a
   * crash, together with all later writes, as long as their entries are kept.
   */
  flush(images: Images, upTo: number): Promise<void>

  /** Writes rows of a call-back that do not count yet: their ids are beyond the tails of their lanes. */
  stage(rows: readonly PartitionDescriptor[]): Promise<void>
  /** Deletes the rows with these ids. */
  unstage(ids: StagedIds): Promise<void>

  /**
   * Returns, per lane, which of these indexes were called back before: the descriptor if the row exists (and
   * its id is not beyond `tail`), or null if only the range is left after a purge. Other indexes are absent.
   */
  known(asked: readonly IndexesOfLane[]): Promise<KnownOfLane[]>

  /** Counts the done partitions of a task whose rows are not purged, from the counters of its lanes. */
  doneRows(task: number): Promise<number>

  /** Leased and delayed partitions that are due, ordered by (dueAt, id), at most `limit` of each kind. */
  due(now: number, limit: number, leases: boolean): Promise<Due>
  /** Partitions leased to an instance, ordered by the end of their lease. */
  heldBy(instanceId: string, limit: number): Promise<number[]>
  /**
   * Leased and delayed partitions, ordered by the end of the lease or back-off, at most `limit` of each kind.
   */
  leasedOrDelayed(limit: number): Promise<LeasedOrDelayedRow[]>
  /** Keys whose retention has ended, the earliest first. */
  dueKeys(now: number, limit: number): Promise<StoredKey[]>
  /**
   * The next task to purge: a task whose purge has begun, or else the unpurged task that finished first,
   * before this time. Tasks with leased or delayed partitions are skipped, and so are tasks that a large
   * call-back is about to reopen.
   */
  purgeable(finishedBefore: number): Promise<StoredTask | null>
  /** Tasks with reruns to continue. */
  tasksWithReruns(limit: number): Promise<StoredTask[]>
  /** All tasks with a call-back that was not completed. */
  tasksWithStagedRows(): Promise<StoredTask[]>

  /** Views. Rows are flushed before they are read. */
  taskDetail(taskId: string): Promise<TaskDetail | null>
  /** Newest first, with ids below `before`. */
  taskPage(query: TaskPageQuery): Promise<TaskSummary[]>
  taskSummaries(ids: readonly number[]): Promise<TaskSummary[]>
  /** Returns those of these tasks that have partitions of one of these compute tables. */
  tasksWithTables(ids: readonly number[], tables: readonly string[]): Promise<TaskWithTables[]>

  /** The newest rows of a task within a time range, newest first, by level or summed over levels. */
  throughput(query: ThroughputRowsQuery): Promise<ThroughputRow[]>
  /**
   * Deletes rows that are too old, or beyond the newest `most` of their step. Returns how many, at most
   * `limit`.
   */
  forgetThroughput(request: ForgetThroughput): Promise<number>

  recordInstances(heartbeats: readonly Heartbeat[], now: number): Promise<void>
  instance(instanceId: string, now: number): Promise<InstanceDetails | null>
  instances(query: InstanceQuery, now: number): Promise<InstanceDetails[]>
  /** Names of instances that were seen since then or hold a lease, in any order. */
  activeInstances(since: number, limit: number): Promise<string[]>
  /**
   * Deletes instances without leases that were last seen before the time given for their kind. Returns how
   * many, at most `limit`.
   */
  forgetInstances(unseenSince: number, endedSince: number, limit: number): Promise<number>

  readonly outbox: OutboxDisk

  /** Resolves if the disk can commit. */
  probe(now: number): Promise<void>
  /** False if so little space is left that new work must be refused. */
  hasSpace(): boolean
  /** Counts all rows for the audit: the expected counters and lines of each lane. */
  recount(): Promise<Recount[]>
  close(): Promise<void>
}

export interface OpenedDisk {
  /** The number of the last entry; 0 if there is none. */
  readonly last: number
  /** Bodies of unflushed entries, oldest first, ending with number `last`. */
  readonly unflushed: readonly string[]
  readonly nextIds: NextIds
}

export interface Appended {
  /** One more than the last. */
  readonly number: number
  readonly body: string
  readonly newRows: readonly PartitionDescriptor[]
  /** Keys that are not in the engine's memory and are assumed to be new. */
  readonly newKeys: readonly string[]
}

/** These keys were used before: the batch must run again after loading them. */
export class KnownKeys extends Error {
  override name = 'KnownKeys'
  readonly keys: readonly string[]
  constructor(keys: readonly string[]) {
    super('keys that were assumed to be new already exist')
    this.keys = keys
  }
}

/**
 * The last image of each changed row, by id unless stated otherwise. Some maps hold increments: they are
 * correct because a flush writes all of them and deletes its entries in one transaction.
 */
export interface Images {
  readonly tasks: Map<number, StoredTask>
  readonly lanes: Map<number, StoredLane>
  readonly levels: Map<number, StoredLevel>
  /** By `<lane>:<table>`. */
  readonly laneTables: Map<string, StoredLaneTable>
  /** By `<level>:<table>`. */
  readonly tableTimes: Map<string, StoredTableTime>
  /** Null deletes the row. */
  readonly partitions: Map<number, PartitionStatus | null>
  /** Null deletes the key. */
  readonly keys: Map<string, StoredKey | null>
  /**
   * By `<task>:<second>`. Only the newest PACE_SECONDS_KEPT seconds of a task must be kept. Null by `<task>`
   * deletes all seconds of a task.
   */
  readonly pace: Map<string, StoredPace | null>
  readonly ranges: IndexRangeOfLane[]
  /** Compute tables by task id. */
  readonly tables: Map<number, Set<string>>
  /** When an instance last called a task back, by `<task>:<instance>`. */
  readonly produced: Map<string, { readonly task: number; readonly instance: string; readonly at: number }>
  /** Instances that pulled or called back and may not have a row yet. Inserted if missing. */
  readonly instances: Map<
    string,
    { readonly instanceId: string; readonly role: InstanceRole; readonly at: number }
  >
  readonly outbox: OutboxImages
  /** Increments by instance name. */
  readonly totals: Map<string, TotalsAdded>
  /** Increments by task, step, time and level. */
  readonly throughput: Map<string, StoredThroughput>
  nextIds: NextIds | null
}

/** The position of a lane in the order of the hand-off. */
export interface OrderPosition {
  readonly level: number
  readonly turn: bigint
  readonly lane: number
}

/** The position in the released or retry line of a lane: (dueAt or 0, id). */
export interface LinePosition {
  readonly dueAt: number
  readonly id: number
}

/** What the engine needs and does not have in memory. Absent parts load nothing. */
export interface Needs {
  readonly taskNames?: readonly string[]
  readonly tasks?: readonly number[]
  readonly lanes?: readonly number[]
  readonly levels?: readonly number[]
  readonly lanesOf?: readonly { readonly task: number; readonly levels: readonly number[] }[]
  /** The next lanes of a task that have such partitions, ordered by level, starting at a level. */
  readonly nextLanes?: readonly {
    readonly task: number
    readonly from: number
    /** `waiting`: a turn; `rows`: rows that were not purged; `any`: all lanes. */
    readonly having: 'unfinished' | 'parked' | 'waiting' | 'rows' | 'any'
    readonly limit: number
  }[]
  readonly partitions?: readonly number[]
  readonly named?: readonly { readonly lane: number; readonly indexes: readonly number[] }[]
  /** Rows of a lane that count (ids up to its tail), ordered by index, of one state or of all. */
  readonly rows?: readonly {
    readonly lane: number
    readonly tail: number
    readonly state: StoredState | null
    readonly afterIndex: number
    readonly limit: number
  }[]
  readonly keys?: readonly string[]
  readonly tableTimes?: readonly { readonly level: number; readonly table: string }[]
  /**
   * The next lanes in the order of the hand-off: lanes with a turn, ordered by (level, turn, lane), after a
   * position. With a table: lanes that have a turn for it, ordered by that turn.
   */
  readonly order?: { readonly after: OrderPosition | null; readonly limit: number; readonly table?: string }
  /**
   * Partitions of a lane with after < id <= tail, ordered by id. They are untouched, except for those that a
   * pull by table took before the others. With a table: only partitions of that table.
   */
  readonly fresh?: readonly {
    readonly lane: number
    readonly table?: string
    readonly after: number
    readonly tail: number
    readonly limit: number
  }[]
  /**
   * Ready partitions of a lane's other lines, ordered by (dueAt or 0, id), after a position. With a table:
   * only its own.
   */
  readonly returned?: readonly {
    readonly lane: number
    readonly table?: string
    readonly line: Exclude<Line, 'fresh'>
    readonly after: LinePosition | null
    readonly limit: number
  }[]
}

/**
 * The requested rows, in the requested order within each part, and the rows they belong to. Exception:
 * `fresh` and `returned` do not include the lanes, which are in memory. Duplicates are harmless.
 */
export interface Loaded {
  readonly tasks: readonly StoredTask[]
  readonly lanes: readonly StoredLane[]
  readonly levels: readonly StoredLevel[]
  /** Of all loaded lanes. */
  readonly laneTables: readonly StoredLaneTable[]
  readonly tableTimes: readonly StoredTableTime[]
  readonly partitions: readonly StoredPartition[]
  readonly keys: readonly StoredKey[]
  /** The ids found by each `order`, `nextLanes`, `rows`, `fresh` and `returned`, in its order. */
  readonly order: readonly number[]
  readonly nextLanes: readonly (readonly number[])[]
  readonly rows: readonly (readonly number[])[]
  readonly fresh: readonly (readonly number[])[]
  readonly returned: readonly (readonly number[])[]
}

export interface IndexesOfLane {
  readonly lane: number
  readonly tail: number
  readonly indexes: readonly number[]
}

/** By index. */
export type KnownOfLane = ReadonlyMap<number, KnownPartition | null>

/** Rows, and the rows they belong to. */
export type LoadedRows = Pick<
  Loaded,
  'tasks' | 'lanes' | 'levels' | 'laneTables' | 'tableTimes' | 'partitions'
>

export interface Due extends LoadedRows {
  readonly leased: readonly number[]
  readonly delayed: readonly number[]
  /** When the next remaining partition is due. Includes leases only if they were requested. */
  readonly nextDueAt: number | null
}

export interface LeasedOrDelayedRow extends Omit<LeasedOrDelayed, 'renewed'> {
  /** The id of its task. */
  readonly task: number
}

export interface TaskSummary {
  readonly task: StoredTask
  /** The lane of its open level. */
  readonly openLane: StoredLane | null
  /** Newest first. */
  readonly pace: readonly PaceSecond[]
}

export interface TaskWithTables {
  readonly task: number
  /** Whether it also has tables that were not requested. */
  readonly hasOthers: boolean
}

export interface TaskDetail extends TaskSummary {
  /** By level, at most MAX_LISTED_LEVELS. */
  readonly lanes: readonly LaneDetail[]
  readonly laneCount: number
  /** In the order of their first use, as far as known; at most MAX_LISTED_TABLES. */
  readonly computeTables: readonly string[]
  readonly mismatches: TaskDetails['mismatches']
}

export interface LaneDetail {
  readonly lane: StoredLane
  /** The first MAX_LISTED_GAPS + 1 ranges of its indexes, and the end of the last range. */
  readonly ranges: readonly IndexRange[]
  readonly lastIndex: number
}

export interface TaskPageQuery {
  readonly before: number
  readonly limit: number
  /** All tasks, tasks in a state, or tasks with parked partitions that are not cancelled. */
  readonly which: 'all' | 'parked' | { readonly state: StoredTask['state'] }
}

export interface ThroughputRowsQuery {
  readonly task: number
  readonly step: ThroughputStep
  readonly from: number
  /** Exclusive. */
  readonly to: number
  readonly byLevel: boolean
  readonly limit: number
}

export interface ForgetThroughput {
  /** Rows that begin earlier are too old. */
  readonly before: Readonly<Record<ThroughputStep, number>>
  /** Null: no maximum. Checking it scans this many rows of an index. */
  readonly most: number | null
  readonly limit: number
}

export interface Recount extends Tallies {
  readonly lane: StoredLane
  readonly task: StoredTask
  /** Rows that count and are waiting, by line. */
  readonly waiting: Record<Line, number>
  readonly tables: readonly RecountedTable[]
}

export interface RecountedTable {
  readonly row: StoredLaneTable
  /** Rows of this table that count and are waiting, by line. */
  readonly waiting: Record<Line, number>
}
