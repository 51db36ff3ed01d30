import type { ScaleLimit } from '@baton/protocol'
import { type Tally, unfinishedOf } from '../rules/task-facts.ts'
import { taskState } from '../rules/task-state.ts'
import { type Seen, seenLately } from './eta.ts'
import type { TaskRow } from './records.ts'
import { type Effort, effortLeft } from './time-left.ts'

/** The demand of one unfinished task for workers. */
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
  const { facts, openLane, timing } = row
  const { partitions, records, settings } = facts
  const isOpen = taskState(facts, openLane) === 'open'
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
    seen: isOpen ? seenLately(row, now) : null,
    holders: leased.map(({ holder }) => holder),
  }
}
