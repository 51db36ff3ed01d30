import { type BarrierLane, holdsBarrierForGood } from './lane-rules.ts'
import { addCapped, unfinishedOf } from './tally.ts'
import type { TaskEntry } from './task-entry.ts'
import type { TaskFacts, TaskState } from './task-facts.ts'

type Ending = Pick<TaskFacts, 'cancelled' | 'rerunning' | 'partitions'>
type Deciding = Ending & Pick<TaskFacts, 'paused' | 'levelBarrier' | 'openLevel'>

/** `openLane` is the lane of the open level; null where there is none, or where `decidingLevel` does not ask for it. */
export function taskState(task: Deciding, openLane: BarrierLane | null): TaskState {
  if (task.cancelled) return 'cancelled'
  if (isDone(task)) return 'done'
  if (task.paused) return 'paused'
  return isStuck(task, openLane) ? 'stalled' : 'open'
}

export function isDone({ cancelled, rerunning, partitions }: Ending): boolean {
  return !cancelled && !rerunning && unfinishedOf(partitions) === 0
}

/** The level whose lane tells whether a task can move; null where the task alone tells. */
export function decidingLevel(task: Deciding): number | null {
  return !task.cancelled && !task.paused && mayWaitForParked(task) ? task.openLevel : null
}

/**
 * Nothing moves until an operator sees to what is parked: all else waits behind the barrier that it keeps closed. What
 * waits on the open level itself is about to move up, however long that takes.
 */
function isStuck(task: Deciding, openLane: BarrierLane | null): boolean {
  const { rerunning, partitions } = task
  if (unfinishedOf(partitions) === partitions.parked) return !rerunning
  return mayWaitForParked(task) && openLane !== null && holdsBarrierForGood(openLane)
}

function mayWaitForParked({ rerunning, levelBarrier, partitions }: Deciding): boolean {
  const { ready, held, parked } = partitions
  return levelBarrier && !rerunning && parked > 0 && unfinishedOf(partitions) === parked + ready + held
}

/** What follows from the counters: the task's state, and when it came to its end. */
export function bringUpToDate(task: TaskEntry, openLane: BarrierLane | null, at: number): void {
  task.state = taskState(task, openLane)
  if (task.state === 'done' || task.state === 'cancelled') task.finishedAt ??= at
  else task.finishedAt = null
}

/** A task that was done gets new partitions: it begins anew. */
export function beginAnew(task: TaskEntry): void {
  task.generation += 1
  // Also where it is done again before anybody looks: its end is the new one.
  task.finishedAt = null
  task.purgedAt = null
}

/** A worker said how many records of a partition it processed. */
export function countReport(
  counts: Pick<TaskEntry, 'reportedDeclared' | 'reportedRecords' | 'mismatched'>,
  declared: number,
  reported: number,
): void {
  counts.reportedDeclared += declared
  counts.reportedRecords = addCapped(counts.reportedRecords, reported)
  if (reported !== declared) counts.mismatched += 1
}

/** What the row of a finished partition says of its end. */
export interface Finished {
  readonly outcome: string | null
  readonly recordCount: number
  readonly reportedRecords: number | null
}

/** Partitions that were finished are run again: their task is open again, and counts nothing of how they ended. */
export function takeBack(task: TaskEntry, partitions: readonly Finished[]): void {
  if (task.state === 'done') {
    task.generation += 1
    task.state = 'open'
  }
  for (const { outcome, recordCount, reportedRecords } of partitions) {
    if (outcome === 'delivered') task.delivered -= 1
    if (reportedRecords === null) continue
    task.reportedDeclared -= recordCount
    task.reportedRecords = Math.max(0, task.reportedRecords - reportedRecords)
    if (reportedRecords !== recordCount) task.mismatched -= 1
  }
}
