import {
  type AttemptOutcome,
  type FailureOutcome,
  MAX_LISTED_ATTEMPTS,
  MAX_LISTED_FAILURES,
} from '@baton/protocol'

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

/** Attempts that failed or expired, by reason. */
export interface FailureGroups {
  readonly groups: readonly FailureGroup[]
  /** Attempts whose reason is not listed. */
  readonly others: number
}

interface FailureGroup {
  readonly outcome: FailureOutcome
  /** The first line of the reported reason, or null if there was none. */
  readonly reason: string | null
  readonly count: number
  readonly firstAt: number
  readonly lastAt: number
}

/** The maximum length of a reason in the history. The last reason is also stored separately, in full. */
const REASON_KEPT = 512

/** Reasons are grouped by their first line, up to this length. */
const GROUP_REASON_KEPT = 200

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
    reason: cut(reason, REASON_KEPT),
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
  return history.with(-1, { ...last, outcome: 'failed', reason: cut(reason, REASON_KEPT) })
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

function cut(reason: string | null, length: number): string | null {
  if (reason === null || reason.length <= length) return reason
  return `${truncated(reason, length - 1)}…`
}

/** Does not split a surrogate pair: half a character cannot be stored. */
export function truncated(text: string, length: number): string {
  if (text.length <= length) return text
  return text.slice(0, isHighSurrogate(text.charCodeAt(length - 1)) ? length - 1 : length)
}

const isHighSurrogate = (unit: number): boolean => unit >= 0xd800 && unit <= 0xdbff

const EXPIRED = 'the lease expired before it was settled'
const REVOKED = 'an operator revoked the lease'

/**
 * Counts an attempt that failed or expired. If there are more reasons than an answer lists, the rarest is
 * added to `others`.
 */
export function countFailure(
  failures: FailureGroups | null,
  outcome: FailureGroup['outcome'],
  reason: string | null,
  now: number,
): FailureGroups {
  const { groups, others } = failures ?? { groups: [], others: 0 }
  const name = groupReason(outcome, reason)
  const at = groups.findIndex((group) => group.outcome === outcome && group.reason === name)
  const known = groups[at]
  if (known !== undefined)
    return { groups: groups.with(at, { ...known, count: known.count + 1, lastAt: now }), others }
  const added = { outcome, reason: name, count: 1, firstAt: now, lastAt: now }
  if (groups.length < MAX_LISTED_FAILURES) return { groups: [...groups, added], others }
  const rarest = groups.reduce((a, b) =>
    b.count < a.count || (b.count === a.count && b.lastAt < a.lastAt) ? b : a,
  )
  return { groups: [...groups.filter((group) => group !== rarest), added], others: others + rarest.count }
}

/** Takes back a counted expiry or revocation. */
export function uncountEnd(
  failures: FailureGroups | null,
  ended: 'expired' | 'revoked',
): FailureGroups | null {
  if (failures === null) return null
  const { groups, others } = failures
  const at = groups.findIndex(({ outcome }) => outcome === ended)
  const known = groups[at]
  if (known === undefined) return { groups, others: Math.max(0, others - 1) }
  if (known.count === 1) return { groups: groups.toSpliced(at, 1), others }
  return { groups: groups.with(at, { ...known, count: known.count - 1 }), others }
}

function groupReason(outcome: FailureGroup['outcome'], reason: string | null): string | null {
  // These texts contain the attempt number or the holder, so they cannot be used for grouping.
  if (outcome === 'expired') return EXPIRED
  if (outcome === 'revoked') return REVOKED
  const line = reason?.trim().split('\n', 1)[0]?.trim() ?? ''
  return line === '' ? null : cut(line, GROUP_REASON_KEPT)
}

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
