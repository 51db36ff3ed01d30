import type { CallBack, CalledBackPartition } from '@baton/protocol'
import type { Heartbeat } from './heartbeats.ts'
import type { DeliveryAnswer, DeliveryOrder, SubscriptionOrder, SubscriptionResult } from './outbox.ts'
import type { ControlOrder, ControlResult } from './rules/control.ts'
import type { LeaseRef } from './rules/lease-id.ts'
import type { RefusalCode, SettlementOrder } from './rules/settlement.ts'
import type { CallBackRefusal } from './rules/task-course.ts'
import type { TaskSettingsChange } from './rules/task-settings.ts'
import type { ThroughputQuery, ThroughputRecord } from './shown/throughput-record.ts'
import type {
  ChangePage,
  ChangeQuery,
  InstancePage,
  InstanceQuery,
  InstanceRecord,
  PartitionPage,
  PartitionQuery,
  TaskPage,
  TaskQuery,
  TaskRecord,
} from './views/records.ts'

/**
 * What the hand-off needs of a store: domain verbs, each a transaction of its own.
 *
 * A store executes. What may happen is decided by the rules in rules/, which every store calls inside its transaction. A
 * promise that resolves means that the outcome is durable. One that rejects with StoreUnavailable means that nothing
 * happened by halves: after a commit whose answer got lost it may have happened, and sending the same again is safe.
 */
export interface Store {
  /** Everything that arrived together, in one transaction: settle first, so that pulls see the result. */
  handOff(batch: HandOffBatch): Promise<HandOffAnswers>
  /** End leases and back-offs whose time has come, at most `limit` of each. */
  sweep(order: SweepOrder): Promise<SweepResult>
  /** One bounded step of the work that control and retention leave behind. */
  maintain(order: MaintenanceOrder): Promise<MaintenanceResult>
  control(order: ControlOrder): Promise<ControlResult>
  /** An operator takes the leases of an instance back, at most `limit` of them at a time. */
  releaseInstance(order: ReleaseOrder): Promise<ReleaseResult>
  task(taskId: string): Promise<TaskRecord | null>
  tasks(query: TaskQuery): Promise<TaskPage>
  partitions(query: PartitionQuery): Promise<PartitionPage | null>
  /** What became done of a task, by minute or hour. */
  throughput(query: ThroughputQuery): Promise<ThroughputRecord | null>
  /** What changed since a position, for those who watch. */
  changes(query: ChangeQuery): Promise<ChangePage>
  /** Who is told what, and what became of it. */
  subscriptions(order: SubscriptionOrder): Promise<SubscriptionResult>
  /** For the one that delivers. Null: this is for another node to do. */
  deliver(order: DeliveryOrder): Promise<DeliveryAnswer | null>
  recordHeartbeats(heartbeats: readonly Heartbeat[]): Promise<void>
  instance(instanceId: string): Promise<InstanceRecord | null>
  instances(query: InstanceQuery): Promise<InstancePage>
  /** Resolves when the store can commit; rejects with StoreUnavailable and the reason. */
  probe(): Promise<void>
  /** Recounts every row and lists where counters or order tags disagree. For tests and operators. */
  audit(): Promise<string[]>
  close(): Promise<void>
  /**
   * For a store that several nodes share: tells that another node, or upkeep of the store's own, made
   * partitions ready, and when the earliest lease or back-off of what it did ends, where this node has to see to it.
   * A hint may get lost, so whoever waits also looks now and then.
   */
  onHint?(listener: HintListener): void
  /** For a store that several nodes share: this node has become the one that ends leases. */
  onLead?(listener: () => void): void
  /** For a store that several nodes share: whether this node is the one that decides. */
  leads?(): boolean
  /** How many batches the store takes at once; one by one if it does not say. */
  readonly batching?: Batching
}

export type HintListener = (
  readied: number,
  nextDueInMillis?: number | null,
  readiedOf?: readonly PreparedOf[] | null,
) => void

/** So many partitions of a task and a table; null: of any of its tables. */
export type PreparedOf = readonly [task: string, table: string | null, count: number]

/** For a store that works on several batches side by side. */
export interface Batching {
  /** Small batches under way at once: more of them would share fewer commits. */
  readonly atOnce: number
  /** A batch of so many partitions is full: what is left makes another one. */
  readonly full: number
  /** Full batches under way at once. */
  readonly fullAtOnce: number
  /**
   * How long a batch may wait for clients that were just answered and have not asked again, as a share of the time that
   * the last batch took.
   */
  readonly retrySchedule?: number
}

/** What one request asks of the store; a settle that also pulls asks for two things at once. */
export interface StoreRequest {
  readonly settle?: SettleOrder | undefined
  readonly renew?: RenewOrder | undefined
  readonly undo?: readonly LeaseRef[] | undefined
  readonly callBack?: CallBackOrder | undefined
  readonly pull?: PullOrder | undefined
}

export interface HandOffBatch {
  readonly settles: readonly SettleOrder[]
  readonly renews: readonly RenewOrder[]
  readonly undos: readonly LeaseRef[]
  readonly callBacks: readonly CallBackOrder[]
  readonly pulls: readonly PullOrder[]
}

/** Position by position the answers to the batch. */
export interface HandOffAnswers {
  readonly settles: readonly SettleResult[]
  readonly renews: readonly RenewResult[]
  readonly undone: number
  /** Ids of the leases whose settlement parked their partition, or had done so before; absent where there are none. */
  readonly parked?: readonly string[]
  readonly callBacks: readonly CallBackResult[]
  readonly pulls: readonly PullResult[]
  /**
   * Partitions that became ready by this batch. Pulls of the same batch may have taken some of them: whoever is woken for
   * one looks, finds nothing and waits on. They are not taken off, because what those pulls took may as well be what
   * others were woken for before.
   */
  readonly readied: number
  /** Of which tasks and tables they are, for pulls that choose; null or absent: it may be anything. */
  readonly readiedOf?: readonly PreparedOf[] | null
  /** When the earliest lease or back-off of this batch ends, on the store's clock. */
  readonly nextDueInMillis: number | null
}

export interface CallBackOrder {
  readonly callBack: CallBack
  readonly producer: string | null
  /** The trace that it came with. */
  readonly traceparent?: string | null
  /** The settings of its task from now on; null or absent: they stay as they are. */
  readonly settings?: TaskSettingsChange | null
  /** The name of the token that it came with: the task is its own from then on. */
  readonly owner?: string | null
  /** Given: nothing more will come of the task after this, with so many partitions in all if that is known. */
  readonly seal?: { readonly partitions: number | null } | null
}

export type CallBackResult =
  | { readonly kind: 'stored'; readonly accepted: number; readonly duplicates: number }
  | { readonly kind: 'conflict'; readonly conflicts: readonly KnownConflict[]; readonly total: number }
  | CallBackRefusal
  /** The disk is nearly full: no new work, so that what was accepted can still be settled. */
  | { readonly kind: 'store_full' }

/** What is called back says something else of a partition than what is known. */
export interface KnownConflict {
  /** Position in the array that was called back. */
  readonly position: number
  readonly known: CalledBackPartition
}

export interface PullOrder {
  readonly instance: string | null
  readonly batch: number
  readonly records: number | null
  readonly key: string | null
  /** Only partitions of these compute tables; null: of any. */
  readonly tables: readonly string[] | null
  /** Only partitions of these tasks; null: of any. */
  readonly tasks: readonly string[] | null
}

export interface PullResult {
  readonly partitions: readonly PulledPartition[]
  /** The key was seen before: these are its leases that still live. */
  readonly repeated: boolean
}

export interface PulledPartition {
  readonly taskId: string
  readonly level: number
  readonly index: number
  readonly spelling: string | null
  readonly computeTableName: string
  readonly recordCount: number
  readonly lease: GrantedLease | null
  /** These two only where there is something: nearly always there is not. */
  readonly extraFields?: string | null
  readonly traceparent?: string | null
}

export interface GrantedLease {
  readonly id: string
  readonly attempt: number
  readonly expiresAt: number
  readonly expiresInMillis: number
}

export interface SettleOrder {
  readonly instance: string | null
  /** Leases of other compute tables are unknown to the caller; null or absent: it may settle any. */
  readonly tables?: readonly string[] | null
  readonly settlements: readonly { readonly lease: LeaseRef; readonly order: SettlementOrder }[]
}

/** One entry per settlement: `null` is settled. */
export type SettleResult = readonly (RefusalCode | null)[]

export interface RenewOrder {
  /** As for a settle. */
  readonly tables?: readonly string[] | null
  readonly leases: readonly LeaseRef[]
}

export type RenewResult = readonly (
  | { readonly refused: RefusalCode }
  | { readonly refused: null; readonly expiresAt: number; readonly expiresInMillis: number }
)[]

export interface SweepOrder {
  readonly limit: number
  /** Off during the grace after a start or an outage; back-offs end all the same. */
  readonly expireLeases: boolean
}

export interface SweepResult {
  /** Partitions that became ready: their back-off ended, or a barrier that waited for others opened. */
  readonly woken: number
  readonly readiedOf?: readonly PreparedOf[] | null
  readonly expired: number
  readonly parked: number
  /** More is due than the limit allowed. */
  readonly more: boolean
  readonly nextDueInMillis: number | null
}

export interface ReleaseOrder {
  readonly instanceId: string
  readonly limit: number
}

export interface ReleaseResult {
  readonly released: number
  /** Those of them that had no attempt left. */
  readonly parked: number
  readonly readied: number
  readonly more: boolean
}

export interface MaintenanceOrder {
  /** Finished tasks older than this lose their partitions and keep their summary. */
  readonly retentionMillis: number
  /** Instances unseen for so long are forgotten. */
  readonly forgetInstancesMillis: number
  /** Nodes that were draining when they were last seen, after so long. */
  readonly forgetEndedNodesMillis: number
}

export interface MaintenanceResult {
  readonly more: boolean
  readonly readied: number
  /** Why a part of it could not be done, and will be tried again; the others were done all the same. */
  readonly failure?: unknown
}

/** The store cannot commit now; the request may be sent again. */
export class StoreUnavailable extends Error {
  override name = 'StoreUnavailable'
  readonly code: 'store_unavailable' | 'store_full'
  constructor(code: 'store_unavailable' | 'store_full', detail: string, options?: ErrorOptions) {
    super(detail, options)
    this.code = code
  }
}

/** The node that led is gone, or another leads now. The store may be sound: the next leader is a moment away. */
export class LeaderChanged extends StoreUnavailable {
  override name = 'LeaderChanged'
  constructor(detail: string, options?: ErrorOptions) {
    super('store_unavailable', detail, options)
  }
}

/** The store must not be opened by this program: started elsewhere, or written by a newer one. */
export class StoreRefused extends Error {
  override name = 'StoreRefused'
}
