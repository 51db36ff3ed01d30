import { isCheckpointTooLong, type RefusalCode } from '@baton/protocol'
import type { HistoryStep } from './attempts.ts'
import { next, type PartitionEvent, type StoredState } from './life-cycle.ts'
import { backoffMillis, type Policy, releaseBackoffMillis } from './policy.ts'

/** How the last lease of a partition ended; `null` while it is active. */
export type LeaseOutcome = 'done' | 'failed' | 'released' | 'expired' | 'revoked' | 'delivered'

export type { RefusalCode }

export interface LeaseState {
  readonly state: StoredState
  readonly leaseNumber: number
  readonly secret: string
  readonly outcome: LeaseOutcome | null
  /** Attempts that have ended. An active lease is attempt `attempts + 1`. */
  readonly attempts: number
  /** How often in a row the partition was released. */
  readonly releases: number
  readonly taskCancelled: boolean
  /** Whether its task or its compute table has as many leases as it may have. */
  readonly atLimit: boolean
}

/** What a lease id says about the lease. */
type LeaseCredentials = Pick<LeaseState, 'leaseNumber' | 'secret'>

/** How the worker says that its lease ended. */
export interface ReportedOutcome {
  readonly outcome: 'done' | 'failed' | 'released'
  readonly reason: string | null
  readonly retryAfterMillis: number | null
  readonly final: boolean
  readonly records: number | null
  readonly checkpoint?: GivenCheckpoint
}

/** Null clears the checkpoint of the partition; undefined keeps it. */
export type GivenCheckpoint = string | null | undefined

/** The decided change of the partition. */
export interface Change {
  /** `null`: the state of the partition stays, and only what is stored about the lease changes. */
  readonly event: PartitionEvent | null
  readonly to: StoredState
  readonly outcome: LeaseOutcome | null
  readonly attempts: number
  readonly releases: number
  /** Attempts wasted by this change; -1 if a renewal withdraws an expiry. */
  readonly wasted: number
  readonly delayMillis: number
  /** `undefined` keeps the recorded reason. */
  readonly reason?: string | null
  readonly records?: number | null
  readonly history: HistoryStep
}

type Verdict = { readonly refused: RefusalCode } | { readonly refused: null; readonly change: Change | null }

const refuse = (code: RefusalCode): Verdict => ({ refused: code })
const accept = (change: Change | null): Verdict => ({ refused: null, change })

export function judgeSettlement(
  leaseState: LeaseState | undefined,
  lease: LeaseCredentials,
  reported: ReportedOutcome,
  policy: Policy,
  random: number,
): Verdict {
  const refusal = refusalOfLease(leaseState, lease)
  if (refusal !== null || leaseState === undefined) return refuse(refusal ?? 'lease_unknown')
  if (isSettled(leaseState.outcome)) {
    return leaseState.outcome === reported.outcome ? accept(null) : refuse('lease_settled')
  }
  if (leaseState.taskCancelled) return refuse('task_cancelled')
  if (reported.outcome !== 'done' && isTooLong(reported.checkpoint)) return refuse('checkpoint_too_long')
  switch (reported.outcome) {
    case 'done':
      return accept(finish(leaseState, reported))
    case 'failed':
      return accept(
        isLate(leaseState) ? failLate(leaseState, reported) : fail(leaseState, reported, policy, random),
      )
    case 'released':
      return accept(isLate(leaseState) ? null : release(leaseState, reported, policy, random))
  }
}

export function judgeRenewal(
  leaseState: LeaseState | undefined,
  lease: LeaseCredentials,
  checkpoint?: GivenCheckpoint,
): Verdict {
  const refusal = refusalOfLease(leaseState, lease)
  if (refusal !== null || leaseState === undefined) return refuse(refusal ?? 'lease_unknown')
  if (isSettled(leaseState.outcome)) return refuse('lease_settled')
  if (leaseState.taskCancelled) return refuse('task_cancelled')
  if (leaseState.outcome === 'revoked') return refuse('lease_lost')
  const revived = leaseState.outcome === 'expired'
  if (revived && leaseState.atLimit) return refuse('limit_reached')
  if (isTooLong(checkpoint)) return refuse('checkpoint_too_long')
  return accept({
    ...changeBy(leaseState, 'renew'),
    outcome: null,
    attempts: revived ? Math.max(leaseState.attempts - 1, 0) : leaseState.attempts,
    wasted: revived ? -1 : 0,
    history: revived ? 'withdraw' : 'keep',
  })
}

const isTooLong = (checkpoint: GivenCheckpoint): boolean =>
  typeof checkpoint === 'string' && isCheckpointTooLong(checkpoint)

/** An expired lease uses up an attempt, like a failure. */
export function judgeExpiry(leaseState: LeaseState, policy: Policy, random: number): Change {
  const attempts = leaseState.attempts + 1
  const event = attempts >= policy.maxAttempts ? 'park' : 'postpone'
  return {
    ...changeBy(leaseState, event),
    outcome: 'expired',
    attempts,
    releases: 0,
    wasted: 1,
    delayMillis: event === 'park' ? 0 : backoffMillis(policy, attempts, random),
    reason: `the lease of attempt ${attempts} expired before it was settled`,
    history: 'append',
  }
}

/** Like an expiry, but without back-off, and the lease cannot be renewed. */
export function judgeRevocation(leaseState: LeaseState, policy: Policy, from: string | null): Change {
  const attempts = leaseState.attempts + 1
  return {
    ...changeBy(leaseState, attempts >= policy.maxAttempts ? 'park' : 'return'),
    outcome: 'revoked',
    attempts,
    releases: 0,
    wasted: 1,
    reason: `an operator revoked the lease of attempt ${attempts}${from === null ? '' : ` from ${from}`}`,
    history: 'append',
  }
}

/** No attempt is wasted, and the partition does not become ready. */
export function judgeCancellation(leaseState: LeaseState): Change {
  return changeBy(leaseState, 'cancel')
}

/** The client of the pull disconnected before the answer: the lease ends as if it had never been granted. */
export function judgeUndo(leaseState: LeaseState | undefined, lease: LeaseCredentials): Change | null {
  if (
    refusalOfLease(leaseState, lease) !== null ||
    leaseState?.state !== 'leased' ||
    leaseState.taskCancelled
  )
    return null
  return { ...changeBy(leaseState, 'return'), outcome: 'released' }
}

function refusalOfLease(leaseState: LeaseState | undefined, lease: LeaseCredentials): RefusalCode | null {
  if (leaseState === undefined || lease.leaseNumber > leaseState.leaseNumber) return 'lease_unknown'
  if (lease.leaseNumber < leaseState.leaseNumber)
    return leaseState.taskCancelled ? 'task_cancelled' : 'lease_lost'
  return lease.secret === leaseState.secret ? null : 'lease_unknown'
}

function isSettled(outcome: LeaseOutcome | null): outcome is 'done' | 'failed' | 'released' | 'delivered' {
  return outcome !== null && outcome !== 'expired' && outcome !== 'revoked'
}

/** Whether the lease expired or was revoked, and the partition was not leased again. */
const isLate = ({ outcome }: LeaseState): boolean => outcome === 'expired' || outcome === 'revoked'

function changeBy(leaseState: LeaseState, event: PartitionEvent | null): Change {
  return {
    event,
    to: event === null ? leaseState.state : next(leaseState.state, event),
    outcome: leaseState.outcome,
    attempts: leaseState.attempts,
    releases: leaseState.releases,
    wasted: 0,
    delayMillis: 0,
    history: 'keep',
  }
}

function finish(leaseState: LeaseState, reported: ReportedOutcome): Change {
  // The successful attempt counts too, unless its expiry was counted already.
  const late = isLate(leaseState)
  const attempts = late ? Math.max(1, leaseState.attempts) : leaseState.attempts + 1
  return {
    ...changeBy(leaseState, 'finish'),
    outcome: 'done',
    attempts,
    releases: 0,
    records: reported.records,
    history: late ? 'withdraw' : 'keep',
  }
}

function fail(leaseState: LeaseState, reported: ReportedOutcome, policy: Policy, random: number): Change {
  const attempts = leaseState.attempts + 1
  const event = reported.final || attempts >= policy.maxAttempts ? 'park' : 'postpone'
  return {
    ...changeBy(leaseState, event),
    outcome: 'failed',
    attempts,
    releases: 0,
    wasted: 1,
    delayMillis: event === 'park' ? 0 : (askedDelay(reported) ?? backoffMillis(policy, attempts, random)),
    reason: reported.reason,
    history: 'append',
  }
}

/** Rounded up, so that the delay is never shorter than requested. */
function askedDelay({ retryAfterMillis }: ReportedOutcome): number | null {
  return retryAfterMillis === null ? null : Math.ceil(retryAfterMillis)
}

/** The expiry already used up the attempt. Only the reason and whether it is final are new. */
function failLate(leaseState: LeaseState, reported: ReportedOutcome): Change {
  const change = changeBy(leaseState, reported.final ? 'park' : null)
  return { ...change, outcome: 'failed', reason: reported.reason, history: 'amend' }
}

function release(leaseState: LeaseState, reported: ReportedOutcome, policy: Policy, random: number): Change {
  const releases = leaseState.releases + 1
  // What was released comes first in its lane, so a worker cannot shorten the back-off.
  const delayMillis = Math.max(askedDelay(reported) ?? 0, releaseBackoffMillis(policy, releases, random))
  return {
    ...changeBy(leaseState, delayMillis > 0 ? 'postpone' : 'return'),
    outcome: 'released',
    releases,
    delayMillis,
    history: 'append',
    ...(reported.reason === null ? {} : { reason: reported.reason }),
  }
}
