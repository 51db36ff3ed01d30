import { countOf, longestOf, quantileOf, sumOf } from '../rules/durations.ts'
import { SILENT_SHARE } from '../rules/policy.ts'
import { leftByProgress, type Progress } from '../rules/progress.ts'
import { type TaskFacts, totalOf, unfinishedOf } from '../rules/task.ts'

// Estimates when a task will be done. The pace determines how long the waiting work takes. Running leases and
// back-offs set a lower bound.

export interface LeasedOrDelayed {
  readonly level: number
  readonly index: number
  readonly spelling: string | null
  readonly state: 'leased' | 'delayed'
  readonly holder: string | null
  readonly leasedAt: number
  /** When its lease or its back-off ends. */
  readonly dueAt: number
  readonly recordCount: number
  /** Its lease was renewed, so its worker is alive. */
  readonly renewed: boolean
  /** The share of the lease that has passed since it was granted or renewed. 0 in back-off. */
  readonly unheardShare: number
  /** What its worker reported, as this leader knows it. */
  readonly progress: Progress | null
}

/** What is known about the attempts of a task. */
export interface Timing {
  readonly durations: readonly number[]
  /** The leases and back-offs that end first. */
  readonly underWay: readonly LeasedOrDelayed[]
  /** The approximate back-off of a partition whose lease expired. */
  readonly backoffMillis: number
}

export type WaitsFor = 'pace' | 'lease' | 'back-off'

export interface TimeLeft {
  readonly seconds: number
  /** The main cause of the estimate. */
  readonly waitsFor: WaitsFor
}

/** Fewer attempts say little about how long one takes. */
const ATTEMPTS_TO_JUDGE = 5
/** In usual durations: an attempt is overdue, and its worker is assumed dead. */
const OVERDUE = 3
const DEAD = 5
const LEAST_OVERDUE_MILLIS = 5000
/**
 * A lease whose holder is silent counts until its end. One that takes longer than usual does so earlier: a
 * worker that is alive renews after a third of the lease.
 */
const UNRENEWED_SHARE = 0.4
/** How long workers are idle, on average, before the last attempt ends, as a share of an attempt. */
const LAST_SHARE = 0.5
/** Durations are accurate within a fifth. */
const LONGEST_MARGIN = 1.2

interface Overdue {
  readonly partition: LeasedOrDelayed
  readonly expectedMillis: number
}

/** The expected duration of an attempt, by the records of its partition; null if nothing is known yet. */
function expectedMillis(facts: TaskFacts, durations: readonly number[], recordCount: number): number | null {
  const median = quantileOf(durations, 0.5)
  if (median === null) return null
  const { done } = facts.records
  if (done === 0 || facts.partitions.done === 0) return median
  const usual = done / facts.partitions.done
  // Every attempt has some fixed overhead, however few records it has.
  return Math.max(median * (recordCount / usual), median * 0.1)
}

/** How much longer than usual the slower attempts of the task take. */
function spreadOf(durations: readonly number[]): number {
  const median = quantileOf(durations, 0.5) ?? 1
  return Math.max(1, (quantileOf(durations, 0.95) ?? median) / median)
}

/** Leased partitions that take much longer than others of the task, the oldest first. */
export function overdueOf(facts: TaskFacts, { durations, underWay }: Timing, now: number): Overdue[] {
  if (countOf(durations) < ATTEMPTS_TO_JUDGE) return []
  const spread = spreadOf(durations)
  return underWay
    .filter(({ state }) => state === 'leased')
    .map((partition) => ({
      partition,
      expectedMillis: expectedMillis(facts, durations, partition.recordCount) ?? 0,
    }))
    .filter(({ partition, expectedMillis: usual }) =>
      isBeyond(OVERDUE, likelyMillis(partition, usual, now), usual, spread),
    )
    .sort((a, b) => a.partition.leasedAt - b.partition.leasedAt)
}

/** How long a lease will take in all, as far as it is known: by its progress, or as long as it has taken. */
function likelyMillis(partition: LeasedOrDelayed, usual: number, now: number): number {
  const age = now - partition.leasedAt
  // The first reports say little.
  return age < usual ? age : age + (leftByProgress(partition, now) ?? 0)
}

function isBeyond(times: number, age: number, usual: number, spread: number): boolean {
  return age > Math.max(times * usual, (times / 2) * usual * spread, LEAST_OVERDUE_MILLIS)
}

export interface SeenPace {
  readonly perSecond: number
  /** Unfinished and not parked, in the unit of `perSecond`. */
  readonly left: number
  /** Whether enough was finished recently to trust it. */
  readonly isSure: boolean
}

export function timeLeft(facts: TaskFacts, timing: Timing, pace: SeenPace, now: number): TimeLeft | null {
  const { durations, underWay, backoffMillis } = timing
  const ends = underWay.map((one) => ({
    waitsFor: one.state === 'leased' ? ('lease' as const) : ('back-off' as const),
    millis: endsIn(facts, durations, one, backoffMillis, now),
  }))
  const last = ends.reduce<(typeof ends)[number] | null>(
    (latest, one) => (latest === null || one.millis > latest.millis ? one : latest),
    null,
  )
  const byPace = bulkSeconds(facts, timing, pace, now)
  if (byPace === null) {
    // Nothing is waiting, so the last lease or back-off determines the end.
    const waiting = facts.partitions.ready + facts.partitions.held
    const isKnown = countOf(durations) > 0 || underWay.every((one) => leftByProgress(one, now) !== null)
    if (last === null || waiting > 0 || !isKnown) return null
    return { seconds: last.millis / 1000, waitsFor: last.waitsFor }
  }
  if (last === null || last.millis / 1000 <= byPace) return { seconds: byPace, waitsFor: 'pace' }
  return { seconds: last.millis / 1000, waitsFor: last.waitsFor }
}

/** At the current workers, or at the recent pace if there are none, or too little is known. */
function bulkSeconds(facts: TaskFacts, timing: Timing, pace: SeenPace, now: number): number | null {
  const effort = effortLeft(facts, timing, now)
  if (effort === null || effort.working === 0)
    return pace.isSure && pace.perSecond > 0 ? pace.left / pace.perSecond : null
  const { millis, attemptMillis, working } = effort
  // The last attempt starts when the others are nearly done, and cannot be shared.
  return (millis / working + attemptMillis * LAST_SHARE * (1 - 1 / Math.max(1, working))) / 1000
}

/** The remaining work of a task, measured in time under lease. */
export interface Effort {
  /** The total duration of all remaining attempts. */
  readonly millis: number
  /** The duration of an attempt at an average remaining partition. */
  readonly attemptMillis: number
  readonly working: number
}

/** By the durations and waste of past attempts, less what running ones did. Null if too little is known. */
export function effortLeft(facts: TaskFacts, timing: Timing, now: number): Effort | null {
  const { durations, underWay } = timing
  const attempts = countOf(durations)
  if (attempts < ATTEMPTS_TO_JUDGE) return null
  const overdue = new Set(overdueOf(facts, timing, now).map(({ partition }) => partition))
  const working = underWay.filter(
    (one) => one.state === 'leased' && one.unheardShare < SILENT_SHARE && !overdue.has(one),
  )
  // If there are very many leases, only some were read. Extrapolate.
  const unseen = facts.partitions.leased / Math.max(1, leasedIn(underWay))
  const { partitions, records } = facts
  const byRecords = totalOf(records) > 0 && records.done > 0
  const tally = byRecords ? records : partitions
  const left = unfinishedOf(tally) - tally.parked
  const perUnit = sumOf(durations) / (byRecords ? records.done : attempts)
  const begun = working.reduce((sum, { leasedAt, recordCount }) => {
    return sum + Math.min(now - leasedAt, byRecords ? perUnit * recordCount : perUnit)
  }, 0)
  const effort = left * perUnit * (1 + facts.attemptsWasted / Math.max(1, partitions.done))
  const count = unfinishedOf(partitions) - partitions.parked
  return {
    millis: Math.max(0, effort - begun * unseen),
    attemptMillis: (left / Math.max(1, count)) * perUnit,
    working: working.length * unseen,
  }
}

/** The estimate of `timeLeft`, solved for the number of leases. Infinity if no number is enough. */
export function leasesToFinishIn(
  { millis, attemptMillis }: Pick<Effort, 'millis' | 'attemptMillis'>,
  withinMillis: number,
): number {
  const last = attemptMillis * LAST_SHARE
  if (millis <= withinMillis) return millis / withinMillis
  return withinMillis > last ? (millis - last) / (withinMillis - last) : Number.POSITIVE_INFINITY
}

const leasedIn = (underWay: readonly LeasedOrDelayed[]): number =>
  underWay.reduce((count, { state }) => (state === 'leased' ? count + 1 : count), 0)

/** When a leased or delayed partition will be done, in milliseconds from now. */
function endsIn(
  facts: TaskFacts,
  durations: readonly number[],
  one: LeasedOrDelayed,
  backoffMillis: number,
  now: number,
): number {
  const { state, leasedAt, dueAt, recordCount, renewed, unheardShare } = one
  const usual = expectedMillis(facts, durations, recordCount)
  const untilDue = Math.max(0, dueAt - now)
  if (state === 'delayed') return untilDue + (usual ?? 0)
  const whenExpired = untilDue + backoffMillis + (usual ?? 0)
  if (unheardShare >= SILENT_SHARE) return whenExpired
  const byProgress = leftByProgress(one, now)
  // Without progress nothing is known yet, so there is no lower bound.
  if (usual === null) return byProgress ?? 0
  const age = now - leasedAt
  const spread = spreadOf(durations)
  // Whatever others took: those that took as long had renewed by then.
  if (unheardShare >= UNRENEWED_SHARE && isBeyond(OVERDUE, age, usual, 1)) return whenExpired
  if (byProgress !== null) return byProgress
  if (!isBeyond(OVERDUE, age, usual, spread)) return Math.max(usual - age, usual * 0.2)
  // Other attempts took as long and finished.
  const longest = longestOf(durations) * LONGEST_MARGIN
  if (age < longest) return Math.max(usual, longest - age)
  // The longer it has taken, the longer it may still take.
  return renewed || !isBeyond(DEAD, age, usual, spread) ? Math.max(usual, age / 2) : whenExpired
}
