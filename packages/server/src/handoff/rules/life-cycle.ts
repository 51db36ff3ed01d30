import { type PartitionState, partitionStates } from '@baton/protocol'

/**
 * The life of a partition: every state, everything that can happen to it, and where that leads.
 *
 * The table is exhaustive by type: a new state or event does not compile until each of its cells is
 * decided. Stores look transitions up here; none of them knows a rule of its own.
 */

export { type PartitionState, partitionStates }

export const partitionEvents = [
  /** A pull hands the partition out under a lease. */
  'lease',
  /** A pull in at-most-once delivery: handing out is settling. */
  'deliver',
  /** Its lane closed: out of the reach of pulls, still waiting. */
  'hold',
  /** Its lane is open and has room in its window: into the reach of pulls. */
  'admit',
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

/** `null` marks what cannot happen; a store that meets it has a defect and must not commit. */
export const transitions = {
  ready: {
    lease: 'leased',
    deliver: 'done',
    hold: 'held',
    admit: null,
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
  held: {
    lease: null,
    deliver: null,
    hold: null,
    admit: 'ready',
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
    hold: null,
    admit: null,
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
    hold: null,
    admit: null,
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
    hold: null,
    admit: null,
    finish: 'done',
    return: null,
    postpone: null,
    park: 'parked',
    wake: null,
    renew: 'leased',
    retry: 'held',
    rerun: null,
    cancel: 'cancelled',
  },
  done: {
    lease: null,
    deliver: null,
    hold: null,
    admit: null,
    finish: null,
    return: null,
    postpone: null,
    park: null,
    wake: null,
    renew: null,
    retry: null,
    rerun: 'held',
    cancel: null,
  },
  cancelled: {
    lease: null,
    deliver: null,
    hold: null,
    admit: null,
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
} as const satisfies Record<PartitionState, Record<PartitionEvent, PartitionState | null>>

export function next(state: PartitionState, event: PartitionEvent): PartitionState {
  const to = transitions[state][event]
  if (to === null) throw new ImpossibleTransition(state, event)
  return to
}

export class ImpossibleTransition extends Error {
  override name = 'ImpossibleTransition'
  constructor(state: PartitionState, event: PartitionEvent) {
    super(`a ${state} partition cannot ${event}; the store's rows and the life cycle disagree`)
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
