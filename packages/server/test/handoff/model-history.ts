type Outcome = 'done' | 'failed' | 'released' | 'expired'

/** An attempt that ended, as its partition has to tell of it. */
export interface ModelAttempt {
  readonly attempt: number
  readonly holder: string | null
  readonly startedAt: number
  readonly endedAt: number
  readonly outcome: Outcome
  readonly reason: string | null
  readonly records: number | null
}

/** What a model keeps of the attempts of a partition. */
export interface Attempted {
  attempts: number
  holder: string | null
  leasedAt: number
  settledAt: number
  /** What the worker that finished it said that it processed. */
  reported: number | null
  /** The last ones, oldest first. The one that runs, and the one that finished it, are not among them. */
  history: readonly ModelAttempt[]
}

/** How many attempts a partition tells of. */
const MOST = 10

export const notAttempted = (): Omit<Attempted, 'attempts'> => ({
  holder: null,
  leasedAt: 0,
  settledAt: 0,
  reported: null,
  history: [],
})

/** The attempt that runs ends. To be called before it is counted. */
export function recordEnd(
  partition: Attempted,
  outcome: 'failed' | 'released',
  reason: string | null,
  now: number,
): void {
  const { attempts, holder, leasedAt: startedAt } = partition
  add(partition, { attempt: attempts + 1, holder, startedAt, endedAt: now, outcome, reason, records: null })
}

/** Its time has come, or an operator revoked its lease. */
export function recordExpiry(partition: Attempted, takenFrom: string | null, now: number): void {
  const { attempts, holder, leasedAt: startedAt } = partition
  const attempt = attempts + 1
  const reason =
    takenFrom === null
      ? `the lease of attempt ${attempt} expired before it was settled`
      : `an operator revoked the lease of attempt ${attempt} from ${takenFrom}`
  add(partition, { attempt, holder, startedAt, endedAt: now, outcome: 'expired', reason, records: null })
}

/** It is to run again: how it was finished becomes a part of its history. */
export function recordFinished(partition: Attempted): void {
  const { attempts, holder, leasedAt: startedAt, settledAt: endedAt, reported: records } = partition
  add(partition, { attempt: attempts, holder, startedAt, endedAt, outcome: 'done', reason: null, records })
}

/** The last attempt was told to have expired, and has not. */
export function withdrawExpiry(partition: Attempted): void {
  expired(partition)
  partition.history = partition.history.slice(0, -1)
}

/** The last attempt was told to have expired, and its worker says why it failed. */
export function amendExpiry(partition: Attempted, reason: string | null): void {
  const last = expired(partition)
  partition.history = [...partition.history.slice(0, -1), { ...last, outcome: 'failed', reason }]
}

/** Whether what a store tells of the attempts of a partition is what the model saw. */
export function isHistory({ history }: Attempted, told: readonly object[] | null | undefined): boolean {
  const attempts = (told ?? []) as readonly ModelAttempt[]
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
  if (last?.outcome !== 'expired') throw new Error('the last attempt of the model has not expired')
  return last
}

function add(partition: Attempted, attempt: ModelAttempt): void {
  partition.history = [...partition.history, attempt].slice(-MOST)
}
