import { type AttemptOutcome, MAX_LISTED_ATTEMPTS } from '@baton/protocol'
import { cut } from './truncated.ts'

// The unsuccessful attempts. A partition done at its first has none: its row says by whom and when.

export interface EndedAttempt {
  readonly attempt: number
  readonly holder: string | null
  readonly startedAt: number
  readonly endedAt: number
  readonly outcome: AttemptOutcome
  readonly reason: string | null
  readonly records: number | null
}

/** The maximum length of a reason in the history. The last reason is also stored separately, in full. */
const REASON_KEPT = 512

/** How a change of a lease affects the history of its partition. */
export type HistoryStep =
  /** The attempt ended. */
  | 'append'
  /** The attempt had expired, and its worker now reports why it failed. */
  | 'amend'
  /** The attempt had expired, but was renewed or succeeded. */
  | 'withdraw'
  | 'keep'

type History = readonly EndedAttempt[] | null

/** The fields of a partition that describe its latest attempt. */
interface Attempted {
  readonly attempts: number
  readonly holder: string | null
  readonly leasedAt: number | null
  readonly settledAt: number | null
  readonly reportedRecords: number | null
  readonly history: History
}

/** Appends the attempt that ends now, which `attempts` does not include yet. */
export function withEnded(
  partition: Attempted,
  outcome: EndedAttempt['outcome'],
  reason: string | null,
  now: number,
): readonly EndedAttempt[] {
  return appended(partition.history, {
    attempt: partition.attempts + 1,
    holder: partition.holder,
    startedAt: partition.leasedAt ?? now,
    endedAt: now,
    outcome,
    reason: kept(reason),
    records: null,
  })
}

/** A done partition runs again: its row is about to be reset. */
export function withFinished(partition: Attempted, outcome: 'done' | 'delivered'): readonly EndedAttempt[] {
  return appended(partition.history, finishedAttempt(partition, outcome))
}

export function finishedAttempt(
  { attempts, holder, leasedAt, settledAt, reportedRecords }: Omit<Attempted, 'history'>,
  outcome: 'done' | 'delivered',
): EndedAttempt {
  const endedAt = settledAt ?? leasedAt ?? 0
  return {
    attempt: Math.max(1, attempts),
    holder,
    startedAt: leasedAt ?? endedAt,
    endedAt,
    outcome,
    reason: null,
    records: reportedRecords,
  }
}

/** Marks the last attempt, which had expired or was revoked, as failed after its worker reported that. */
export function withAmended(history: History, reason: string | null): History {
  const last = history?.at(-1)
  if (history === null || (last?.outcome !== 'expired' && last?.outcome !== 'revoked')) return history
  return history.with(-1, { ...last, outcome: 'failed', reason: kept(reason) })
}

/** Removes the last attempt, which had expired or was revoked, but was not over. */
export function withoutExpired(history: History): History {
  const last = history?.at(-1)?.outcome
  if (history === null || (last !== 'expired' && last !== 'revoked')) return history
  return history.length === 1 ? null : history.slice(0, -1)
}

/** No more are kept than an answer lists. The oldest are dropped first. */
function appended(history: History, attempt: EndedAttempt): readonly EndedAttempt[] {
  return [...(history ?? []), attempt].slice(-MAX_LISTED_ATTEMPTS)
}

const kept = (reason: string | null): string | null => (reason === null ? null : cut(reason, REASON_KEPT))
