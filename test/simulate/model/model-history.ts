import { disagree } from './disagreement.ts'
import { type ModelPartition, nameOf, type Outcome } from './model-task.ts'

/** How many attempts a partition tells of. */
const MOST = 10

/** The attempt that runs ends. To be called before it is counted. */
export function recordEnd(
  partition: ModelPartition,
  outcome: Exclude<Outcome, 'done'>,
  reason: string | null,
  now: number,
): void {
  const { attempts, holder, leasedAt: startedAt } = partition
  add(partition, { attempt: attempts + 1, holder, startedAt, endedAt: now, outcome, reason, records: null })
}

/** It is to run again: how it was finished becomes a part of its history. */
export function recordFinished(partition: ModelPartition): void {
  const { attempts, holder, leasedAt: startedAt, settledAt: endedAt, reported: records } = partition
  add(partition, { attempt: attempts, holder, startedAt, endedAt, outcome: 'done', reason: null, records })
}

/** The last attempt was told to have expired, and has not. */
export function withdrawExpiry(partition: ModelPartition): void {
  if (partition.history.at(-1)?.outcome !== 'expired')
    disagree(`${nameOf(partition)} has no expiry to withdraw`)
  partition.history = partition.history.slice(0, -1)
}

/** The last attempt was told to have expired, and its worker says why it failed. */
export function amendExpiry(partition: ModelPartition, reason: string | null): void {
  const last = partition.history.at(-1)
  if (last?.outcome !== 'expired') disagree(`${nameOf(partition)} has no expiry to amend`)
  partition.history = [...partition.history.slice(0, -1), { ...last, outcome: 'failed', reason }]
}

function add(partition: ModelPartition, attempt: ModelPartition['history'][number]): void {
  partition.history = [...partition.history, attempt].slice(-MOST)
}

/** What is stored of the attempts of a partition is what was seen of them. */
export function compareHistory(
  partition: ModelPartition,
  stored: readonly ModelPartition['history'][number][] | null | undefined,
): void {
  const { history } = partition
  const isSame =
    (stored ?? []).length === history.length &&
    history.every((attempt, at) => FIELDS.every((field) => stored?.[at]?.[field] === attempt[field]))
  if (!isSame)
    disagree(
      `${nameOf(partition)} tells of the attempts ${JSON.stringify(stored)} instead of ${JSON.stringify(history)}`,
    )
}

const FIELDS = ['attempt', 'holder', 'startedAt', 'endedAt', 'outcome', 'reason', 'records'] as const
