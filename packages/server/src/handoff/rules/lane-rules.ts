import { type Tally, unfinishedOf } from './tally.ts'
import type { TaskFacts } from './task-facts.ts'
import { isAtLimit } from './task-settings.ts'

/** Whether pulls may take from a lane. */
export function isLaneOpen(
  task: Pick<TaskFacts, 'paused' | 'cancelled' | 'levelBarrier' | 'openLevel'>,
  level: number,
): boolean {
  if (task.paused || task.cancelled) return false
  return !task.levelBarrier || (task.openLevel !== null && level <= task.openLevel)
}

/** The same now: not while as many of its partitions are leased as may be. */
export function mayServe(
  task: Parameters<typeof isLaneOpen>[0] & Parameters<typeof isAtLimit>[0],
  level: number,
): boolean {
  return isLaneOpen(task, level) && !isAtLimit(task)
}

/** What of a lane a barrier goes by. */
export interface BarrierLane {
  readonly partitions: Tally
  readonly parkedSkipped: boolean
}

/** What keeps a barrier from opening the next level. */
export function holdsBarrier({ partitions, parkedSkipped }: BarrierLane): boolean {
  return unfinishedOf(partitions) > (parkedSkipped ? partitions.parked : 0)
}

/** The same, where it takes an operator to open it: nothing but what is parked is left there. */
export function holdsBarrierForGood(lane: BarrierLane): boolean {
  return holdsBarrier(lane) && unfinishedOf(lane.partitions) === lane.partitions.parked
}
