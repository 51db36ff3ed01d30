import type { CallBack, CalledBackPartition, InstanceRole } from '@baton/protocol'
import type { AuditPage, AuditQuery } from './audit.ts'
import type { Heartbeat } from './heartbeats.ts'
import type { LeaseRef } from './lease-id.ts'
import type { DeliveryAnswer, DeliveryRequest, SubscriptionRequest, SubscriptionResult } from './outbox.ts'
import type { PulledPartition } from './partition.ts'
import type { CallBackRefusal } from './rules/call-back-rules.ts'
import type { ControlRequest, ControlResult } from './rules/control.ts'
import type { OwnerLimited, OwnerLimits, TooManyLanes } from './rules/open-work-limits.ts'
import type { TableSettings, TaskSettingsChange } from './rules/policy.ts'
import type { ReportedProgress } from './rules/progress.ts'
import type { GivenCheckpoint, RefusalCode, ReportedOutcome } from './rules/settlement.ts'
import type { Requester } from './rules/stamps.ts'
import type {
  ActiveInstancesQuery,
  ChangePage,
  ChangeQuery,
  GridDetails,
  GridQuery,
  InstanceAttempts,
  InstanceDetails,
  InstanceLeasesPage,
  InstanceLeasesQuery,
  InstancePage,
  InstanceQuery,
  PartitionPage,
  PartitionQuery,
  SettingsOfTask,
  TableDetails,
  TablePage,
  TableQuery,
  TaskDetails,
  TaskFeed,
  TaskPage,
  TaskQuery,
  ThroughputHistory,
  ThroughputQuery,
} from './views/queries.ts'

/** What a store shows. Reads change nothing and give flushed rows. */
export interface StoreViews {
  task(taskId: string): Promise<TaskDetails | null>
  /** Also of a task that has settings and was not called back yet. */
  taskSettings(taskId: string): Promise<SettingsOfTask | null>
  tasks(query: TaskQuery): Promise<TaskPage>
  partitions(query: PartitionQuery): Promise<PartitionPage | null>
  /** What became done of a task or of all, by minute or hour. */
  throughput(query: ThroughputQuery): Promise<ThroughputHistory | null>
  /** Who changed what, newest first. */
  audited(query: AuditQuery): Promise<AuditPage>
  feed(taskId: string): Promise<TaskFeed | null>
  /** The states of the partitions of one level, by ranges of indexes. */
  grid(query: GridQuery): Promise<GridDetails | null>
  /** Compute tables with open work or settings. */
  table(name: string): Promise<TableDetails | null>
  tables(query: TableQuery): Promise<TablePage>
  instanceLeases(query: InstanceLeasesQuery): Promise<InstanceLeasesPage>
  instanceAttempts(instanceId: string): Promise<InstanceAttempts>
}

/**
 * The storage interface of the hand-off: domain verbs, each with its own transaction.
 *
 * The rules in rules/ decide what may happen; a store calls them inside its transaction. When a promise
 * resolves, the result is durable. When it rejects with StoreUnavailable, either all of it was committed or
 * nothing, and the caller does not know which. Sending the same request again is safe.
 */
export interface Store extends StoreViews {
  /** In one transaction, settles first, so that pulls see the result. */
  runBatch(batch: HandOffBatch): Promise<HandOffAnswers>
  /** Whether it runs over several transactions, or after such a one of its task: others would wait for it. */
  runsAlone(callBack: BatchedCallBack): boolean
  /** Ends leases and back-offs that are due, at most `limit` of each. */
  sweep(request: SweepRequest): Promise<SweepResult>
  /** Runs one bounded step of the background work of control and retention. */
  maintain(request: MaintenanceRequest): Promise<MaintenanceResult>
  control(request: ControlRequest): Promise<ControlResult>
  /** An operator revokes the leases of an instance, at most `limit` at a time. */
  revokeLeases(request: RevokeRequest): Promise<RevokeResult>
  setTable(change: TableChange): Promise<TableChanged>
  revokeLease(lease: PartitionRef): Promise<RevokeResult | NotRevoked>
  /** Returns since when the instance is paused; null if it is not. */
  pauseInstance(request: PauseRequest): Promise<number | null>
  changes(query: ChangeQuery): Promise<ChangePage>
  subscriptions(request: SubscriptionRequest): Promise<SubscriptionResult>
  /** For the deliverer. Null if another node is responsible. */
  deliver(request: DeliveryRequest): Promise<DeliveryAnswer | null>
  recordHeartbeats(heartbeats: readonly Heartbeat[]): Promise<void>
  instance(instanceId: string): Promise<InstanceDetails | null>
  instances(query: InstanceQuery): Promise<InstancePage>
  /** Returns only names: the whole fleet is read once, and its records in pages. */
  activeInstances(query: ActiveInstancesQuery): Promise<string[]>
  /** Resolves if the store can commit; otherwise rejects with StoreUnavailable and the reason. */
  probe(): Promise<void>
  close(): Promise<void>
  /** Only if several nodes share the store. */
  readonly cluster?: ClusterOfStore | undefined
}

export interface ClusterOfStore {
  /** Whether this node is the leader. */
  leads(): boolean
  /** This node took over, possibly from itself, or leads no more. Partitions may have become ready. */
  onLeadership(listener: (leads: boolean) => void): void
  /** How long a batch may wait for clients that were just answered, as a share of the last batch. */
  readonly waitShare: number
}

const storeVerbs = [
  'runBatch',
  'sweep',
  'maintain',
  'control',
  'revokeLeases',
  'setTable',
  'table',
  'tables',
  'revokeLease',
  'pauseInstance',
  'task',
  'taskSettings',
  'tasks',
  'partitions',
  'throughput',
  'audited',
  'feed',
  'grid',
  'changes',
  'subscriptions',
  'deliver',
  'recordHeartbeats',
  'instance',
  'instances',
  'instanceLeases',
  'instanceAttempts',
  'activeInstances',
  'probe',
] as const satisfies readonly (keyof Store)[]

export type StoreVerb = (typeof storeVerbs)[number]

type AnyVerb = (argument: never) => Promise<unknown>

export const eachVerb = (make: (verb: StoreVerb) => AnyVerb): Pick<Store, StoreVerb> =>
  Object.fromEntries(storeVerbs.map((verb) => [verb, make(verb)])) as unknown as Pick<Store, StoreVerb>

export const runVerb = (store: Pick<Store, StoreVerb>, verb: StoreVerb, argument: never): Promise<unknown> =>
  (store[verb] as AnyVerb).call(store, argument)

/** The number of partitions of a task and table. Null: any task, or any table. */
export type NewlyReadyOf = readonly [task: string | null, table: string | null, count: number]

/** What one request asks of the store. A settle that also pulls has two parts. */
export interface StoreRequest {
  readonly settle?: BatchedSettle | undefined
  readonly renew?: BatchedRenew | undefined
  readonly undo?: readonly LeaseRef[] | undefined
  readonly callBack?: BatchedCallBack | undefined
  readonly pull?: BatchedPull | undefined
}

export interface HandOffBatch {
  readonly settles: readonly BatchedSettle[]
  readonly renews: readonly BatchedRenew[]
  readonly undos: readonly LeaseRef[]
  readonly callBacks: readonly BatchedCallBack[]
  readonly pulls: readonly BatchedPull[]
}

/** The answers to the batch, by position. */
export interface HandOffAnswers {
  readonly settles: readonly SettleResult[]
  readonly renews: readonly RenewResult[]
  readonly undone: number
  /** Leases, settled as failed, also repeatedly, whose partition is parked. Absent if there are none. */
  readonly parked?: readonly string[]
  readonly callBacks: readonly CallBackResult[]
  readonly pulls: readonly PullResult[]
  /**
   * The number of partitions that this batch made ready. Pulls of the same batch may have taken some: a pull
   * that is woken for those finds nothing and waits again. They are not subtracted, because those pulls may
   * have taken partitions for which other pulls were woken before.
   */
  readonly newlyReady: number
  /** The same by task and table, for pulls with a filter. Null or absent if unknown. */
  readonly newlyReadyOf?: readonly NewlyReadyOf[] | null
  /** When the earliest lease or back-off of this batch ends, by the store's clock. */
  readonly nextDueInMillis: number | null
}

export interface BatchedCallBack {
  readonly callBack: CallBack
  readonly producer: string | null
  /** The trace context of the request. */
  readonly traceparent?: string | null
  /** A change of the settings of its task. Null or absent: unchanged. */
  readonly settings?: TaskSettingsChange | null
  /** The name of the token of the request. A new task belongs to it. */
  readonly owner?: string | null
  /** Who sent it. Given if it also seals or sets up the task, which is audited. */
  readonly by?: Requester | undefined
  /** Whether the token may call back tasks that belong to others. */
  readonly sharesTask?: boolean
  /** How much open work the owner of the task may have with this call-back. Null or absent: any amount. */
  readonly ownerLimits?: OwnerLimits | null
  /** Seals the task after this call-back, with the expected number of partitions if known. */
  readonly seal?: { readonly partitions: number | null } | null
}

export type CallBackResult =
  | { readonly kind: 'stored'; readonly accepted: number; readonly duplicates: number }
  | { readonly kind: 'conflict'; readonly conflicts: readonly KnownConflict[]; readonly total: number }
  | CallBackRefusal
  | TooManyLanes
  | OwnerLimited
  /** The task would have more lanes than one may have. */
  | { readonly kind: 'too_many_levels'; readonly most: number }
  /** The disk is nearly full. New work is refused, so that accepted work can still be settled. */
  | { readonly kind: 'store_full' }

export interface KnownConflict {
  readonly position: number
  readonly known: CalledBackPartition
}

export interface BatchedPull {
  readonly instance: string | null
  readonly batch: number
  readonly records: number | null
  readonly key: string | null
  /** Only partitions of these compute tables; null: any. */
  readonly tables: readonly string[] | null
  /** Only partitions of these tasks; null: any. */
  readonly tasks: readonly string[] | null
}

export interface PullResult {
  readonly partitions: readonly PulledPartition[]
  /** The key was used before. These are its leases that are still valid. */
  readonly repeated: boolean
  /** Why there are none, if not because none is ready. */
  readonly because?: EmptyBecause | undefined
}

export interface EmptyBecause {
  readonly code: 'too_many_leases' | 'instance_paused'
  readonly detail: string
}

export interface BatchedSettle {
  readonly instance: string | null
  /** The caller may settle leases of these compute tables; others are unknown. Null or absent: any. */
  readonly tables?: readonly string[] | null
  readonly settlements: readonly { readonly lease: LeaseRef; readonly reported: ReportedOutcome }[]
}

/** One item per settlement; `null` means settled. */
export type SettleResult = readonly (RefusalCode | null)[]

export interface BatchedRenew {
  /** As for a settle. */
  readonly tables?: readonly string[] | null
  readonly leases: readonly RenewedLease[]
}

/** Absent: as it was. */
export interface RenewedLease extends LeaseRef {
  readonly progress?: ReportedProgress
  readonly checkpoint?: GivenCheckpoint
}

export type RenewResult = readonly (
  | { readonly refused: RefusalCode }
  | { readonly refused: null; readonly expiresAt: number; readonly expiresInMillis: number }
)[]

export interface SweepRequest {
  readonly limit: number
  /** False in the grace period after a start or an outage. Asked when the sweep runs, which may be later. */
  mayExpireLeases(): boolean
}

export interface SweepResult {
  /** Partitions that became ready because their back-off ended or a barrier opened. */
  readonly woken: number
  readonly newlyReadyOf?: readonly NewlyReadyOf[] | null
  readonly expired: number
  readonly parked: number
  /** More partitions are due than the limit allowed. */
  readonly more: boolean
  readonly nextDueInMillis: number | null
}

export interface RevokeRequest {
  readonly instanceId: string
  readonly limit: number
  readonly by?: Requester | undefined
}

export interface PartitionRef {
  readonly taskId: string
  readonly level: number
  readonly index: number
  readonly by?: Requester | undefined
}

export interface NotRevoked {
  readonly unknown: 'task' | 'partition'
}

export interface PauseRequest {
  readonly instanceId: string
  readonly role: InstanceRole
  readonly paused: boolean
  readonly by?: Requester | undefined
}

export interface RevokeResult extends Revoked {
  readonly newlyReady: number
  readonly more: boolean
}

/** Absent settings stay as they are. */
export interface TableChange extends Partial<TableSettings> {
  readonly table: string
  readonly by?: Requester
}

export interface TableChanged {
  readonly settings: TableSettings
  readonly newlyReady: number
  readonly newlyReadyOf: readonly NewlyReadyOf[] | null
}

export interface MaintenanceRequest {
  /** Partitions of tasks that finished before this are deleted. The summary of the task is kept. */
  readonly retentionMillis: number
  readonly auditMillis: number
}

export interface MaintenanceResult {
  readonly more: boolean
  readonly newlyReady: number
  /** Why a part failed. It will be retried; the other parts were completed. */
  readonly failure?: unknown
}

/** The store cannot commit now. The request may be sent again. */
export class StoreUnavailable extends Error {
  override name = 'StoreUnavailable'
  readonly code: 'store_unavailable' | 'store_full'
  constructor(code: 'store_unavailable' | 'store_full', detail: string, options?: ErrorOptions) {
    super(detail, options)
    this.code = code
  }
}

export const storeClosed = (): StoreUnavailable =>
  new StoreUnavailable('store_unavailable', 'the store is closed')

/** The leader is gone or has changed. The store may be intact, and a new leader is expected shortly. */
export class LeaderUnavailable extends StoreUnavailable {
  override name = 'LeaderUnavailable'
  constructor(detail: string, options?: ErrorOptions) {
    super('store_unavailable', detail, options)
  }
}

/** This node does not lead, or not for certain, so the state in its memory may be out of date. */
export class NotLeader extends LeaderUnavailable {
  override name = 'NotLeader'
  constructor(options?: ErrorOptions) {
    super('another node is the leader now; send the request again', options)
  }
}

/** The store cannot be used by this program: for example, it is in use, or a newer version has written it. */
export class StoreRefused extends Error {
  override name = 'StoreRefused'
}

/** Requests to the hand-off, and their results. */
export interface PullRequest extends BatchedPull {
  readonly waitMillis: number
}

export interface Pulled extends PullResult {
  /** Nothing was ready at first, and the caller had requested to wait. */
  readonly waited: boolean
}

export interface SettleRequest {
  readonly instance: string | null
  readonly tables?: readonly string[] | null
  readonly settlements: readonly { readonly leaseId: string; readonly reported: ReportedOutcome }[]
  /** Also hand out the next partitions, in the same transaction. */
  readonly pull: PullRequest | null
}

export interface Settled {
  readonly settled: readonly string[]
  /** The settled leases whose partitions are now parked. */
  readonly parked: readonly string[]
  readonly refused: readonly { readonly leaseId: string; readonly code: RefusalCode }[]
  readonly pulled: Pulled | null
}

/** Leases that an operator revoked. */
export interface Revoked {
  readonly revoked: number
  readonly parked: number
}

export interface RenewalRequest extends Omit<RenewedLease, keyof LeaseRef> {
  readonly leaseId: string
}

export type RenewalAnswer = RenewResult[number] & { readonly leaseId: string }

export type CallBackOutcome = Exclude<CallBackResult, { readonly kind: 'store_full' }>
