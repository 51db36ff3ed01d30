import { totalOf, unfinishedOf } from '../rules/tally.ts'
import { taskState } from '../rules/task-course.ts'
import type { TaskFacts } from '../rules/task-facts.ts'
import type { PaceSecond, TaskRow } from './task-record.ts'

/** The pace is taken over at least so long, or over so many settles, whichever reaches further back. */
const WINDOW_MILLIS = 60_000
const WINDOW_SETTLES = 20

/** So many of the seconds in which a task got on are kept: enough for a minute, and for the last settles of a slow one. */
export const PACE_SECONDS_KEPT = 80

/** Fewer settles say nothing about when a task will be done. */
const SETTLES_FOR_ETA = 5

export interface Pace {
  readonly recordsPerSecond: number | null
  readonly etaSeconds: number | null
}

const NO_PACE: Pace = { recordsPerSecond: null, etaSeconds: null }

/** How fast a task goes and when it will be done, counted in declared records. */
export function paceOf({ facts, openLane, pace: newestFirst }: TaskRow, now: number): Pace {
  if (taskState(facts, openLane) !== 'open') return NO_PACE
  const newest = newestFirst[0]
  if (newest === undefined) return NO_PACE
  const start = windowStart(newestFirst, now)
  const isIdle = facts.partitions.leased === 0 && now - endOf(newest) > WINDOW_MILLIS
  if (isIdle) return NO_PACE
  const seen = newestFirst.filter((second) => endOf(second) > start)
  const partitions = seen.reduce((sum, second) => sum + second.partitions, 0)
  const records = seen.reduce((sum, second) => sum + second.records, 0)
  // A task younger than the window has not had the whole of it.
  const seconds = Math.max(now - Math.max(start, facts.firstCallBackAt), 1000) / 1000
  return {
    recordsPerSecond: records / seconds,
    etaSeconds: partitions < SETTLES_FOR_ETA ? null : timeLeft(facts, { partitions, records, seconds }),
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

/** Where no partition has records, partitions are the measure. */
function timeLeft(
  facts: TaskFacts,
  done: { partitions: number; records: number; seconds: number },
): number | null {
  const byRecords = totalOf(facts.records) > 0
  const tally = byRecords ? facts.records : facts.partitions
  const left = unfinishedOf(tally)
  const perSecond = (byRecords ? done.records : done.partitions) / done.seconds
  return perSecond === 0 ? null : left / perSecond
}

function endOf({ second }: PaceSecond): number {
  return (second + 1) * 1000
}
