import { unfinishedOf } from './tally.ts'
import type { TaskEntry } from './task-entry.ts'
import type { TaskFacts, TaskState } from './task-record.ts'

type Deciding = Pick<TaskFacts, 'paused' | 'cancelled' | 'rerunning' | 'partitions'>

export function taskState({ paused, cancelled, rerunning, partitions }: Deciding): TaskState {
  if (cancelled) return 'cancelled'
  const unfinished = unfinishedOf(partitions)
  if (unfinished === 0 && !rerunning) return 'done'
  if (paused) return 'paused'
  return unfinished === partitions.parked && !rerunning ? 'stalled' : 'open'
}

/** What follows from the counters: the task's state, and when it came to its end. */
export function bringUpToDate(task: TaskEntry, at: number): void {
  task.state = taskState(task)
  if (task.state === 'done' || task.state === 'cancelled') task.finishedAt ??= at
  else task.finishedAt = null
}

/** A task that was done gets new partitions: it begins anew. */
export function beginAnew(task: TaskEntry): void {
  task.generation += 1
  task.purgedAt = null
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
