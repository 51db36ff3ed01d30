/** The events that a subscription can receive. */
export const webhookEventTypes = [
  'task.done',
  'task.stalled',
  'task.cancelled',
  'task.paused',
  'level.done',
  'partition.parked',
] as const
export type WebhookEventType = (typeof webhookEventTypes)[number]

export const subscriptionStates = ['active', 'disabled'] as const
export type SubscriptionState = (typeof subscriptionStates)[number]

/** `kept`: the subscription has no URL, and its events are stored until they are read. */
export const deliveryStates = ['pending', 'delivered', 'failed', 'kept'] as const
export type DeliveryState = (typeof deliveryStates)[number]

/** `revoked`: an operator took the lease away. */
export const attemptOutcomes = ['done', 'failed', 'released', 'expired', 'revoked', 'delivered'] as const
export type AttemptOutcome = (typeof attemptOutcomes)[number]

export const failureOutcomes = ['failed', 'expired', 'revoked'] as const
export type FailureOutcome = (typeof failureOutcomes)[number]

/** The main factor in a task's remaining time. */
export const etaReasons = ['pace', 'lease', 'back-off'] as const
export type EtaReason = (typeof etaReasons)[number]

/** `stalled`: the task cannot progress until an operator handles its parked partitions. */
export const taskStates = ['open', 'paused', 'done', 'stalled', 'cancelled'] as const
export type TaskState = (typeof taskStates)[number]

/** States of tasks with work left. Tasks whose partitions workers could pull come first. */
export const unfinishedTaskStates = ['open', 'stalled', 'paused'] as const satisfies readonly TaskState[]
export type UnfinishedTaskState = (typeof unfinishedTaskStates)[number]

export function isUnfinishedState(state: TaskState): state is UnfinishedTaskState {
  return unfinishedTaskStates.some((one) => one === state)
}

export const partitionStates = ['ready', 'held', 'leased', 'delayed', 'parked', 'done', 'cancelled'] as const
export type PartitionState = (typeof partitionStates)[number]

/** How a list of partitions is ordered, if not by level and index. `unfinished`: finished ones last. */
export const partitionOrders = ['unfinished'] as const
export type PartitionOrder = (typeof partitionOrders)[number]

export const instanceRoles = ['service', 'worker', 'producer'] as const
export type InstanceRole = (typeof instanceRoles)[number]

/**
 * `silent`: four fifths of a lease have passed without a request of its holder. `lost`: a lease of the instance
 * expired while it was silent, and it sent no request since.
 */
export const instanceStates = ['up', 'silent', 'lost', 'draining', 'down'] as const
export type InstanceState = (typeof instanceStates)[number]

/** How a list of instances is ordered. */
export const instanceSorts = ['name', 'lastSeenAt', 'leases'] as const
export type InstanceSort = (typeof instanceSorts)[number]

export const outcomes = ['done', 'failed', 'released'] as const
export type Outcome = (typeof outcomes)[number]

/**
 * The names of the events on the stream. Events of one task are limited to a few per second, however fast it
 * progresses.
 */
export const eventNames = ['task', 'parked', 'instance', 'reset'] as const
export type EventName = (typeof eventNames)[number]

/**
 * How the number of workers was determined: from the measured pace; without one, because none was measured
 * yet; or from an empty backlog.
 */
export const scaleReasons = ['pace', 'no-pace', 'no-backlog'] as const
export type ScaleReason = (typeof scaleReasons)[number]

/**
 * Why more workers would not help: no more partitions can be handed out, or a task reached its `maxLeases`.
 */
export const scaleLimits = ['partitions', 'max-leases'] as const
export type ScaleLimit = (typeof scaleLimits)[number]

/** The length of one point of a task's history. */
export const throughputSteps = ['minute', 'hour'] as const
export type ThroughputStep = (typeof throughputSteps)[number]

export const STEP_MILLIS: Readonly<Record<ThroughputStep, number>> = { minute: 60_000, hour: 3_600_000 }

/**
 * Formats a share as a percentage, the same way in every display: never 100 % before it is complete, never 0
 * % once it is above zero. Undefined if the whole is zero.
 */
export function percentOf(part: number, whole: number): string | undefined {
  if (whole === 0) return undefined
  const share = (part / whole) * 100
  if (share > 0 && share < 1) return '<1%'
  if (share < 100 && share > 99) return '99%'
  return `${Math.round(share)}%`
}
