import type { DeliveryState, SubscriptionState, WebhookEventType } from '@baton/protocol'
import { of, type RowOf } from './fields.ts'
import type { Requester } from './rules/stamps.ts'

// Subscriptions and their deliveries, as a transactional outbox: events are written in the entry that makes
// their cause durable, with one delivery for each matching subscription.

/** Every event is matched against all subscriptions, so their number is limited. */
export const MAX_SUBSCRIPTIONS = 100

export interface StoredSubscription {
  readonly id: string
  /** Null: nothing is posted, and the events are read over HTTP. */
  readonly url: string | null
  readonly types: readonly WebhookEventType[]
  readonly taskPrefix: string
  /** The current secret is first. The previous one also signs until it expires. */
  readonly secrets: readonly SigningSecret[]
  /** `removed`: its deliveries are being deleted, and it is no longer listed. */
  readonly state: SubscriptionState | 'removed'
  /** Why it is disabled. */
  readonly reason: string | null
  readonly createdAt: number
  /** Events up to this number may have been deleted by retention. */
  readonly deletedTo: number
  /** Its name in the subscriptions file; absent if it was created over HTTP. */
  readonly name?: string
}

export interface DefinedSubscription {
  readonly name: string
  readonly url: string
  readonly types: readonly WebhookEventType[]
  readonly taskPrefix: string
  readonly secret: string
}

/** A subscription and its pending deliveries. */
export interface SubscriptionStatus {
  readonly subscription: StoredSubscription
  readonly backlog: DeliveryBacklog
  /** Set if the receiver failed too often or requested a pause: nothing is sent before this time. */
  readonly circuitOpenUntil: number | null
}

export interface DeliveryBacklog {
  /** Counted up to `MAX_COUNTED_DELIVERIES`. */
  readonly pending: number
  /** When the oldest pending event happened. */
  readonly oldestAt: number | null
}

// Fields that are queried have columns; the rest is JSON.
export const subscriptionFields = { id: 'text', body: of<StoredSubscription>('json') } as const

interface SigningSecret {
  readonly secret: string
  /** Null: until it is replaced. */
  readonly until: number | null
}

/** An event for one subscription. */
export const deliveryFields = {
  subscription: 'text',
  /** Its number in the order of all events, the same for all subscriptions. */
  event: 'integer',
  taskId: 'text',
  at: 'integer',
  message: of<EventMessage>('json'),
  /** Null: pending, and not attempted yet. Most deliveries wait like this, so they store nothing for it. */
  progress: of<DeliveryProgress | null>('json?'),
} as const
export type StoredDelivery = RowOf<typeof deliveryFields>

export interface EventMessage {
  /** Globally unique, so that receivers can detect duplicates. */
  readonly id: string
  readonly type: WebhookEventType
  readonly generation: number
  /** Those of a task are a list, because many tasks may end at once. */
  readonly facts: LevelEventFacts | ParkedEventFacts | TaskEventTuple
}

export type EventFacts = TaskEventFacts | LevelEventFacts | ParkedEventFacts

/** The summary of a task that is done, stalled, cancelled or paused. */
interface TaskEventFacts {
  readonly of: 'task'
  readonly partitions: { readonly total: number; readonly done: number; readonly parked: number }
  readonly records: { readonly declared: number; readonly done: number }
  readonly reportedRecords: number
  /** The declared records of the partitions whose workers reported. */
  readonly reportedDeclared: number
  readonly mismatched: number
  readonly attempts: number
  readonly firstCallBackAt: number
  readonly endedAt: number
  /** Why the task paused itself; null if it did not. */
  readonly because: string | null
}

/** TaskEventFacts as rows and entries have them. */
export type TaskEventTuple = readonly [
  total: number,
  done: number,
  parked: number,
  declaredRecords: number,
  doneRecords: number,
  reportedRecords: number,
  reportedDeclared: number,
  mismatched: number,
  attempts: number,
  firstCallBackAt: number,
  endedAt: number,
  because?: string,
]

export function factsOf({ facts }: EventMessage): EventFacts {
  if ('of' in facts) return facts
  const [total, done, parked, declared, doneRecords, ...rest] = facts
  const [reportedRecords, reportedDeclared, mismatched, attempts, firstCallBackAt, endedAt, because = null] =
    rest
  return {
    of: 'task',
    partitions: { total, done, parked },
    records: { declared, done: doneRecords },
    reportedRecords,
    reportedDeclared,
    mismatched,
    attempts,
    firstCallBackAt,
    endedAt,
    because,
  }
}

interface LevelEventFacts {
  readonly of: 'level'
  readonly level: number
  readonly partitions: number
  readonly records: number
}

interface ParkedEventFacts {
  readonly of: 'partition'
  readonly level: number
  readonly index: number
  readonly spelling: string | null
  readonly recordCount: number
  readonly attempts: number
  readonly reason: string | null
}

export interface DeliveryProgress {
  readonly state: DeliveryState
  readonly attempts: number
  /** Not before this time, while pending. */
  readonly nextAt: number
  readonly attemptedAt: number | null
  readonly status: number | null
  readonly error: string | null
  /** How long the last attempt took. */
  readonly millis: number | null
}

export const notAttempted = (state: 'pending' | 'kept', nextAt: number): DeliveryProgress => ({
  state,
  attempts: 0,
  nextAt,
  attemptedAt: null,
  status: null,
  error: null,
  millis: null,
})

export const progressOf = ({ progress, at }: StoredDelivery): DeliveryProgress =>
  progress ?? notAttempted('pending', at)

/** The change of a delivery in an entry. Null deletes it. */
export interface DeliveryChange {
  readonly subscription: string
  readonly event: number
  readonly progress: DeliveryProgress | null
}

export interface OutboxChanges {
  readonly subscriptions: Map<string, StoredSubscription | null>
  readonly deliveries: StoredDelivery[]
  readonly changes: DeliveryChange[]
}

export interface OutboxEntry {
  /** Null deletes it. */
  readonly subscriptions: readonly (readonly [id: string, row: StoredSubscription | null])[]
  readonly deliveries: readonly StoredDelivery[]
  readonly changes: readonly DeliveryChange[]
}

/** The outbox part of a flush: deliveries are inserted, then changed. */
export interface OutboxRowChanges {
  readonly subscriptions: Map<string, StoredSubscription | null>
  readonly deliveries: StoredDelivery[]
  /** By `deliveryKey`. */
  readonly changes: Map<string, DeliveryChange>
}

export const deliveryKey = ({ subscription, event }: { subscription: string; event: number }): string =>
  `${event}:${subscription}`

export const noOutboxRowChanges = (): OutboxRowChanges => ({
  subscriptions: new Map(),
  deliveries: [],
  changes: new Map(),
})

export function addToOutboxRowChanges(rowChanges: OutboxRowChanges, entry: OutboxEntry): void {
  for (const [id, row] of entry.subscriptions) rowChanges.subscriptions.set(id, row)
  for (const delivery of entry.deliveries) rowChanges.deliveries.push(delivery)
  for (const change of entry.changes) rowChanges.changes.set(deliveryKey(change), change)
}

export const outboxRowsOf = ({ deliveries, changes }: OutboxEntry): number =>
  deliveries.length + changes.length

export interface DeliveryQuery {
  readonly subscription: string
  /** Only pending deliveries. */
  readonly pending: boolean
  /** Only of this task, up to this event, and only if `pending`. Deliveries in between are read, too. */
  readonly ofTask: TaskDeliveries | null
  /** Only events with a larger number. If `newestFirst`: only events with a smaller number. */
  readonly after: number
  readonly newestFirst: boolean
  readonly limit: number
}

export interface TaskDeliveries {
  readonly taskId: string
  readonly upTo: number
}

/** The storage interface of the outbox. Rows are flushed before they are read. */
export interface OutboxDisk {
  subscriptions(): Promise<StoredSubscription[]>
  /** Ordered by event. */
  deliveries(query: DeliveryQuery): Promise<StoredDelivery[]>
  /** The pending deliveries of each of these subscriptions, in the same order. */
  backlogs(subscriptions: readonly string[]): Promise<DeliveryBacklog[]>
}

/** Requests of operators and readers to the outbox. */
export type SubscriptionRequest = SubscriptionAsk & { readonly by?: Requester | undefined }

type SubscriptionAsk =
  | { readonly ask: 'list' }
  | {
      readonly ask: 'create'
      readonly url: string | null
      readonly types: readonly WebhookEventType[]
      readonly taskPrefix: string
      readonly secret: string
    }
  | { readonly ask: 'remove'; readonly id: string; readonly mayBeOfFile: boolean }
  | { readonly ask: 'enable'; readonly id: string }
  | {
      readonly ask: 'rotate'
      readonly id: string
      readonly secret: string
      /** How long the previous secret continues to sign. */
      readonly overlapMillis: number
      readonly mayBeOfFile: boolean
    }
  | {
      readonly ask: 'deliveries'
      readonly id: string
      readonly after: number
      readonly newestFirst: boolean
      readonly limit: number
    }
  | { readonly ask: 'redeliver'; readonly id: string; readonly event: number }

export type SubscriptionResult =
  | { readonly kind: 'subscriptions'; readonly subscriptions: readonly SubscriptionStatus[] }
  | { readonly kind: 'subscription'; readonly subscription: StoredSubscription }
  | {
      readonly kind: 'deliveries'
      readonly subscription: StoredSubscription
      readonly deliveries: readonly StoredDelivery[]
    }
  | { readonly kind: 'delivery'; readonly delivery: StoredDelivery }
  | { readonly kind: 'subscription_unknown' }
  | { readonly kind: 'delivery_unknown' }
  | { readonly kind: 'subscription_has_no_url' }
  | { readonly kind: 'too_many_subscriptions' }
  /** It is defined in the subscriptions file and must be changed there. */
  | { readonly kind: 'subscription_in_file'; readonly name: string }

export type DeliveryRequest =
  | { readonly ask: 'targets'; readonly openCircuits: ReadonlyMap<string, number> }
  | (Pick<DeliveryQuery, 'subscription' | 'ofTask' | 'after' | 'limit'> & { readonly ask: 'pending' })
  | {
      readonly ask: 'record'
      readonly changes: readonly DeliveryChange[]
      readonly disable: readonly { readonly id: string; readonly reason: string }[]
    }
  /** Replaces all subscriptions of the subscriptions file with these. */
  | { readonly ask: 'define'; readonly subscriptions: readonly DefinedSubscription[] }

export interface DeliveryAnswer {
  readonly subscriptions: readonly StoredSubscription[]
  readonly nextEvent: number
  /** By subscription, incremented whenever it or one of its deliveries is changed by an operator. */
  readonly revisions: ReadonlyMap<string, number>
  readonly deliveries: readonly StoredDelivery[]
  readonly now: number
}
