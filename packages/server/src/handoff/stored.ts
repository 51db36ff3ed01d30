import type { ThroughputStep } from '@baton/protocol'
import { type MutableRowOf, of, type RowOf } from './fields.ts'
import type { Durations } from './rules/durations.ts'
import type { FailureGroup } from './rules/failures.ts'
import type { TaskSettings } from './rules/policy.ts'
import type { TaskStamps } from './rules/stamps.ts'
import type { Tallies, TaskState } from './rules/task.ts'

// The stored fields of everything but partitions; see partition.ts for those. The engine holds them in
// memory, an entry has them as they are after a change, and a disk keeps them as rows. Entries and tables have the
// fields in the order of these lists, so a new field comes last: entries without it stay readable.

export const taskFields = {
  id: 'key',
  taskId: 'text',
  state: of<TaskState>('text'),
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
  owners: of<readonly string[]>('list'),
  /** Reruns of done partitions, which run in bounded steps. */
  reruns: of<readonly Rerun[]>('list'),
  /** A call-back whose rows are being written. They do not count until it is completed. */
  staging: of<StagedIds | null>('json?'),
  settings: of<TaskSettings | null>('json?'),
  /** Why attempts were unsuccessful. Null in an entry means unchanged, as for most changes of a task. */
  failures: of<readonly FailureGroup[] | null>('kept?'),
  /** Durations of the attempts that finished partitions; see rules/durations.ts. */
  durations: of<Durations>('list'),
  stamps: of<TaskStamps | null>('json?'),
  /** See rules/failure-window.ts. */
  failureWindow: 'text',
} as const
export interface StoredTask extends MutableRowOf<typeof taskFields>, Tallies {}

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

export const laneFields = {
  id: 'key',
  task: 'integer',
  level: 'integer',
  /** Where its next partition starts in the virtual time of the level. 64-bit. */
  tag: 'tag',
  /** The largest partition id that was handed out in the order of arrival. Rows after it are untouched. */
  cursor: 'integer',
  /** The largest partition id that counts. Rows beyond it belong to a call-back that is not completed. */
  tail: 'integer',
  /** How many of the ready partitions were handed out before and came back. */
  returned: 'integer',
  /** The compute table of its first partitions, nearly always the only one. */
  table: 'text',
  /** In a mixed lane: partitions up to this id are of its first table. What waits is counted by table. */
  mixedAfter: 'integer?',
  /** The barrier ignores parked partitions of this lane. */
  parkedSkipped: 'flag',
  /** How many of the finished partitions were deleted by retention. */
  purged: 'integer',
  purgedRecords: 'integer',
  /** The total duration and the number of attempts that finished partitions of this lane. */
  busyMillis: 'integer',
  attemptsDone: 'integer',
  /** When all of its partitions were done; null while one is not. */
  finishedAt: 'integer?',
} as const
export interface StoredLane extends MutableRowOf<typeof laneFields>, Tallies {}

/** What a worker said about how far a partition is, for the next lease. Its row has `checkpointAt`. */
export const checkpointFields = { partition: 'key', text: 'text' } as const
export type StoredCheckpoint = RowOf<typeof checkpointFields>

/** Settings of a compute table that are not the default. */
export const tableSettingsFields = { table: 'text', maxLeases: 'integer?', paused: 'flag' } as const
export type StoredTableSettings = RowOf<typeof tableSettingsFields>

/** What waits of one compute table in a mixed lane. */
export const laneTableFields = {
  lane: 'integer',
  table: 'text',
  /** The largest id of this table that was handed out in the order of arrival. */
  cursor: 'integer',
  /** The number of ready partitions of this table, and how many of those came back. */
  ready: 'integer',
  returned: 'integer',
  readyRecords: 'integer',
} as const
export type StoredLaneTable = MutableRowOf<typeof laneTableFields>

/** The virtual time of a level; 64-bit. */
export const levelFields = {
  level: 'key',
  /** V: the largest start handed out. */
  virtual: 'tag',
  /** The largest tag that a lane got by being served. The virtual time is set to it when the level drains. */
  maxFinishTag: 'tag',
} as const
export type StoredLevel = MutableRowOf<typeof levelFields>

/** A pull's Idempotency-Key and the leases of its answer. */
export const keyFields = { key: 'text', leases: of<readonly string[]>('json'), forgetAt: 'integer' } as const
export type StoredKey = RowOf<typeof keyFields>

/** Partitions of a task that became done on a level within one minute or hour; see engine/throughput.ts. */
export const throughputFields = {
  task: 'integer',
  step: of<ThroughputStep>('text'),
  /** When the minute or hour began. */
  at: 'integer',
  /** THROUGHPUT_LEVELS represents that level and all above it. */
  level: 'integer',
  partitions: 'integer',
  records: 'integer',
} as const
export type StoredThroughput = MutableRowOf<typeof throughputFields>

/** Ever called back on a lane. A union: adding a range twice changes nothing. */
export const rangeFields = { lane: 'integer', first: 'integer', last: 'integer' } as const
export type IndexRangeOfLane = RowOf<typeof rangeFields>

export interface NextIds {
  task: number
  lane: number
  partition: number
  event: number
}

/** Which node leads. Every node reads it; only a take-over or a resignation changes it. */
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
  readonly last: number
}

/** As others know it. The id is new with each start of the process. */
export interface ClusterNode {
  readonly nodeId: string
  /** Empty: they cannot reach it. */
  readonly url: string
}
