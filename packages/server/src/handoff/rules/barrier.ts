import { type Tally, type TaskFacts, unfinishedOf } from './task-facts.ts'
import { isAtLimit } from './task-settings.ts'

/** Whether pulls may take from a lane. */
export function isLaneOpen(
  task: Pick<TaskFacts, 'paused' | 'cancelled' | 'levelBarrier' | 'openLevel'>,
  level: number,
): boolean {
  if (task.paused || task.cancelled) return false
  return !task.levelBarrier || (task.openLevel !== null && level <= task.openLevel)
}

/** Whether a lane may be served now: it is open, and its task is below its lease limit. */
export function mayServe(
  task: Parameters<typeof isLaneOpen>[0] & Parameters<typeof isAtLimit>[0],
  level: number,
): boolean {
  return isLaneOpen(task, level) && !isAtLimit(task)
}

/** The fields of a lane that a barrier depends on. */
export interface BarrierLane {
  readonly partitions: Tally
  readonly parkedSkipped: boolean
}

/** Whether the lane keeps the barrier from opening the next level. */
export function holdsBarrier({ partitions, parkedSkipped }: BarrierLane): boolean {
  return unfinishedOf(partitions) > (parkedSkipped ? partitions.parked : 0)
}

/** Whether the lane holds the barrier until an operator acts: only parked partitions are left. */
export function holdsBarrierForGood(lane: BarrierLane): boolean {
  return holdsBarrier(lane) && unfinishedOf(lane.partitions) === lane.partitions.parked
}
