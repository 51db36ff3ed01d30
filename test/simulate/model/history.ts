import type { LeaseOutcome } from './partition.ts'

/** An attempt that ended, as the history of its partition must contain it. */
export interface ModelAttempt {
  readonly attempt: number
  readonly holder: string | null
  readonly startedAt: number
  readonly endedAt: number
  readonly outcome: LeaseOutcome
  readonly reason: string | null
  readonly records: number | null
}

/** What a model records about the attempts of a partition. */
export interface Attempted {
  attempts: number
  holder: string | null
  leasedAt: number
  settledAt: number
  /** The number of records that the worker reported when it settled the partition as done. */
  reported: number | null
  /** The last attempts, oldest first, without the current one and without the one that ended as done. */
  history: readonly ModelAttempt[]
}

/** The history of a partition contains at most this many attempts. */
const MOST = 10

export const notAttempted = (): Omit<Attempted, 'attempts'> => ({
  holder: null,
  leasedAt: 0,
  settledAt: 0,
  reported: null,
  history: [],
})

/** The current attempt ends. To be called before it is counted. */
export function recordEnd(
  partition: Attempted,
  outcome: 'failed' | 'released',
  reason: string | null,
  now: number,
): void {
  const { attempts, holder, leasedAt: startedAt } = partition
  add(partition, { attempt: attempts + 1, holder, startedAt, endedAt: now, outcome, reason, records: null })
}

export function recordExpiry(partition: Attempted, now: number): void {
  const { attempts, holder, leasedAt: startedAt } = partition
  const attempt = attempts + 1
  const reason = `the lease of attempt ${attempt} expired before it was settled`
  add(partition, { attempt, holder, startedAt, endedAt: now, outcome: 'expired', reason, records: null })
}

export function recordRevocation(partition: Attempted, now: number): void {
  const { attempts, holder, leasedAt: startedAt } = partition
  const attempt = attempts + 1
  const reason = `an operator revoked the lease of attempt ${attempt}${holder === null ? '' : ` from ${holder}`}`
  add(partition, { attempt, holder, startedAt, endedAt: now, outcome: 'revoked', reason, records: null })
}

/** A done partition is rerun: the attempt that ended as done becomes a part of the history. */
export function recordFinished(partition: Attempted): void {
  const { attempts, holder, leasedAt: startedAt, settledAt: endedAt, reported: records } = partition
  add(partition, { attempt: attempts, holder, startedAt, endedAt, outcome: 'done', reason: null, records })
}

/** The last attempt is recorded as expired, but its worker renewed the lease or settled it as done. */
export function withdrawExpiry(partition: Attempted): void {
  expired(partition)
  partition.history = partition.history.slice(0, -1)
}

/** The last attempt is recorded as expired, and its worker reports why it failed. */
export function amendExpiry(partition: Attempted, reason: string | null): void {
  const last = expired(partition)
  partition.history = [...partition.history.slice(0, -1), { ...last, outcome: 'failed', reason }]
}

/** Whether the history that a store has for a partition is that of the model. */
export function isHistory({ history }: Attempted, stored: readonly object[] | null | undefined): boolean {
  const attempts = (stored ?? []) as readonly ModelAttempt[]
  if (attempts.length !== history.length) return false
  return history.every((attempt, at) => isSameAttempt(attempt, attempts[at] as ModelAttempt))
}

const isSameAttempt = (a: ModelAttempt, b: ModelAttempt): boolean =>
  a.attempt === b.attempt &&
  a.holder === b.holder &&
  a.startedAt === b.startedAt &&
  a.endedAt === b.endedAt &&
  a.outcome === b.outcome &&
  a.reason === b.reason &&
  a.records === b.records

function expired({ history }: Attempted): ModelAttempt {
  const last = history.at(-1)
  if (last?.outcome !== 'expired' && last?.outcome !== 'revoked')
    throw new Error('the last attempt of the model has not expired')
  return last
}

function add(partition: Attempted, attempt: ModelAttempt): void {
  partition.history = [...partition.history, attempt].slice(-MOST)
}
