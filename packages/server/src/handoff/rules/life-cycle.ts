import { type PartitionState, partitionStates } from '@baton/protocol'

// The life cycle of a partition: all states, all events and the transitions that follow.

export { type PartitionState, partitionStates }

/** `held` is only in views: a waiting partition is ready, and its task may hold it. */
export type StoredState = Exclude<PartitionState, 'held'>

interface Transition {
  readonly from: readonly StoredState[]
  readonly to: StoredState
}

const unsettled: readonly StoredState[] = ['ready', 'leased', 'delayed', 'parked']

/** Where each event leads from which states. Nothing else is possible. */
export const transitions = {
  /** A pull hands the partition out under a lease. */
  lease: { from: ['ready'], to: 'leased' },
  /** A pull in at-most-once delivery: handing out settles the partition. */
  deliver: { from: ['ready'], to: 'done' },
  /** Settled as done, in time or late. */
  finish: { from: unsettled, to: 'done' },
  /** A release, a pull whose client was gone before the answer, or a lease that an operator revoked. */
  return: { from: ['leased'], to: 'ready' },
  /** The attempt failed or expired, and attempts are left: the back-off starts. */
  postpone: { from: ['leased'], to: 'delayed' },
  /** No attempt is left after a failure, an expiry or a revocation, or the worker reported the failure as final. */
  park: { from: unsettled, to: 'parked' },
  /** The back-off ended. */
  wake: { from: ['delayed'], to: 'ready' },
  /** A renewal, also of an expired lease if the partition was not leased again. */
  renew: { from: unsettled, to: 'leased' },
  /** An operator retries a parked partition. */
  retry: { from: ['parked'], to: 'ready' },
  /** An operator reruns a done partition. */
  rerun: { from: ['done'], to: 'ready' },
  /** Its task was cancelled. */
  cancel: { from: unsettled, to: 'cancelled' },
} as const satisfies Record<string, Transition>

export type PartitionEvent = keyof typeof transitions

/** An impossible transition indicates a bug, and nothing is committed. */
export function next(state: StoredState, event: PartitionEvent): StoredState {
  const { from, to }: Transition = transitions[event]
  if (!from.includes(state)) throw new ImpossibleTransition(state, event)
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
