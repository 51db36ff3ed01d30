import type {
  Grid,
  InstanceRole,
  InstanceSort,
  InstanceState,
  InstanceTotals,
  PartitionOrder,
  ProducedTask,
  FeedEntry as ShownFeedEntry,
  TableView,
  ThroughputStep,
} from '@baton/protocol'
import type { EndedAttempt } from '../rules/attempts.ts'
import type { FailureGroup } from '../rules/failures.ts'
import type { IndexRange } from '../rules/index-runs.ts'
import type { PartitionState } from '../rules/life-cycle.ts'
import type { Progress } from '../rules/progress.ts'
import type { LeaseOutcome } from '../rules/settlement.ts'
import type { Requester } from '../rules/stamps.ts'
import { addCapped, type Tallies, type TaskFacts, type TaskState } from '../rules/task.ts'
import type { Timing } from './time-left.ts'

export interface LaneFacts extends Tallies {
  readonly level: number
  readonly parkedSkipped: boolean
  readonly firstIndex: number
  readonly lastIndex: number
  readonly gaps: readonly IndexRange[]
  /** The total duration and the number of the attempts that finished its partitions. */
  readonly busyMillis?: number
  readonly attemptsDone?: number
  readonly heldByTable?: Amount | undefined
}

/** A number of partitions and the sum of their records. */
export interface Amount {
  readonly partitions: number
  readonly records: number
}

/** What was finished lately, in how many seconds, and how long ago the last of it was. */
export interface Seen extends Amount {
  readonly seconds: number
  readonly idleMillis: number
}

export interface TaskRow {
  readonly facts: TaskFacts
  /** The only open level of a task with a barrier; see view-state.ts and rules/task.ts. */
  readonly openLane: Pick<LaneFacts, 'parkedSkipped' | 'partitions' | 'records'> | null
  /** Null: nothing was finished since this node leads. */
  readonly pace: Seen | null
  /** Why most of what is parked failed, else most attempts; see rules/failures.ts. */
  readonly reason?: string | null
  readonly timing?: Timing
  /** What waits on open levels although their tables are paused. */
  readonly heldByTable?: Amount | undefined
  /** If the query names tables: whether the task has other tables too. */
  readonly hasOtherTables?: boolean | undefined
}

export interface TaskDetails extends TaskRow {
  readonly now: number
  readonly lanes: readonly LaneFacts[]
  readonly lanesOmitted: number
  readonly computeTables: readonly string[]
  readonly mismatches: readonly {
    readonly level: number
    readonly index: number
    readonly spelling: string | null
    readonly declared: number
    readonly reported: number
  }[]
  readonly failures: readonly FailureGroup[]
}

export interface TaskFeed {
  readonly task: Pick<TaskFacts, 'taskId' | 'owners'>
  /** Newest first. */
  readonly entries: readonly FeedEntry[]
  /** False if there are older entries, or levels that were not looked at. */
  readonly isComplete: boolean
}

/** As in the API, but for the format of the time. */
export type FeedEntry = Omit<ShownFeedEntry, 'at' | 'request'> & {
  readonly at: number
  readonly request: Requester['body']
}

export interface SettingsOfTask extends Pick<TaskFacts, 'taskId' | 'settings' | 'levelBarrier' | 'owners'> {
  /** Whether the task exists. Its settings may be stored before its first call-back. */
  readonly calledBack: boolean
}

export interface TaskQuery {
  readonly state: TaskState | null
  /** Only tasks that are shown with parked partitions. A cancelled task has none. */
  readonly parked: boolean
  /** Cursor: the position of the last task seen. The newest tasks come first. */
  readonly before: number | null
  readonly limit: number
  readonly search: string | null
  /** Only these tasks, by full id; null or absent: any. */
  readonly tasks?: readonly string[] | null
  /** Tasks with one of these tables; null or absent: any. A page reads `limit` tasks, and has those. */
  readonly tables?: readonly string[] | null
}

export interface TaskPage {
  readonly now: number
  readonly tasks: readonly TaskRow[]
  readonly next: number | null
}

/** As in the API, but for the formats of pace and time. */
export type TableDetails = Omit<TableView, 'pace' | 'lastAskedAt'> & {
  /** Per second. Null if nothing was done within the last minute. */
  readonly pace: Amount | null
  readonly lastAskedAt: number | null
}

export interface TableQuery {
  /** Cursor: the name of the last table seen. */
  readonly after: string | null
  readonly limit: number
}

/** Ordered by name. */
export interface TablePage {
  readonly tables: readonly TableDetails[]
  readonly next: string | null
}

/** A partition that ran out of attempts, for immediate notification of an operator. */
export interface ParkedNotice {
  readonly taskId: string
  readonly level: number
  readonly index: number
  readonly spelling: string | null
  readonly attempts: number
  readonly reason: string | null
}

export interface ChangeQuery {
  /** The position returned with an earlier page; null requests the current position. */
  readonly after: string | null
  /** The maximum number of tasks. The others follow with the next page. */
  readonly limit: number
}

/** The changes since a position: each task once, in its current state, however often it changed. */
export interface ChangePage {
  readonly next: string
  /** The position is too old or from before a restart of the store: the watcher must reload everything. */
  readonly missed: boolean
  readonly now: number
  readonly tasks: readonly TaskRow[]
  readonly parked: readonly ParkedNotice[]
}

export const noTotals = (): InstanceTotals => ({
  pulls: 0,
  partitions: 0,
  records: 0,
  done: 0,
  failed: 0,
  released: 0,
  expired: 0,
  revoked: 0,
  callBacks: 0,
  calledBack: 0,
})

export const totalFields = Object.keys(noTotals()) as (keyof InstanceTotals)[]

export function addTotals(to: InstanceTotals, added: InstanceTotals): void {
  for (const field of totalFields) to[field] = addCapped(to[field], added[field])
}

/** What an instance did since it was last counted. */
export interface TotalsAdded {
  readonly instanceId: string
  readonly role: InstanceRole
  readonly at: number
  readonly totals: InstanceTotals
  /** See `InstanceRecord`. Null: no lease of it expired. */
  lostUnlessSeenSince: number | null
}

/** What a node says of itself with each heartbeat. */
export interface NodeDetails {
  readonly version: string
  readonly startedAt: number
  readonly draining: boolean
  /** The share of time in which its event loop was busy, in per cent. Null: not measured yet. */
  readonly load: number | null
}

export interface InstanceRecord {
  readonly instanceId: string
  readonly role: InstanceRole
  readonly firstSeenAt: number
  readonly lastSeenAt: number
  readonly totals: InstanceTotals
  /** Not seen since, it was silent when its last expired lease ended. Null: no lease of it expired. */
  readonly lostUnlessSeenSince: number | null
  /** Since when it is paused. Null: it is not. */
  readonly pausedAt: number | null
  readonly node: NodeDetails | null
  /** The newest tasks that it called back, at most 100. Absent in lists, which would read too many tasks. */
  readonly tasks?: readonly ProducedTaskDetails[]
}

/** An instance with its leases, which are in memory. */
export interface InstanceDetails extends InstanceRecord {
  readonly leases: number
  /** Unseen for this long, it is silent: four fifths of one of its leases have passed. Null: of none. */
  readonly silentAfterMillis: number | null
  /** Of the node that leads: since when. Null for all others. */
  readonly leadsSince: number | null
  readonly now: number
}

export interface InstanceQuery {
  readonly after: InstancePosition | null
  readonly limit: number
  /** Only the instances with these names, at most `limit`, in any order; absent: all. */
  readonly names?: readonly string[]
  /** Only instances whose name contains this; null or absent: any. */
  readonly search?: string | null
  readonly status?: InstanceState | null
  /** By name, the last seen first, or those with most leases first. */
  readonly sort?: InstanceSort
}

/** Cursor: the last instance seen. `value` is what the list is sorted by; 0 if by name. */
export interface InstancePosition {
  readonly value: number
  readonly name: string
}

/** Instances that were seen within this time or hold a lease. */
export interface ActiveInstancesQuery {
  readonly activeMillis: number
  readonly limit: number
}

export interface InstancePage {
  readonly instances: readonly InstanceDetails[]
  /** Set while there may be more, even if this page is short: a page reads a bounded number of rows. */
  readonly next: InstancePosition | null
}

/** A partition, as pulls and lists of leases and attempts name it. */
export interface NamedPartition {
  readonly taskId: string
  readonly level: number
  readonly index: number
  readonly spelling: string | null
  readonly computeTableName: string
  readonly recordCount: number
}

/** A lease in the list of its holder. */
export interface InstanceLeaseDetails extends NamedPartition {
  readonly attempt: number
  readonly leasedAt: number
  readonly expiresAt: number
  readonly progress?: Progress
  readonly checkpoint?: string
}

/** A position among leases, or among the partitions that wait in a lane: (dueAt or 0, id). */
export interface DuePosition {
  readonly dueAt: number
  readonly id: number
}

export interface InstanceLeasesQuery {
  readonly instanceId: string
  /** Cursor: the last lease seen, ordered by its end. */
  readonly after: DuePosition | null
  readonly limit: number
}

/** The first to expire first. */
export interface InstanceLeasesPage {
  readonly leases: readonly InstanceLeaseDetails[]
  readonly next: DuePosition | null
}

/** An attempt that ended while this node led. */
export interface InstanceAttemptDetails extends NamedPartition {
  readonly attempt: number
  readonly startedAt: number
  readonly endedAt: number
  readonly outcome: LeaseOutcome
  readonly reason: string | null
  readonly records: number | null
}

export interface InstanceAttempts {
  /** When this node began to lead. */
  readonly since: number
  /** The last to end first. */
  readonly attempts: readonly InstanceAttemptDetails[]
}

/** A task in the record of its producer, with times as numbers. They are formatted in the API. */
export type ProducedTaskDetails = Omit<ProducedTask, 'lastCallBackAt'> & {
  readonly lastCallBackAt: number
  readonly owners: readonly string[]
}

export interface PartitionQuery {
  readonly taskId: string
  readonly state: PartitionState | null
  readonly level: number | null
  /** Of the level; null or absent: all. */
  readonly indexes?: IndexRange | null
  /** A name, or the beginning of names with `*` after it; null or absent: any. */
  readonly name?: string | null
  /** Only those of which this instance holds the lease; null or absent: any. */
  readonly holder?: string | null
  /** Only those whose last failure is of the group with this key; null or absent: any. */
  readonly reason?: string | null
  /** By level and index. `unfinished`: the same, but finished ones last, and before them what was never handed out. */
  readonly order?: PartitionOrder | null
  /** Cursor: the last row seen. */
  readonly after: PartitionPosition | null
  readonly limit: number
}

/**
 * A part of a list of partitions: all of them, those that were handed out and are not finished, those that were
 * never handed out, or the others.
 */
export type PartitionPart = 'all' | 'begun' | 'fresh' | 'finished'

export interface PartitionPosition {
  readonly part: PartitionPart
  readonly level: number
  /** The index of a partition, or the id of a fresh one: these are listed as they arrived. */
  readonly at: number
}

export interface PartitionRow {
  readonly id: number
  readonly index: number
  readonly spelling: string | null
  readonly computeTable: string
  readonly recordCount: number
  readonly state: PartitionState
  readonly attempts: number
  readonly holder: string | null
  readonly dueAt: number | null
  readonly reason: string | null
  readonly reportedRecords: number | null
  readonly calledBackAt: number
  readonly settledAt: number | null
  /** When its latest lease began. */
  readonly leasedAt: number | null
  readonly outcome: LeaseOutcome | null
  readonly history: readonly EndedAttempt[] | null
  readonly failure: string | null
  /** Null: it has no checkpoint. */
  readonly checkpointAt: number | null
  readonly extraFields: string | null
  readonly traceparent: string | null
}

export interface PartitionDetails extends PartitionRow {
  readonly level: number
  /** Of its lease, as this leader knows it. */
  readonly progress?: Progress
  readonly checkpoint?: string
}

export interface PartitionPage {
  readonly facts: TaskFacts
  readonly partitions: readonly PartitionDetails[]
  /** Set while there may be more, even if this page is short: a page reads a bounded number of rows. */
  readonly next: PartitionPosition | null
}

export interface GridQuery {
  readonly taskId: string
  /** Null: the lowest level. */
  readonly level: number | null
  readonly cells: number
}

export type GridDetails = Omit<Grid, 'taskId'> & {
  readonly task: Pick<TaskFacts, 'taskId' | 'owners'>
}

export type GridCell = Grid['cells'][number]

export interface ThroughputQuery {
  /** Null: all tasks together. */
  readonly taskId: string | null
  readonly step: ThroughputStep
  /** Null: the default range of the step. */
  readonly from: number | null
  /** Null: until now. */
  readonly to: number | null
  readonly byLevel: boolean
}

export interface ThroughputRow extends Amount {
  readonly at: number
  /** Null: all levels together. */
  readonly level: number | null
}

export interface ThroughputHistory {
  /** Null: all tasks together. */
  readonly task: Pick<TaskFacts, 'taskId' | 'owners'> | null
  /** The start of the rows. Later than requested if there were too many. */
  readonly from: number
  readonly to: number
  /** Oldest first. */
  readonly rows: readonly ThroughputRow[]
}
