import { type PartitionState, partitionStates } from '@baton/protocol'

/**
 * The life cycle of a partition: all states, all events and the resulting transitions.
 *
 * The table is exhaustive by type: a new state or event does not compile until all its transitions are
 * defined. The engine looks transitions up here.
 */

export { type PartitionState, partitionStates }

/**
 * `held` exists only in views and is never stored: a waiting partition is ready, and its task determines
 * whether it may be handed out.
 */
export type StoredState = Exclude<PartitionState, 'held'>

export const partitionEvents = [
  /** A pull hands the partition out under a lease. */
  'lease',
  /** A pull in at-most-once delivery: handing out settles the partition. */
  'deliver',
  /** Settled as done, in time or late. */
  'finish',
  /**
   * Returned early: a release, a pull whose client disconnected before the answer, or a lease that an operator
   * revoked.
   */
  'return',
  /** The attempt failed or expired, and attempts are left: the back-off starts. */
  'postpone',
  /** No attempt is left after a failure, an expiry or a revocation, or the worker reported the failure as final. */
  'park',
  /** The back-off ended. */
  'wake',
  /** A renewal, also of an expired lease if the partition was not leased again. */
  'renew',
  /** An operator retries a parked partition. */
  'retry',
  /** An operator reruns a done partition. */
  'rerun',
  /** Its task was cancelled. */
  'cancel',
] as const
export type PartitionEvent = (typeof partitionEvents)[number]

/** `null` marks an impossible transition. It indicates a bug, and nothing is committed. */
export const transitions = {
  ready: {
    lease: 'leased',
    deliver: 'done',
    finish: 'done',
    return: null,
    postpone: null,
    park: 'parked',
    wake: null,
    renew: 'leased',
    retry: null,
    rerun: null,
    cancel: 'cancelled',
  },
  leased: {
    lease: null,
    deliver: null,
    finish: 'done',
    return: 'ready',
    postpone: 'delayed',
    park: 'parked',
    wake: null,
    renew: 'leased',
    retry: null,
    rerun: null,
    cancel: 'cancelled',
  },
  delayed: {
    lease: null,
    deliver: null,
    finish: 'done',
    return: null,
    postpone: null,
    park: 'parked',
    wake: 'ready',
    renew: 'leased',
    retry: null,
    rerun: null,
    cancel: 'cancelled',
  },
  parked: {
    lease: null,
    deliver: null,
    finish: 'done',
    return: null,
    postpone: null,
    park: 'parked',
    wake: null,
    renew: 'leased',
    retry: 'ready',
    rerun: null,
    cancel: 'cancelled',
  },
  done: {
    lease: null,
    deliver: null,
    finish: null,
    return: null,
    postpone: null,
    park: null,
    wake: null,
    renew: null,
    retry: null,
    rerun: 'ready',
    cancel: null,
  },
  cancelled: {
    lease: null,
    deliver: null,
    finish: null,
    return: null,
    postpone: null,
    park: null,
    wake: null,
    renew: null,
    retry: null,
    rerun: null,
    cancel: null,
  },
} as const satisfies Record<StoredState, Record<PartitionEvent, StoredState | null>>

export function next(state: StoredState, event: PartitionEvent): StoredState {
  const to = transitions[state][event]
  if (to === null) throw new ImpossibleTransition(state, event)
  return to
}

export class ImpossibleTransition extends Error {
  override name = 'ImpossibleTransition'
  constructor(state: StoredState, event: PartitionEvent) {
    super(`a ${state} partition cannot ${event}; the stored state is inconsistent`)
  }
}

/** Work that a task still has to do. All other states are final. */
export const unfinishedStates = [
  'ready',
  'held',
  'leased',
  'delayed',
  'parked',
] as const satisfies PartitionState[]
