import type { ScaleLimit } from '@baton/protocol'
import { taskState } from '../rules/task-course.ts'
import { type Tally, unfinishedOf } from '../rules/task-facts.ts'
import { type Seen, seenLately } from './eta.ts'
import type { TaskRow } from './records.ts'
import { type Effort, effortLeft } from './time-left.ts'

/** What one unfinished task asks of workers. */
export interface TaskDemand {
  /** What is left for workers; nothing while the task is paused or stalled. */
  readonly left: { readonly partitions: number; readonly records: number }
  /** Null while too few attempts have finished. */
  readonly effort: Pick<Effort, 'millis' | 'attemptMillis'> | null
  /** The most of its partitions that can be leased at a time, as it stands, and what keeps them from being more. */
  readonly most: number
  readonly limitedBy: ScaleLimit
  /** Leases that run on although nothing more is handed out: the task is paused. */
  readonly runsOn: number
  /** What was finished lately. */
  readonly seen: Seen | null
  /** Who holds its leases: all of them, or those that end first where there are very many. */
  readonly holders: readonly (string | null)[]
}

const withoutParked = (tally: Tally): number => unfinishedOf(tally) - tally.parked

/** By the same estimate as the time left. */
export function demandOf(row: TaskRow, now: number): TaskDemand {
  const { facts, openLane, timing } = row
  const { partitions, records, settings } = facts
  const isOpen = taskState(facts, openLane) === 'open'
  // What is held is behind the barrier: workers for it would find nothing.
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
    seen: isOpen ? seenLately(row, now) : null,
    holders: leased.map(({ holder }) => holder),
  }
}
