import { countOf, longestOf, quantileOf, sumOf } from '../rules/durations.ts'
import { type TaskFacts, totalOf, unfinishedOf } from '../rules/task-facts.ts'

// When a task will be done. The pace tells how long the work that waits will take; what is in hand or in back-off tells
// that it cannot be sooner.

/** A partition that is leased, or waits for the end of a back-off. */
export interface UnderWay {
  readonly level: number
  readonly index: number
  readonly spelling: string | null
  readonly state: 'leased' | 'delayed'
  readonly holder: string | null
  readonly leasedAt: number
  /** When its lease or its back-off ends. */
  readonly dueAt: number
  readonly recordCount: number
  /** Its lease was renewed: somebody is there. */
  readonly renewed: boolean
}

/** What is known of the attempts of a task. */
export interface Timing {
  readonly durations: readonly number[]
  /** Those that end first; not all of them where there are very many. */
  readonly underWay: readonly UnderWay[]
  /** How long a partition whose lease expired waits, roughly. */
  readonly backoffMillis: number
}

export type WaitsFor = 'pace' | 'lease' | 'back-off'

export interface TimeLeft {
  readonly seconds: number
  /** What it depends on most. */
  readonly waitsFor: WaitsFor
}

/** Fewer attempts say little about how long one takes. */
const ATTEMPTS_TO_JUDGE = 5
/** Beyond so many times the usual length an attempt is overdue, and beyond so many its worker is taken for dead. */
const OVERDUE = 3
const DEAD = 5
const LEAST_OVERDUE_MILLIS = 5000
/** Of the length of an attempt: how long, on average, workers are idle before the last of them ends. */
const LAST_SHARE = 0.5
/** Lengths are known within a fifth. */
const LONGEST_MARGIN = 1.2

export interface Overdue {
  readonly partition: UnderWay
  readonly expectedMillis: number
}

/** How long an attempt is expected to take, by the records of its partition; null where nothing is known yet. */
export function expectedMillis(
  facts: TaskFacts,
  durations: readonly number[],
  recordCount: number,
): number | null {
  const median = quantileOf(durations, 0.5)
  if (median === null) return null
  const { done } = facts.records
  if (done === 0 || facts.partitions.done === 0) return median
  const usual = done / facts.partitions.done
  // However small, an attempt has a beginning and an end.
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
      isBeyond(OVERDUE, now - partition.leasedAt, usual, spread),
    )
    .sort((a, b) => a.partition.leasedAt - b.partition.leasedAt)
}

function isBeyond(times: number, age: number, usual: number, spread: number): boolean {
  return age > Math.max(times * usual, (times / 2) * usual * spread, LEAST_OVERDUE_MILLIS)
}

export interface SeenPace {
  readonly perSecond: number
  /** In the unit of `perSecond`: what is unfinished and not parked. */
  readonly left: number
  /** Whether enough was finished lately to trust it. */
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
    // Nothing waits but what is under way: the last of it tells.
    const waiting = facts.partitions.ready + facts.partitions.held
    if (last === null || waiting > 0 || countOf(durations) === 0) return null
    return { seconds: last.millis / 1000, waitsFor: last.waitsFor }
  }
  if (last === null || last.millis / 1000 <= byPace) return { seconds: byPace, waitsFor: 'pace' }
  return { seconds: last.millis / 1000, waitsFor: last.waitsFor }
}

/**
 * How long all that is not parked takes those who work on it now. Where nobody works, or too little is known, at the pace of
 * late.
 */
function bulkSeconds(facts: TaskFacts, timing: Timing, pace: SeenPace, now: number): number | null {
  const effort = effortLeft(facts, timing, now)
  if (effort === null || effort.working === 0)
    return pace.isSure && pace.perSecond > 0 ? pace.left / pace.perSecond : null
  const { millis, attemptMillis, working } = effort
  // The last one is begun when others are nearly done, and has nobody to share it with.
  return (millis / working + attemptMillis * LAST_SHARE * (1 - 1 / Math.max(1, working))) / 1000
}

/** What is left of a task, measured in time under lease. */
export interface Effort {
  /** All attempts that are left, one after the other. */
  readonly millis: number
  /** One attempt at an average partition of those that are left. */
  readonly attemptMillis: number
  /** Leases under which work goes on. */
  readonly working: number
}

/**
 * What all that is not parked takes, by how long attempts took and how many came to nothing; what was begun counts. Null
 * while too little is known.
 */
export function effortLeft(facts: TaskFacts, timing: Timing, now: number): Effort | null {
  const { durations, underWay } = timing
  const attempts = countOf(durations)
  if (attempts < ATTEMPTS_TO_JUDGE) return null
  const overdue = new Set(overdueOf(facts, timing, now).map(({ partition }) => partition))
  const working = underWay.filter((one) => one.state === 'leased' && !overdue.has(one))
  // Where there are very many leases, not all of them were looked at.
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

/** How many leases finish what is left within a time: the estimate of `timeLeft`, solved for leases. Infinity where no number does. */
export function leasesToFinishIn(
  { millis, attemptMillis }: Pick<Effort, 'millis' | 'attemptMillis'>,
  withinMillis: number,
): number {
  const last = attemptMillis * LAST_SHARE
  if (millis <= withinMillis) return millis / withinMillis
  return withinMillis > last ? (millis - last) / (withinMillis - last) : Number.POSITIVE_INFINITY
}

const leasedIn = (underWay: readonly UnderWay[]): number =>
  underWay.reduce((count, { state }) => (state === 'leased' ? count + 1 : count), 0)

/** When a partition that is under way will be done, in milliseconds from now. */
function endsIn(
  facts: TaskFacts,
  durations: readonly number[],
  { state, leasedAt, dueAt, recordCount, renewed }: UnderWay,
  backoffMillis: number,
  now: number,
): number {
  const usual = expectedMillis(facts, durations, recordCount)
  const untilDue = Math.max(0, dueAt - now)
  if (state === 'delayed') return untilDue + (usual ?? 0)
  // Nothing is known yet: not before now, and nobody is promised anything by it.
  if (usual === null) return 0
  const age = now - leasedAt
  const spread = spreadOf(durations)
  if (countOf(durations) < ATTEMPTS_TO_JUDGE || !isBeyond(OVERDUE, age, usual, spread))
    return Math.max(usual - age, usual * 0.2)
  // Others took as long, and came to an end.
  const longest = longestOf(durations) * LONGEST_MARGIN
  if (age < longest) return Math.max(usual, longest - age)
  // The longer it has taken, the longer it may still take.
  if (renewed || !isBeyond(DEAD, age, usual, spread)) return Math.max(usual, age / 2)
  return untilDue + backoffMillis + usual
}
