import type { ScaleLimit } from '@baton/protocol'
import { type Tally, type TaskFacts, taskState, totalOf, unfinishedOf } from '../rules/task.ts'
import type { Seen, TaskRow } from './queries.ts'
import {
  type Effort,
  effortLeft,
  type SeenPace,
  type TimeLeft,
  timeLeft,
  type WaitsFor,
} from './time-left.ts'

/** After this time without a finished partition there is no pace, unless some are leased. */
export const IDLE_MILLIS = 60_000

/** With fewer settles, no ETA is given. */
export const SETTLES_FOR_ETA = 5

export interface Pace {
  readonly recordsPerSecond: number | null
  readonly etaSeconds: number | null
  readonly etaWaitsFor: WaitsFor | null
}

const NO_PACE: Pace = { recordsPerSecond: null, etaSeconds: null, etaWaitsFor: null }

/** How fast a task progresses and when it will be done, in declared records. */
export function paceOf(row: TaskRow, now: number): Pace {
  const { openLane, timing } = row
  if (taskState(row.facts, openLane) !== 'open') return NO_PACE
  const facts = withoutPausedTables(row)
  const seen = seenLately(row)
  // Only what is held on paused tables is left.
  if (facts !== row.facts && withoutParked(facts.partitions) === 0)
    return { ...NO_PACE, recordsPerSecond: seen === null ? null : seen.records / seen.seconds }
  const left =
    timing === undefined ? leftAtPace(facts, seen) : timeLeft(facts, timing, paceIn(facts, seen), now)
  return {
    recordsPerSecond: seen === null ? null : seen.records / seen.seconds,
    etaSeconds: left?.seconds ?? null,
    etaWaitsFor: left?.waitsFor ?? null,
  }
}

/** What is held because its table is paused is left out: nobody knows when it goes on. */
function withoutPausedTables({ facts, heldByTable }: TaskRow): TaskFacts {
  if (heldByTable === undefined || heldByTable.partitions === 0) return facts
  const without = (tally: Tally, held: number): Tally => ({ ...tally, held: Math.max(0, tally.held - held) })
  return {
    ...facts,
    partitions: without(facts.partitions, heldByTable.partitions),
    records: without(facts.records, heldByTable.records),
  }
}

/** What was finished recently; null if nothing was. */
const seenLately = ({ facts, pace }: Pick<TaskRow, 'facts' | 'pace'>): Seen | null =>
  pace === null || (facts.partitions.leased === 0 && pace.idleMillis > IDLE_MILLIS) ? null : pace

/** In records, or in partitions if none has records. Parked ones wait for an operator. */
function paceIn(facts: TaskFacts, seen: Seen | null): SeenPace {
  const byRecords = totalOf(facts.records) > 0
  const tally = byRecords ? facts.records : facts.partitions
  const left = unfinishedOf(tally) - tally.parked
  if (seen === null) return { perSecond: 0, left, isSure: false }
  const perSecond = (byRecords ? seen.records : seen.partitions) / seen.seconds
  return { perSecond, left, isSure: seen.partitions >= SETTLES_FOR_ETA }
}

/** Estimates by the pace alone, if nothing is known about attempts. */
function leftAtPace(facts: TaskFacts, seen: Seen | null): TimeLeft | null {
  const { perSecond, left, isSure } = paceIn(facts, seen)
  return isSure && perSecond > 0 ? { seconds: left / perSecond, waitsFor: 'pace' } : null
}

export interface TaskDemand {
  /** The work left for workers; zero while the task is paused or stalled. */
  readonly left: { readonly partitions: number; readonly records: number }
  /** Null while too few attempts have finished. */
  readonly effort: Pick<Effort, 'millis' | 'attemptMillis'> | null
  /** The maximum number of its partitions that can currently be leased at a time, and what limits it. */
  readonly most: number
  readonly limitedBy: ScaleLimit
  /** Leases of a task that is not open: they continue although nothing more is handed out. */
  readonly runsOn: number
  /** What was finished recently. */
  readonly seen: Seen | null
  /** The holders of its leases. If there are very many, only those of the leases that end first. */
  readonly holders: readonly (string | null)[]
}

const withoutParked = (tally: Tally): number => unfinishedOf(tally) - tally.parked

/** Uses the same estimate as the time left. */
export function demandOf(row: TaskRow, now: number): TaskDemand {
  const { openLane, timing } = row
  const isOpen = taskState(row.facts, openLane) === 'open'
  const facts = withoutPausedTables(row)
  const { partitions, records, settings } = facts
  // Held partitions are behind the barrier: additional workers could not pull them.
  const handedOutAtOnce = partitions.ready + partitions.leased + partitions.delayed
  const maxLeases = settings?.maxLeases ?? Number.POSITIVE_INFINITY
  const leased = timing?.underWay.filter(({ state }) => state === 'leased') ?? []
  return {
    left: isOpen
      ? { partitions: withoutParked(partitions), records: withoutParked(records) }
      : { partitions: 0, records: 0 },
    effort: isOpen && timing !== undefined ? effortLeft(facts, timing, now) : null,
    most: Math.min(handedOutAtOnce, maxLeases),
    limitedBy: maxLeases < handedOutAtOnce ? 'max-leases' : 'partitions',
    runsOn: isOpen ? 0 : partitions.leased,
    seen: isOpen ? seenLately(row) : null,
    holders: leased.map(({ holder }) => holder),
  }
}
