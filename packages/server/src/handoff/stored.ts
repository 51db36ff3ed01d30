import type { TaskState, ThroughputStep } from '@baton/protocol'
import type { EndedAttempt, FailureGroups } from './rules/attempt-history.ts'
import type { Durations } from './rules/durations.ts'
import type { StoredState } from './rules/life-cycle.ts'
import type { LeaseOutcome } from './rules/settlement.ts'
import type { Tally } from './rules/task-facts.ts'
import type { TaskSettings } from './rules/task-settings.ts'

// What is kept of tasks, lanes and partitions: one list of fields, which the engine holds in memory, an entry carries as
// after-images and a disk keeps as rows. Disks add nothing to it and leave nothing out.

export type { EndedAttempt, FailureGroups, StoredState }

/**
 * Where a ready partition waits in its lane, or a leased or delayed one will when it is given back: not handed out yet (`fresh`, in the order of ids), given back unused
 * (`released`, in the order of ids, before all others), or for another attempt (`retry`, in the order of due times).
 */
export type Line = 'fresh' | 'released' | 'retry'

export type StoredOutcome = LeaseOutcome

export interface StoredTask {
  readonly id: number
  readonly taskId: string
  state: TaskState
  paused: boolean
  cancelled: boolean
  sealed: boolean
  expectedPartitions: number | null
  levelBarrier: boolean
  /** Null: all is as the service is set. */
  settings: TaskSettings | null
  /** With a barrier: every lower level is finished. Lanes above it are closed. Null without a barrier or unfinished level. */
  openLevel: number | null
  generation: number
  firstCallBackAt: number
  lastCallBackAt: number
  finishedAt: number | null
  purgedAt: number | null
  /** Partitions that at-most-once delivery settled by handing them out. */
  delivered: number
  attemptsWasted: number
  reportedDeclared: number
  reportedRecords: number
  mismatched: number
  /** Sums over its lanes. */
  readonly partitions: Tally
  readonly records: Tally
  /** Names of the tokens that called partitions of it back, the first few. Empty where none are asked for. */
  owners: readonly string[]
  /** Finished partitions that are to run again, in bounded steps. */
  reruns: readonly Rerun[]
  /** A call-back whose rows are being written: they do not count until it is closed. */
  staging: StagedIds | null
  /** Why attempts came to nothing. In an image null says that it is as it was: most changes of a task leave it alone. */
  failures: FailureGroups | null
  /** How long the attempts took that finished partitions: see rules/durations.ts. */
  readonly durations: Durations
}

/** The rest of an order to run finished partitions again. */
export interface Rerun {
  /** One level, or null for all of them. */
  readonly only: number | null
  /** Partitions finished later are not meant. Compared with `settledAt`. */
  readonly begunAt: number
  /** The last place that was seen to. */
  readonly level: number
  readonly index: number
}

/** Partition ids reserved for a call-back, both included. */
export interface StagedIds {
  readonly first: number
  readonly last: number
}

export interface StoredLane {
  readonly id: number
  /** The id of its task. */
  readonly task: number
  readonly level: number
  /** Where its next fresh partition starts in the level's virtual time. 64-bit. */
  tag: bigint
  /** The same for its retries. */
  retryTag: bigint
  /** The largest partition id handed out from the fresh line: rows behind it are untouched. */
  cursor: number
  /** The largest partition id that counts: rows beyond it belong to a call-back that is not closed. */
  tail: number
  /** How many wait on the two lines of those given back; the rest of what is ready is fresh. */
  released: number
  retries: number
  /** The smallest tag of its lines that have work: its turn in the order of its level. Null while nothing waits. */
  turn: bigint | null
  /** The barrier passes what is parked here. */
  parkedSkipped: boolean
  /** Of the partitions counted as finished: those whose rows retention removed. */
  purged: number
  purgedRecords: number
  /** How long the attempts took that finished partitions here, and how many these were. */
  busyMillis: number
  attemptsDone: number
  readonly partitions: Tally
  readonly records: Tally
}

/**
 * One compute table of a lane: the lane's place in the order of pulls that name this table. Nearly every lane has one. It
 * then has the counts and the cursor of the lane, and its own are not kept.
 */
export interface StoredLaneTable {
  readonly lane: number
  readonly table: string
  /** That of its lane. */
  readonly level: number
  /** Where its next fresh partition, and its next retry, start in the virtual time of (level, table). 64-bit. */
  tag: bigint
  retryTag: bigint
  turn: bigint | null
  /** The largest id of this table that was handed out from the fresh line. */
  cursor: number
  /** How many of this table are ready; of them those on the two lines of those given back. */
  ready: number
  released: number
  retries: number
}

/** The virtual time of the pulls that name a table, on one level; 64-bit. */
export interface StoredTableTime {
  readonly level: number
  readonly table: string
  virtual: bigint
}

/** The part of a partition that never changes. Ids grow in the order of arrival within a lane. */
export interface PartitionDescriptor {
  readonly id: number
  readonly lane: number
  readonly index: number
  readonly recordCount: number
  readonly computeTable: string
  /** How its name was spelled, where that is not the canonical form. */
  readonly spelling: string | null
  readonly calledBackAt: number
  /** Fields of its descriptor beyond the contract: the text of one JSON object. */
  readonly extraFields: string | null
  /** Of the call-back that brought it. */
  readonly traceparent: string | null
}

/** The part that changes: what an entry carries of a partition. */
export interface PartitionStatus {
  state: StoredState
  line: Line
  /** The number of its latest lease; 0 before the first. */
  term: number
  attempts: number
  releases: number
  holder: string | null
  secret: string
  outcome: StoredOutcome | null
  /** When the lease or the back-off ends; of a ready one on the retry line: when it became due, its place there. */
  dueAt: number | null
  leasedAt: number | null
  settledAt: number | null
  reportedRecords: number | null
  reason: string | null
  /** Earlier attempts, oldest first. The one that runs, and the one that finished it, are told by the other fields. */
  history: readonly EndedAttempt[] | null
}

export interface StoredPartition extends PartitionDescriptor, PartitionStatus {}

/** A partition as it is called back: nothing has happened to it yet. */
export const untouched = (): PartitionStatus => ({
  state: 'ready',
  line: 'fresh',
  term: 0,
  attempts: 0,
  releases: 0,
  holder: null,
  secret: '',
  outcome: null,
  dueAt: null,
  leasedAt: null,
  settledAt: null,
  reportedRecords: null,
  reason: null,
  history: null,
})

/** The same with what was called back. Written out: every partition comes into memory through here. */
export const untouchedPartition = (
  id: number,
  lane: number,
  index: number,
  recordCount: number,
  computeTable: string,
  spelling: string | null,
  calledBackAt: number,
  extraFields: string | null,
  traceparent: string | null,
): StoredPartition => ({
  id,
  lane,
  index,
  recordCount,
  computeTable,
  spelling,
  calledBackAt,
  extraFields,
  traceparent,
  state: 'ready',
  line: 'fresh',
  term: 0,
  attempts: 0,
  releases: 0,
  holder: null,
  secret: '',
  outcome: null,
  dueAt: null,
  leasedAt: null,
  settledAt: null,
  reportedRecords: null,
  reason: null,
  history: null,
})

/** The virtual time of a level; 64-bit. */
export interface StoredLevel {
  readonly level: number
  /** V: the largest start handed out. */
  virtual: bigint
  /** The largest finish handed out: where V goes when the level drains. */
  served: bigint
}

/** A pull's Idempotency-Key and the leases it was answered with. */
export interface StoredKey {
  readonly key: string
  readonly leases: readonly string[]
  forgetAt: number
}

/** Partitions of a task that were finished within one second. */
export interface StoredPace {
  readonly task: number
  readonly second: number
  partitions: number
  records: number
}

/** Partitions of a task that became done on a level within one minute or hour; see engine/throughput.ts. */
export interface StoredThroughput {
  readonly task: number
  readonly step: ThroughputStep
  /** When the minute or hour began. */
  readonly at: number
  /** THROUGHPUT_LEVELS stands for that level and all above it. */
  readonly level: number
  partitions: number
  records: number
}

/** Indexes that were ever called back on a lane. Kept as a union of ranges: adding one twice changes nothing. */
export interface IndexRangeOfLane {
  readonly lane: number
  readonly first: number
  readonly last: number
}

/** The next ids to issue. */
export interface NextIds {
  task: number
  lane: number
  partition: number
  event: number
}
