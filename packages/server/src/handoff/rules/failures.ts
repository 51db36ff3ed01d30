import { type FailureOutcome, MAX_LISTED_FAILURES } from '@baton/protocol'
import { endedReasons, type FailureReason, OTHER_REASONS } from './failure-reason.ts'

/**
 * Attempts of a task that failed or expired, by reason, and what is parked because of them.
 *
 * The number of groups is bounded. A failure whose reason gets no group of its own counts in the group of other
 * reasons, and its partition has the key of that group. A group with parked partitions is kept, so what a group
 * says is parked is exactly what has its key.
 */
export interface FailureGroup extends FailureReason {
  readonly outcome: FailureOutcome
  /** Attempts. */
  readonly count: number
  readonly firstAt: number
  readonly lastAt: number
  readonly parked: Parked
}

interface Parked {
  readonly partitions: number
  readonly records: number
}

type Groups = readonly FailureGroup[]

const NOTHING: Parked = { partitions: 0, records: 0 }

/** Expired, revoked and other ones always have a group. */
const MOST_REASONS = MAX_LISTED_FAILURES - 3

const isListed = ({ outcome, key }: FailureGroup): boolean =>
  outcome === 'failed' && key !== OTHER_REASONS.key

/** Counts an attempt. Returns the key of its group. */
export function countFailure(
  groups: Groups,
  outcome: FailureOutcome,
  reason: FailureReason,
  now: number,
): { readonly groups: Groups; readonly key: string } {
  const { key } = reason
  const known = groups.find((group) => group.key === key)
  if (known !== undefined)
    return { groups: changed(groups, key, { count: known.count + 1, lastAt: now }), key }
  const added = { ...reason, outcome, count: 1, firstAt: now, lastAt: now, parked: NOTHING }
  const listed = groups.filter(isListed)
  if (outcome !== 'failed' || listed.length < MOST_REASONS || key === OTHER_REASONS.key)
    return { groups: [...groups, added], key }
  const rarest = listed.filter(({ parked }) => parked.partitions === 0).reduce(rarerOf, undefined)
  if (rarest === undefined) return countFailure(groups, outcome, OTHER_REASONS, now)
  return { groups: [...withOther(groups, rarest), added], key }
}

const rarerOf = (a: FailureGroup | undefined, b: FailureGroup): FailureGroup =>
  a === undefined || b.count < a.count || (b.count === a.count && b.lastAt < a.lastAt) ? b : a

/** The attempts of a group count as those with other reasons. */
function withOther(groups: Groups, group: FailureGroup): Groups {
  const others = groups.filter(({ key }) => key !== group.key)
  const { count, firstAt, lastAt } = group
  const other = others.find(({ key }) => key === OTHER_REASONS.key)
  if (other === undefined) return [...others, { ...group, ...OTHER_REASONS }]
  return changed(others, OTHER_REASONS.key, {
    count: other.count + count,
    firstAt: Math.min(other.firstAt, firstAt),
    lastAt: Math.max(other.lastAt, lastAt),
  })
}

/** Takes back a counted expiry or revocation. */
export function uncountEnd(groups: Groups, ended: 'expired' | 'revoked'): Groups {
  const { key } = endedReasons[ended]
  const known = groups.find((group) => group.key === key)
  return known === undefined ? groups : changed(groups, key, { count: Math.max(0, known.count - 1) })
}

/** A partition whose last failure was of this group was parked, or is not parked any more. */
export function countParked(groups: Groups, key: string, partitions: 1 | -1, records: number): Groups {
  const known = groups.find((group) => group.key === key)
  if (known === undefined) return groups
  const { parked } = known
  return changed(groups, key, {
    parked: { partitions: parked.partitions + partitions, records: parked.records + partitions * records },
  })
}

/** A group without attempts and parked partitions is removed. */
function changed(groups: Groups, key: string, change: Partial<FailureGroup>): Groups {
  return groups.flatMap((group) => {
    if (group.key !== key) return group
    const now = { ...group, ...change }
    return now.count === 0 && now.parked.partitions === 0 ? [] : now
  })
}

/** What an operator should look at first: what is parked, then what happened most often. */
export const byWeight = (groups: Groups): FailureGroup[] =>
  groups.toSorted(
    (a, b) => b.parked.partitions - a.parked.partitions || b.count - a.count || b.lastAt - a.lastAt,
  )

/** For a list of tasks. Null if no worker gave a reason. */
export const mainReason = (groups: Groups): string | null =>
  byWeight(groups).find(({ reason }) => reason !== null)?.reason ?? null
