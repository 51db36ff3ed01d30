/** What a subscription can be told of. */
export const webhookEventTypes = [
  'task.done',
  'task.stalled',
  'task.cancelled',
  'level.done',
  'partition.parked',
] as const
export type WebhookEventType = (typeof webhookEventTypes)[number]

export const subscriptionStates = ['active', 'disabled'] as const
export type SubscriptionState = (typeof subscriptionStates)[number]

/** `kept`: the subscription has no URL; its events wait to be read. */
export const deliveryStates = ['pending', 'delivered', 'failed', 'kept'] as const
export type DeliveryState = (typeof deliveryStates)[number]

export const attemptOutcomes = ['done', 'failed', 'released', 'expired', 'delivered'] as const
export type AttemptOutcome = (typeof attemptOutcomes)[number]

export const failureOutcomes = ['failed', 'expired'] as const
export type FailureOutcome = (typeof failureOutcomes)[number]

/** What the time left of a task depends on most. */
export const etaReasons = ['pace', 'lease', 'back-off'] as const
export type EtaReason = (typeof etaReasons)[number]

/** Stalled: nothing can move until an operator sees to what is parked. */
export const taskStates = ['open', 'paused', 'done', 'stalled', 'cancelled'] as const
export type TaskState = (typeof taskStates)[number]

/** Of tasks that have something left to do; those first whose partitions workers could take. */
export const unfinishedTaskStates = ['open', 'stalled', 'paused'] as const satisfies readonly TaskState[]
export type UnfinishedTaskState = (typeof unfinishedTaskStates)[number]

export function isUnfinishedState(state: TaskState): state is UnfinishedTaskState {
  return unfinishedTaskStates.some((one) => one === state)
}

export const partitionStates = ['ready', 'held', 'leased', 'delayed', 'parked', 'done', 'cancelled'] as const
export type PartitionState = (typeof partitionStates)[number]

export const instanceRoles = ['service', 'worker', 'producer'] as const
export type InstanceRole = (typeof instanceRoles)[number]

/** Silent and lost: it holds leases and has not been heard from, for half of their length and for most of it. */
export const instanceStates = ['up', 'silent', 'lost', 'draining', 'down'] as const
export type InstanceState = (typeof instanceStates)[number]

export const outcomes = ['done', 'failed', 'released'] as const
export type Outcome = (typeof outcomes)[number]

/** The names of the events on the stream; a task is told of at most a few times a second, however fast it moves. */
export const eventNames = ['task', 'parked', 'instance', 'reset'] as const
export type EventName = (typeof eventNames)[number]

/**
 * How much of a whole is there, in the same words wherever people look: never 100 % before it is all, never 0 % once it is
 * something. Undefined where there is nothing to have a part of.
 */
export function percentOf(part: number, whole: number): string | undefined {
  if (whole === 0) return undefined
  const share = (part / whole) * 100
  if (share > 0 && share < 1) return '<1%'
  if (share < 100 && share > 99) return '99%'
  return `${Math.round(share)}%`
}
