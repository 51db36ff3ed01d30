import { taskState } from '../rules/task-course.ts'
import { type TaskFacts, totalOf, unfinishedOf } from '../rules/task-facts.ts'
import type { PaceSecond, TaskRow } from './records.ts'
import { type SeenPace, type TimeLeft, timeLeft, type WaitsFor } from './time-left.ts'

/** The pace is taken over at least so long, or over so many settles, whichever reaches further back. */
const WINDOW_MILLIS = 60_000
const WINDOW_SETTLES = 20

/** So many of the seconds in which a task got on are kept: enough for a minute, and for the last settles of a slow one. */
export const PACE_SECONDS_KEPT = 80

/** Fewer settles say nothing about when a task will be done. */
export const SETTLES_FOR_ETA = 5

export interface Pace {
  readonly recordsPerSecond: number | null
  readonly etaSeconds: number | null
  readonly etaWaitsFor: WaitsFor | null
}

const NO_PACE: Pace = { recordsPerSecond: null, etaSeconds: null, etaWaitsFor: null }

/** How fast a task goes and when it will be done, counted in declared records. */
export function paceOf(row: TaskRow, now: number): Pace {
  const { facts, openLane, timing } = row
  if (taskState(facts, openLane) !== 'open') return NO_PACE
  const seen = seenLately(row, now)
  const left =
    timing === undefined ? leftAtPace(facts, seen) : timeLeft(facts, timing, paceIn(facts, seen), now)
  return {
    recordsPerSecond: seen === null ? null : seen.records / seen.seconds,
    etaSeconds: left?.seconds ?? null,
    etaWaitsFor: left?.waitsFor ?? null,
  }
}

export interface Seen {
  readonly partitions: number
  readonly records: number
  readonly seconds: number
}

/** What was finished lately; null where nothing was. */
export function seenLately(
  { facts, pace: newestFirst }: Pick<TaskRow, 'facts' | 'pace'>,
  now: number,
): Seen | null {
  const newest = newestFirst[0]
  if (newest === undefined) return null
  const start = windowStart(newestFirst, now)
  const isIdle = facts.partitions.leased === 0 && now - endOf(newest) > WINDOW_MILLIS
  if (isIdle) return null
  const seen = newestFirst.filter((second) => endOf(second) > start)
  return {
    partitions: seen.reduce((sum, second) => sum + second.partitions, 0),
    records: seen.reduce((sum, second) => sum + second.records, 0),
    // A task younger than the window has not had the whole of it.
    seconds: Math.max(now - Math.max(start, facts.firstCallBackAt), 1000) / 1000,
  }
}

function windowStart(newestFirst: readonly PaceSecond[], now: number): number {
  let settles = 0
  for (const second of newestFirst) {
    settles += second.partitions
    if (settles >= WINDOW_SETTLES) return Math.min(now - WINDOW_MILLIS, second.second * 1000)
  }
  const oldest = newestFirst.at(-1)
  return Math.min(now - WINDOW_MILLIS, (oldest?.second ?? 0) * 1000)
}

/** Where no partition has records, partitions are the measure. What is parked waits for an operator, and for no pace. */
function paceIn(facts: TaskFacts, seen: Seen | null): SeenPace {
  const byRecords = totalOf(facts.records) > 0
  const tally = byRecords ? facts.records : facts.partitions
  const left = unfinishedOf(tally) - tally.parked
  if (seen === null) return { perSecond: 0, left, isSure: false }
  const perSecond = (byRecords ? seen.records : seen.partitions) / seen.seconds
  return { perSecond, left, isSure: seen.partitions >= SETTLES_FOR_ETA }
}

/** By the pace alone, where nothing is known of attempts. */
function leftAtPace(facts: TaskFacts, seen: Seen | null): TimeLeft | null {
  const { perSecond, left, isSure } = paceIn(facts, seen)
  return isSure && perSecond > 0 ? { seconds: left / perSecond, waitsFor: 'pace' } : null
}

function endOf({ second }: PaceSecond): number {
  return (second + 1) * 1000
}
