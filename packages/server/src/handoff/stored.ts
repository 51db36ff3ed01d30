import type { ThroughputStep } from '@baton/protocol'
import type { Fields } from './fields.ts'
import type { Durations } from './rules/durations.ts'
import type { FailureWindow } from './rules/failure-window.ts'
import type { FailureGroup } from './rules/failures.ts'
import type { TableSettings } from './rules/policy.ts'
import type { TaskStamps } from './rules/stamps.ts'
import type { MutableTask, Tally } from './rules/task.ts'

// The stored fields of everything but partitions; see partition.ts for those. The engine holds them in
// memory, an entry has them as they are after a change, and a disk keeps them as rows. Entries and tables have the
// fields in the order of these lists, so a new field comes last: entries without it stay readable.

export interface StoredTask extends Omit<MutableTask, 'rerunning'> {
  /** Reruns of done partitions, which run in bounded steps. */
  reruns: readonly Rerun[]
  /** A call-back whose rows are being written. They do not count until it is completed. */
  staging: StagedIds | null
  /** Why attempts were unsuccessful. Null in an entry means unchanged, as for most changes of a task. */
  failures: readonly FailureGroup[] | null
  /** Durations of the attempts that finished partitions; see rules/durations.ts. */
  readonly durations: Durations
  stamps: TaskStamps | null
  failureWindow: FailureWindow
}

export const taskFields: Fields<StoredTask> = {
  id: 'key',
  taskId: 'text',
  state: 'text',
  paused: 'flag',
  cancelled: 'flag',
  sealed: 'flag',
  expectedPartitions: 'integer?',
  levelBarrier: 'flag',
  openLevel: 'integer?',
  generation: 'integer',
  firstCallBackAt: 'integer',
  lastCallBackAt: 'integer',
  finishedAt: 'integer?',
  purgedAt: 'integer?',
  delivered: 'integer',
  attemptsWasted: 'integer',
  reportedDeclared: 'integer',
  reportedRecords: 'integer',
  mismatched: 'integer',
  owners: 'list',
  reruns: 'list',
  staging: 'json?',
  settings: 'json?',
  failures: 'kept?',
  durations: 'list',
  stamps: 'json?',
  failureWindow: 'text',
}

/** The remainder of a request to rerun done partitions. */
export interface Rerun {
  /** One level, or null for all of them. */
  readonly only: number | null
  /** Partitions that were settled later are not included. */
  readonly begunAt: number
  /** The last position that was processed. */
  readonly level: number
  readonly index: number
}

/** Partition ids reserved for a call-back, both inclusive. */
export interface StagedIds {
  readonly first: number
  readonly last: number
}

export interface StoredLane {
  readonly id: number
  /** The id of its task. */
  readonly task: number
  readonly level: number
  /** Where its next partition starts in the virtual time of the level. 64-bit. */
  tag: bigint
  /** The largest partition id that was handed out in the order of arrival. Rows after it are untouched. */
  cursor: number
  /** The largest partition id that counts. Rows beyond it belong to a call-back that is not completed. */
  tail: number
  /** How many of the ready partitions were handed out before and came back. */
  returned: number
  /** The compute table of its first partitions, nearly always the only one. */
  readonly table: string
  /**
   * Set when a second table came, which made the lane mixed: partitions up to this id are of the first one, and what waits is also
   * counted by table.
   */
  mixedAfter: number | null
  /** The barrier ignores parked partitions of this lane. */
  parkedSkipped: boolean
  /** How many of the finished partitions were deleted by retention. */
  purged: number
  purgedRecords: number
  /** The total duration and the number of attempts that finished partitions of this lane. */
  busyMillis: number
  attemptsDone: number
  /** When all of its partitions were done; null while one is not. */
  finishedAt: number | null
  readonly partitions: Tally
  readonly records: Tally
}

export const laneFields: Fields<StoredLane> = {
  id: 'key',
  task: 'integer',
  level: 'integer',
  tag: 'tag',
  cursor: 'integer',
  tail: 'integer',
  returned: 'integer',
  table: 'text',
  mixedAfter: 'integer?',
  parkedSkipped: 'flag',
  purged: 'integer',
  purgedRecords: 'integer',
  busyMillis: 'integer',
  attemptsDone: 'integer',
  finishedAt: 'integer?',
}

/** What a worker said about how far a partition is, for the next lease. Its row has `checkpointAt`. */
export interface StoredCheckpoint {
  readonly partition: number
  readonly text: string
}

export const checkpointFields: Fields<StoredCheckpoint> = { partition: 'key', text: 'text' }

/** Settings of a compute table that are not the default. */
export interface StoredTableSettings extends TableSettings {
  readonly table: string
}

export const tableSettingsFields: Fields<StoredTableSettings> = {
  table: 'text',
  maxLeases: 'integer?',
  paused: 'flag',
}

/** What waits of one compute table in a mixed lane. */
export interface StoredLaneTable {
  readonly lane: number
  readonly table: string
  /** The largest id of this table that was handed out in the order of arrival. */
  cursor: number
  /** The number of ready partitions of this table, and how many of those came back. */
  ready: number
  returned: number
  /** The sum of the records of the ready partitions. */
  readyRecords: number
}

export const laneTableFields: Fields<StoredLaneTable> = {
  lane: 'integer',
  table: 'text',
  cursor: 'integer',
  ready: 'integer',
  returned: 'integer',
  readyRecords: 'integer',
}

/** The virtual time of a level; 64-bit. */
export interface StoredLevel {
  readonly level: number
  /** V: the largest start handed out. */
  virtual: bigint
  /** The largest tag that a lane got by being served. The virtual time is set to it when the level drains. */
  maxFinishTag: bigint
}

export const levelFields: Fields<StoredLevel> = { level: 'key', virtual: 'tag', maxFinishTag: 'tag' }

/** A pull's Idempotency-Key and the leases of its answer. */
export interface StoredKey {
  readonly key: string
  readonly leases: readonly string[]
  forgetAt: number
}

export const keyFields: Fields<StoredKey> = { key: 'text', leases: 'json', forgetAt: 'integer' }

/** Partitions of a task that were finished within one second. */
export interface StoredPace {
  readonly task: number
  readonly second: number
  partitions: number
  records: number
}

export const paceFields: Fields<StoredPace> = {
  task: 'integer',
  second: 'integer',
  partitions: 'integer',
  records: 'integer',
}

/** Partitions of a task that became done on a level within one minute or hour; see engine/throughput.ts. */
export interface StoredThroughput {
  readonly task: number
  readonly step: ThroughputStep
  /** When the minute or hour began. */
  readonly at: number
  /** THROUGHPUT_LEVELS represents that level and all above it. */
  readonly level: number
  partitions: number
  records: number
}

export const throughputFields: Fields<StoredThroughput> = {
  task: 'integer',
  step: 'text',
  at: 'integer',
  level: 'integer',
  partitions: 'integer',
  records: 'integer',
}

/**
 * Indexes that were ever called back on a lane. Stored as a union of ranges: adding a range twice changes
 * nothing.
 */
export interface IndexRangeOfLane {
  readonly lane: number
  readonly first: number
  readonly last: number
}

export const rangeFields: Fields<IndexRangeOfLane> = { lane: 'integer', first: 'integer', last: 'integer' }

/** The next ids to issue. */
export interface NextIds {
  task: number
  lane: number
  partition: number
  event: number
}

/**
 * The row in the database that says which node leads. Every node reads it; only a take-over or a resignation
 * changes it.
 */
export interface LeaderRow {
  /** Changes with every take-over. Null until the first node has led. */
  readonly term: string | null
  /** Null after the leader stopped gracefully, or if other nodes cannot reach it. */
  readonly leader: ClusterNode | null
  readonly clusterId: string
  /** Known to all nodes that can read the database. They use it to authenticate each other. */
  readonly secret: string
  /** The clock of the database, as Unix time in milliseconds. */
  readonly now: number
  /** The number of the last entry. */
  readonly last: number
}

/**
 * A node as others know it: an id that is new with each start of its process, and the URL where they reach
 * it.
 */
export interface ClusterNode {
  readonly nodeId: string
  /** Empty: they cannot reach it. */
  readonly url: string
}
