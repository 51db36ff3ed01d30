import type { InstanceRole, ThroughputStep } from '@baton/protocol'
import type { AuditQuery, AuditRecord, ForgetAudit } from './audit.ts'
import type { Heartbeat } from './heartbeats.ts'
import type { OutboxDisk, OutboxRowChanges } from './outbox.ts'
import type { KnownPartition, PartitionDescriptor, PartitionStatus, StoredPartition } from './partition.ts'
import type { IndexRange } from './rules/index-runs.ts'
import type { StoredState } from './rules/life-cycle.ts'
import type {
  IndexRangeOfLane,
  LeaderRow,
  NextIds,
  StagedIds,
  StoredCheckpoint,
  StoredKey,
  StoredLane,
  StoredLaneTable,
  StoredLevel,
  StoredTableSettings,
  StoredTask,
  StoredThroughput,
} from './stored.ts'
import type {
  DuePosition,
  InstancePosition,
  InstanceRecord,
  TaskDetails,
  ThroughputRow,
  TotalsAdded,
} from './views/queries.ts'

/**
 * The storage interface of the engine. A disk stores data and knows SQL, but none of the rules.
 *
 * A change is durable when `append` resolves: one entry, one small write. `flush` writes rows later, for many
 * entries at a time, with only the last change of each row. So rows may be older than memory, and the engine
 * never reads rows that it has in memory.
 *
 * A write fails unless the disk has everything that was written through it before: a standby that was promoted
 * without the last commits may lack an entry, or only rows.
 *
 * Every call that fails rejects with StoreUnavailable. After a failed `append` or `flush` the engine drops
 * its memory and calls `open` again. What the disk returns then is authoritative.
 */
export interface Disk {
  /** Takes over as the only writer. Returns the entries to flush: appended but not flushed, in order. */
  open(): Promise<OpenedDisk>

  /**
   * All open work, in pages, for the engine's memory: tasks that are not finished, have leases or back-offs, or a
   * call-back that was not completed,
   * lanes with ready, leased or delayed partitions, and leased partitions, ordered by (dueAt, id).
   */
  openTasks(after: number, limit: number): Promise<StoredTask[]>
  lanesWithWork(after: number, limit: number): Promise<Lanes>
  leases(after: DuePosition, limit: number): Promise<StoredPartition[]>
  levels(): Promise<StoredLevel[]>
  tableSettings(): Promise<StoredTableSettings[]>

  /** What the engine does not have in memory. Rows that do not exist are left out. */
  tasksNamed(names: readonly string[]): Promise<StoredTask[]>
  tasksById(ids: readonly number[]): Promise<StoredTask[]>
  lanesById(ids: readonly number[]): Promise<Lanes>
  lanesOf(task: number, levels: readonly number[]): Promise<Lanes>
  /** The next lanes of a task, ordered by level, starting at a level. */
  lanesFrom(query: LanesFrom): Promise<Lanes>
  partitionsById(ids: readonly number[]): Promise<StoredPartition[]>
  partitionsNamed(asked: readonly NamedPartitions[]): Promise<StoredPartition[]>
  /** Rows of lanes that count (ids up to the tail), ordered by index. One list per query. */
  rows(queries: readonly RowsOfLane[]): Promise<StoredPartition[][]>
  /** The next ready partitions of lanes. One list per query. */
  waiting(queries: readonly WaitingOfLane[]): Promise<StoredPartition[][]>
  checkpoints(partitions: readonly number[]): Promise<StoredCheckpoint[]>
  keys(names: readonly string[]): Promise<StoredKey[]>
  /** Back-offs that have ended, ordered by (dueAt, id), and when the next one after them ends. */
  dueBackoffs(now: number, limit: number): Promise<DueBackoffs>

  /** Makes an entry durable, with the rows of new partitions. Rejects with KnownKeys for known `newKeys`. */
  append(entry: Appended): Promise<void>

  /**
   * Writes changes into rows and deletes the entries up to this number, in one transaction. A large flush is
   * split into pieces: all but the last use the number of the previous flush. Flushed rows may be lost in a
   * crash, together with all later writes, as long as their entries are kept.
   */
  flush(rowChanges: RowChanges, upTo: number): Promise<void>

  /** Writes rows of a call-back that do not count yet: their ids are beyond the tails of their lanes. */
  stage(rows: readonly PartitionDescriptor[]): Promise<void>
  unstage(ids: StagedIds): Promise<void>

  /**
   * Returns, per lane, which of these indexes were called back before: the descriptor if the row exists (and
   * its id is not beyond `tail`), or null if only the range is left after a purge. Other indexes are absent.
   */
  known(asked: readonly IndexesOfLane[]): Promise<KnownOfLane[]>

  /** Counts the done partitions of a task whose rows are not purged, from the counters of its lanes. */
  doneRows(task: number): Promise<number>

  /** Keys whose retention has ended, the earliest first. */
  dueKeys(now: number, limit: number): Promise<StoredKey[]>
  /**
   * The next task to purge: a task whose purge has begun, or else the unpurged task that finished first,
   * before this time. Tasks with leased or delayed partitions are skipped, and so are tasks that a large
   * call-back is about to reopen.
   */
  purgeable(finishedBefore: number): Promise<StoredTask | null>

  /** Views. Rows are flushed before they are read. */
  taskDetail(taskId: string): Promise<TaskDetail | null>
  /** Newest first, with ids below `before`. */
  taskPage(query: TaskPageQuery): Promise<TaskWithLane[]>
  tasksWithLane(ids: readonly number[]): Promise<TaskWithLane[]>
  /** Returns those of these tasks that have partitions of one of these compute tables. */
  tasksWithTables(ids: readonly number[], tables: readonly string[]): Promise<TaskWithTables[]>

  /** The newest rows of a task within a time range, newest first, by level or summed over levels. */
  throughput(query: ThroughputRowsQuery): Promise<ThroughputRow[]>
  /** Deletes what is too old, or beyond the newest `most` of its step. Returns how many, at most `limit`. */
  forgetThroughput(request: ForgetThroughput): Promise<number>

  audited(query: AuditQuery): Promise<AuditRecord[]>
  /** Deletes records from the oldest on. Returns how many, at most `limit`. */
  forgetAudit(request: ForgetAudit): Promise<number>
  /** The states of partitions of a lane, counted by cell. Cells without any are left out. */
  countCells(query: CellsOfLane): Promise<CellCount[]>

  recordInstances(heartbeats: readonly Heartbeat[], now: number): Promise<void>
  instance(instanceId: string): Promise<InstanceRecord | null>
  instances(query: InstanceRowsQuery): Promise<InstanceRecord[]>
  pausedInstances(): Promise<{ readonly instanceId: string; readonly pausedAt: number }[]>
  /** Names of instances that were seen since then or are lost, in any order. */
  activeInstances(since: number, limit: number): Promise<string[]>
  /**
   * Deletes instances that are not paused: those last seen before the time given for their kind, and those
   * beyond the `most` seen last. Returns how many, at most `limit`.
   */
  forgetInstances(forget: ForgetInstances): Promise<number>

  readonly outbox: OutboxDisk

  /** Resolves if the disk can commit. */
  probe(now: number): Promise<void>
  /** False if so little space is left that new work must be refused. */
  hasSpace(): boolean
  close(): Promise<void>
}

export interface OpenedDisk {
  /** The number of the last entry; 0 if there is none. */
  readonly last: number
  /** Bodies of unflushed entries, oldest first, ending with number `last`. */
  readonly unflushed: readonly string[]
  readonly nextIds: NextIds
}

/**
 * A disk that several nodes share, and that records which of them leads. Only the leader may append, flush, stage
 * and unstage. All nodes may read, and record the instances they have seen.
 */
export interface SharedDisk extends Disk {
  /** With `from`, only from this term, so that one of two nodes that miss the same leader succeeds. */
  open(from?: string | null): Promise<OpenedSharedDisk>
  readLeaderRow(): Promise<LeaderRow>
  /** Removes the leader from the row, if this node still leads. */
  resign(): Promise<void>
}

export interface OpenedSharedDisk extends OpenedDisk {
  readonly term: string
  /** The database's clock at the take-over, in milliseconds. */
  readonly now: number
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
 * What each changed row is now, by id unless stated otherwise. Some maps hold increments: they are
 * correct because a flush writes all of them and deletes its entries in one transaction.
 */
export interface RowChanges {
  readonly tasks: Map<number, StoredTask>
  readonly lanes: Map<number, StoredLane>
  readonly levels: Map<number, StoredLevel>
  /** By `<lane>:<table>`. */
  readonly laneTables: Map<string, StoredLaneTable>
  /** Null deletes the row. */
  readonly partitions: Map<number, PartitionStatus | null>
  /** By partition. Null deletes the row. */
  readonly checkpoints: Map<number, string | null>
  /** Null deletes the key. */
  readonly keys: Map<string, StoredKey | null>
  readonly ranges: IndexRangeOfLane[]
  /** By table. Null deletes the row: its settings are the default again. */
  readonly tableSettings: Map<string, StoredTableSettings | null>
  /** Compute tables by task id. */
  readonly tables: Map<number, Set<string>>
  /** When an instance last called a task back, by `<task>:<instance>`. */
  readonly produced: Map<string, { readonly task: number; readonly instance: string; readonly at: number }>
  /** Instances that pulled or called back and may not have a row yet. Inserted if missing. */
  readonly instances: Map<
    string,
    {
      readonly instanceId: string
      readonly role: InstanceRole
      readonly at: number
      /** Absent: as it is. */
      readonly pausedAt?: number | null | undefined
    }
  >
  readonly outbox: OutboxRowChanges
  /** Increments by instance name. */
  readonly totals: Map<string, TotalsAdded>
  /** Increments by task, step, time and level. */
  readonly throughput: Map<string, StoredThroughput>
  readonly audit: AuditRecord[]
  nextIds: NextIds | null
}

export interface Lanes {
  readonly lanes: readonly StoredLane[]
  /** Of those lanes that are mixed. */
  readonly tables: readonly StoredLaneTable[]
}

export interface LanesFrom {
  readonly task: number
  readonly from: number
  /** `rows`: rows that were not purged; `any`: all lanes. */
  readonly having: 'parked' | 'rows' | 'any'
  readonly limit: number
}

export interface NamedPartitions {
  readonly lane: number
  readonly indexes: readonly number[]
}

export interface RowsOfLane {
  readonly lane: number
  readonly tail: number
  /** Null: of all states. `begun`: those that were handed out and are not finished. */
  readonly state: StoredState | 'begun' | null
  /** Only those whose last failure is of this group. Not with `begun`. */
  readonly failure?: string | undefined
  readonly afterIndex: number
  /** Absent: to the end of the lane. */
  readonly lastIndex?: number
  readonly limit: number
}

export interface WaitingOfLane {
  readonly lane: number
  /** Only of this table. Of those that did not come back: only rows that arrived when the lane was mixed. */
  readonly table?: string
  /** Those that came back, ordered by (dueAt, id); or those that did not, ordered by id. */
  readonly returned: boolean
  readonly after: DuePosition
  /** The largest id of those that did not come back. */
  readonly upTo: number
  readonly limit: number
}

/** Instances with these names, or the next ones in an order. */
export type InstanceRowsQuery =
  | { readonly names: readonly string[] }
  | {
      /** By name, or the last seen first. */
      readonly sort: 'name' | 'lastSeenAt'
      readonly after: InstancePosition | null
      readonly limit: number
    }

export interface DueBackoffs {
  readonly due: readonly StoredPartition[]
  readonly nextAt: number | null
}

export interface IndexesOfLane extends NamedPartitions {
  readonly tail: number
}

/** By index. */
export type KnownOfLane = ReadonlyMap<number, KnownPartition | null>

export interface TaskWithLane {
  readonly task: StoredTask
  readonly openLane: StoredLane | null
}

export interface TaskWithTables {
  readonly task: number
  /** Whether it also has tables that were not requested. */
  readonly hasOthers: boolean
}

export interface TaskDetail extends TaskWithLane {
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

export interface CellsOfLane {
  readonly lane: number
  readonly tail: number
  /**
   * `rank`: rows in the order of their index, `width` to a cell, at most `limit`. `index`: as many cells as
   * given, of equal ranges of indexes; of each, the first `each` rows and the first `each` parked ones.
   */
  readonly by:
    | { readonly kind: 'rank'; readonly width: number; readonly limit: number }
    | { readonly kind: 'index'; readonly cells: number; readonly each: number }
}

export interface CellCount {
  readonly cell: number
  readonly state: StoredState
  readonly partitions: number
  /** By rank: the lowest and the highest index of those counted; by index: the range of the cell. */
  readonly first: number
  readonly last: number
}

export interface ForgetInstances {
  readonly unseenSince: number
  /** For nodes that ended gracefully. */
  readonly endedSince: number
  /** These are kept. */
  readonly holders: ReadonlySet<string>
  readonly most: number
  readonly limit: number
}

export interface ForgetThroughput {
  /** Rows that begin earlier are too old. */
  readonly before: Readonly<Record<ThroughputStep, number>>
  /** Null: no maximum. Checking it scans this many rows of an index. */
  readonly most: number | null
  readonly limit: number
}
