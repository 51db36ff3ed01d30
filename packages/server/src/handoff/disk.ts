import type { InstanceRole, ThroughputStep } from '@baton/protocol'
import type { Heartbeat } from './heartbeats.ts'
import type { OutboxDisk, OutboxImages } from './outbox.ts'
import type { IndexRange } from './rules/index-runs.ts'
import type { Tallies } from './rules/task-facts.ts'
import type { ThroughputRow } from './shown/throughput-record.ts'
import type {
  IndexRangeOfLane,
  Line,
  NextIds,
  PartitionDescriptor,
  PartitionStatus,
  StagedIds,
  StoredKey,
  StoredLane,
  StoredLaneTable,
  StoredLevel,
  StoredPace,
  StoredPartition,
  StoredState,
  StoredTableTime,
  StoredTask,
  StoredThroughput,
} from './stored.ts'
import type { InstanceQuery, InstanceRecord, PaceSecond, TaskRecord, TotalsAdded } from './views/records.ts'
import type { UnderWay } from './views/time-left.ts'

/**
 * What the engine needs of a disk. A disk keeps; it knows SQL and no rule.
 *
 * A change is durable when `append` resolves: one entry, one small write. Rows follow behind by `flush`, many entries at a
 * time, the last image of each row. So rows may be older than what the engine knows, and the engine never reads from rows
 * what it has in memory.
 *
 * Every call that cannot be carried out rejects with StoreUnavailable. After a failed `append` or `flush` the engine
 * drops its memory and calls `open` again; what the disk answers then is the truth.
 */
export interface Disk {
  /** Becomes the one writer. Entries that were appended and not flushed are given back, in order, for the engine to flush. */
  open(): Promise<OpenedDisk>

  /** Reads rows. With each partition comes its lane, with each lane its task, its level, its tables and their times. */
  load(needs: Needs): Promise<Loaded>

  /**
   * Makes one entry durable, together with the rows of new partitions that it makes count. Rejects with KnownKeys, and
   * keeps nothing, when one of `newKeys` is known already.
   */
  append(entry: Appended): Promise<void>

  /**
   * Writes the images into rows, in one transaction, and forgets the entries up to this number. A large flush comes in
   * pieces: those before the last name the number of the flush before. Rows may get lost with everything that was written
   * after them, as long as the entries are there.
   */
  flush(images: Images, upTo: number): Promise<void>

  /** Writes rows of a call-back that do not count yet: their ids lie beyond the tails of their lanes. */
  stage(rows: readonly PartitionDescriptor[]): Promise<void>
  /** Removes the rows with these ids. */
  unstage(ids: StagedIds): Promise<void>

  /**
   * Which of these indexes were called back before, lane by lane: the descriptor where its row is there (and its id is not
   * beyond `tail`), null where only the range is left after a purge. Indexes never called back are absent.
   */
  known(asked: readonly IndexesOfLane[]): Promise<KnownOfLane[]>

  /** Leased and delayed partitions whose time has come, in the order (dueAt, id), each kind at most `limit`. */
  due(now: number, limit: number, leases: boolean): Promise<Due>
  /** Partitions that are leased to an instance, those first whose lease ends first. */
  heldBy(instanceId: string, limit: number): Promise<number[]>
  /** What is leased and what is in back-off, those first that end first, each kind at most `limit`. */
  underWay(limit: number): Promise<UnderWayRow[]>
  /** Keys whose time has come, the earliest first. */
  dueKeys(now: number, limit: number): Promise<StoredKey[]>
  /** The unpurged task that finished first before this time, and those whose purge has begun; whose rows nothing needs any more. */
  purgeable(finishedBefore: number): Promise<StoredTask | null>
  /** Tasks with reruns to go on with, or a call-back that was not closed. */
  unfinishedWork(limit: number): Promise<StoredTask[]>

  /** Views. Rows are flushed before they are read. */
  taskDetail(taskId: string): Promise<TaskDetail | null>
  /** Newest first, with ids below `before`. */
  taskPage(query: TaskPageQuery): Promise<TaskSummary[]>
  taskSummaries(ids: readonly number[]): Promise<TaskSummary[]>
  /** Those of these tasks that have partitions of one of these compute tables. */
  tasksWithTables(ids: readonly number[], tables: readonly string[]): Promise<TaskWithTables[]>

  /** The newest rows of a task within a time, newest first; of each level, or of all together. */
  throughput(query: ThroughputRowsQuery): Promise<ThroughputRow[]>
  /** Removes rows of these steps that are too old, or beyond the newest `most` of their step. Returns how many, at most `limit`. */
  forgetThroughput(order: ForgetThroughput): Promise<number>

  recordInstances(heartbeats: readonly Heartbeat[], now: number): Promise<void>
  instance(instanceId: string, now: number): Promise<InstanceRecord | null>
  instances(query: InstanceQuery, now: number): Promise<InstanceRecord[]>
  /** Forgets instances last seen before the time given for their kind that hold no lease. Returns how many, at most `limit`. */
  forgetInstances(unseenSince: number, endedSince: number, limit: number): Promise<number>

  readonly outbox: OutboxDisk

  /** Resolves when the disk can commit. */
  probe(now: number): Promise<void>
  /** False when so little space is left that new work must be refused. */
  hasSpace(): boolean
  /** Counts all rows, for the audit: what counters and lines of each lane should say. */
  recount(): Promise<Recount[]>
  close(): Promise<void>
}

export interface OpenedDisk {
  /** The number of the last entry; 0 when there is none. */
  readonly last: number
  /** Bodies of entries that are not flushed, oldest first, ending with number `last`. */
  readonly unflushed: readonly string[]
  readonly nextIds: NextIds
}

export interface Appended {
  /** One more than the last. */
  readonly number: number
  readonly body: string
  readonly newRows: readonly PartitionDescriptor[]
  /** Keys that the engine does not know and takes for new. */
  readonly newKeys: readonly string[]
}

/** These keys were used before: the batch has to run again with them loaded. */
export class KnownKeys extends Error {
  override name = 'KnownKeys'
  readonly keys: readonly string[]
  constructor(keys: readonly string[]) {
    super('keys that were taken for new are known')
    this.keys = keys
  }
}

/**
 * The last image of each row that changed. Maps by id, or as the field says. What is added and not set is right because a
 * flush writes all of it and forgets its entries in one transaction.
 */
export interface Images {
  readonly tasks: Map<number, StoredTask>
  readonly lanes: Map<number, StoredLane>
  readonly levels: Map<number, StoredLevel>
  /** By `<lane>:<table>`. */
  readonly laneTables: Map<string, StoredLaneTable>
  /** By `<level>:<table>`. */
  readonly tableTimes: Map<string, StoredTableTime>
  /** Null removes the row. */
  readonly partitions: Map<number, PartitionStatus | null>
  /** Null forgets the key. */
  readonly keys: Map<string, StoredKey | null>
  /** By `<task>:<second>`. Only the newest PACE_SECONDS_KEPT seconds of a task need to stay; null by `<task>` alone forgets all of a task. */
  readonly pace: Map<string, StoredPace | null>
  readonly ranges: IndexRangeOfLane[]
  /** Compute tables by task id. */
  readonly tables: Map<number, Set<string>>
  /** When an instance called a task back last: by `<task>:<instance>`. */
  readonly produced: Map<string, { readonly task: number; readonly instance: string; readonly at: number }>
  /** Instances that pulled or called back and may not have a row yet: inserted unless they have one. */
  readonly instances: Map<
    string,
    { readonly instanceId: string; readonly role: InstanceRole; readonly at: number }
  >
  readonly outbox: OutboxImages
  /** To be added to what is kept of an instance, by its name: like `throughput`, not absolute. */
  readonly totals: Map<string, TotalsAdded>
  /** To be added to the row of the same task, step, time and level, which are the key. */
  readonly throughput: Map<string, StoredThroughput>
  nextIds: NextIds | null
}

/** Place of a lane in the order of the hand-off. */
export interface OrderPosition {
  readonly level: number
  readonly turn: bigint
  readonly lane: number
}

/** Place in a lane's released or retry line: (dueAt or 0, id). */
export interface LinePosition {
  readonly dueAt: number
  readonly id: number
}

/** What the engine has to know and has not in memory. Each part that is absent asks for nothing. */
export interface Needs {
  readonly taskNames?: readonly string[]
  readonly tasks?: readonly number[]
  readonly lanes?: readonly number[]
  readonly levels?: readonly number[]
  readonly lanesOf?: readonly { readonly task: number; readonly levels: readonly number[] }[]
  /** The next lanes of a task in the order of levels, from this level on, of those that have such partitions. */
  readonly nextLanes?: readonly {
    readonly task: number
    readonly from: number
    /** `waiting`: a turn; `rows`: rows that were not purged; `any`: all lanes. */
    readonly having: 'unfinished' | 'parked' | 'waiting' | 'rows' | 'any'
    readonly limit: number
  }[]
  readonly partitions?: readonly number[]
  readonly named?: readonly { readonly lane: number; readonly indexes: readonly number[] }[]
  /** Rows of a lane in the order of their index, of one state or of all, that count: ids up to the lane's tail. */
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
   * The next lanes in the order of the hand-off: those with a turn, by (level, turn, lane), behind a position. With a
   * table: those that have a turn for it, by that turn.
   */
  readonly order?: { readonly after: OrderPosition | null; readonly limit: number; readonly table?: string }
  /**
   * Partitions of a lane by id: after < id <= tail. They are untouched, but for those that a pull by table has taken
   * before their turn. With a table: only those of the table.
   */
  readonly fresh?: readonly {
    readonly lane: number
    readonly table?: string
    readonly after: number
    readonly tail: number
    readonly limit: number
  }[]
  /** Ready partitions of a lane's other lines, by (dueAt or 0, id), behind a position. With a table: only those of it. */
  readonly returned?: readonly {
    readonly lane: number
    readonly table?: string
    readonly line: Exclude<Line, 'fresh'>
    readonly after: LinePosition | null
    readonly limit: number
  }[]
}

/**
 * Rows that were asked for, in the order asked for within each part, and those they belong to; but for `fresh` and
 * `returned`, which name lanes that memory has. Later duplicates are harmless.
 */
export interface Loaded {
  readonly tasks: readonly StoredTask[]
  readonly lanes: readonly StoredLane[]
  readonly levels: readonly StoredLevel[]
  /** Of all lanes that are loaded. */
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

export type KnownPartition = Pick<
  PartitionDescriptor,
  'recordCount' | 'computeTable' | 'spelling' | 'extraFields'
>

/** Rows and those they belong to. */
export type LoadedRows = Pick<
  Loaded,
  'tasks' | 'lanes' | 'levels' | 'laneTables' | 'tableTimes' | 'partitions'
>

export interface Due extends LoadedRows {
  readonly leased: readonly number[]
  readonly delayed: readonly number[]
  /** When the next of the others is due; leases among them only if they were asked for. */
  readonly nextDueAt: number | null
}

export interface UnderWayRow extends Omit<UnderWay, 'renewed'> {
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
  /** It has tables that were not asked for, too. */
  readonly hasOthers: boolean
}

export interface TaskDetail extends TaskSummary {
  /** By level; at most MAX_LISTED_LEVELS. */
  readonly lanes: readonly LaneDetail[]
  readonly laneCount: number
  /** In the order of their first use as far as that is known; at most MAX_LISTED_TABLES. */
  readonly computeTables: readonly string[]
  readonly mismatches: TaskRecord['mismatches']
}

export interface LaneDetail {
  readonly lane: StoredLane
  /** The first MAX_LISTED_GAPS + 1 ranges of its indexes, and the end of the last one. */
  readonly ranges: readonly IndexRange[]
  readonly lastIndex: number
}

export interface TaskPageQuery {
  readonly before: number
  readonly limit: number
  /** Of all tasks, of those in a state, or of those with parked partitions that are not cancelled. */
  readonly which: 'all' | 'parked' | { readonly state: StoredTask['state'] }
}

export interface ThroughputRowsQuery {
  readonly task: number
  readonly step: ThroughputStep
  readonly from: number
  /** Rows that begin at this time are not among them. */
  readonly to: number
  readonly byLevel: boolean
  readonly limit: number
}

export interface ForgetThroughput {
  /** Rows that begin earlier are too old. */
  readonly before: Readonly<Record<ThroughputStep, number>>
  /** Null: however many there are. To find out takes a walk over so many rows of an index. */
  readonly most: number | null
  readonly limit: number
}

export interface Recount extends Tallies {
  readonly lane: StoredLane
  readonly task: StoredTask
  /** Rows that count and wait, by line. */
  readonly waiting: Record<Line, number>
  readonly tables: readonly RecountedTable[]
}

export interface RecountedTable {
  readonly row: StoredLaneTable
  /** Rows of this table that count and wait, by line. */
  readonly waiting: Record<Line, number>
}
