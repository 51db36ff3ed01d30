import { type Tally, unfinishedOf } from './tally.ts'
import type { TaskFacts } from './task-record.ts'

/** Whether pulls may take from a lane. */
export function isLaneOpen(
  task: Pick<TaskFacts, 'paused' | 'cancelled' | 'levelBarrier' | 'openLevel'>,
  level: number,
): boolean {
  if (task.paused || task.cancelled) return false
  return !task.levelBarrier || (task.openLevel !== null && level <= task.openLevel)
}

/** What keeps a barrier from opening the next level. */
export function holdsBarrier(lane: { partitions: Tally; parkedSkipped: boolean }): boolean {
  const unfinished = unfinishedOf(lane.partitions)
  return unfinished > (lane.parkedSkipped ? lane.partitions.parked : 0)
}
