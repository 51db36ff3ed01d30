import { type AttemptOutcome, MAX_LISTED_ATTEMPTS } from '@baton/protocol'

// The history of unsuccessful attempts. A partition that is done at its first attempt has none: its row
// contains who finished it and when.

export interface EndedAttempt {
  readonly attempt: number
  readonly holder: string | null
  readonly startedAt: number
  readonly endedAt: number
  readonly outcome: AttemptOutcome
  readonly reason: string | null
  /** The number of records that the worker reported. */
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

/**
 * Appends the successful attempt of a done partition that runs again, because its row is about to be reset.
 */
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

export function cut(text: string, length: number): string {
  return text.length <= length ? text : `${truncated(text, length - 1)}…`
}

/** Does not split a surrogate pair: half a character cannot be stored. */
export function truncated(text: string, length: number): string {
  if (text.length <= length) return text
  return text.slice(0, isHighSurrogate(text.charCodeAt(length - 1)) ? length - 1 : length)
}

const isHighSurrogate = (unit: number): boolean => unit >= 0xd800 && unit <= 0xdbff

/**
 * A sparse histogram of attempt durations, as a list of (bucket, count) pairs. There are two buckets per
 * doubling, so that a quantile is accurate within a fifth.
 */
export type Durations = number[]

const PER_DOUBLING = 2

const bucketOf = (millis: number): number =>
  millis < 1 ? 0 : Math.floor(PER_DOUBLING * Math.log2(millis)) + 1

/** The geometric middle of a bucket. */
const lengthOf = (bucket: number): number => (bucket === 0 ? 0.5 : 2 ** ((bucket - 0.5) / PER_DOUBLING))

/** Updates the list in place. */
export function countDuration(durations: Durations, millis: number): void {
  const bucket = bucketOf(millis)
  let at = 0
  while (at < durations.length && (durations[at] as number) < bucket) at += 2
  if (durations[at] === bucket) durations[at + 1] = (durations[at + 1] as number) + 1
  else durations.splice(at, 0, bucket, 1)
}

export function countOf(durations: readonly number[]): number {
  let count = 0
  for (let at = 1; at < durations.length; at += 2) count += durations[at] as number
  return count
}

/** The approximate sum of all durations. */
export function sumOf(durations: readonly number[]): number {
  let sum = 0
  for (let at = 0; at < durations.length; at += 2)
    sum += lengthOf(durations[at] as number) * (durations[at + 1] as number)
  return sum
}

/** In milliseconds; null if nothing was counted. */
export function quantileOf(durations: readonly number[], share: number): number | null {
  let left = countOf(durations) * share
  for (let at = 0; at < durations.length; at += 2) {
    left -= durations[at + 1] as number
    if (left <= 0) return lengthOf(durations[at] as number)
  }
  return null
}

export function longestOf(durations: readonly number[]): number {
  const bucket = durations.at(-2)
  return bucket === undefined ? 0 : lengthOf(bucket)
}
