import { type PartitionState, partitionStates } from '@baton/protocol'

/**
 * The life of a partition: every state, everything that can happen to it, and where that leads.
 *
 * The table is exhaustive by type: a new state or event does not compile until each of its cells is
 * decided. The engine looks transitions up here.
 */

export { type PartitionState, partitionStates }

/** `held` is shown and never stored: a waiting partition is ready, and its task says whether it may be handed out. */
export type StoredState = Exclude<PartitionState, 'held'>

export const partitionEvents = [
  /** A pull hands the partition out under a lease. */
  'lease',
  /** A pull in at-most-once delivery: handing out is settling. */
  'deliver',
  /** Settled as done, in time or late. */
  'finish',
  /** Given back early: a release, or a pull whose client was gone before the answer. */
  'return',
  /** The attempt failed or expired and attempts are left: wait for the back-off. */
  'postpone',
  /** No attempt is left, or the worker said that none will help. */
  'park',
  /** The back-off ended. */
  'wake',
  /** A renewal, also of a lease that expired and was not followed by another. */
  'renew',
  /** An operator gives a parked partition another chance. */
  'retry',
  /** An operator asks for a finished partition to be done again. */
  'rerun',
  /** Its task was cancelled. */
  'cancel',
] as const
export type PartitionEvent = (typeof partitionEvents)[number]

/** `null` marks what cannot happen; where it is met there is a defect, and nothing is committed. */
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
    super(`a ${state} partition cannot ${event}; what is stored and the life cycle disagree`)
  }
}

/** Work that a task still has to get through; everything else is finished for good. */
export const unfinishedStates = [
  'ready',
  'held',
  'leased',
  'delayed',
  'parked',
] as const satisfies PartitionState[]
