import type { TaskEntry } from './task-entry.ts'
import { taskState } from './task-record.ts'

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
  readonly record_count: number
  readonly reported_records: number | null
}

/** Partitions that were finished are run again: their task is open again, and counts nothing of how they ended. */
export function takeBack(task: TaskEntry, partitions: readonly Finished[]): void {
  if (task.state === 'done') {
    task.generation += 1
    task.state = 'open'
  }
  for (const { outcome, record_count, reported_records } of partitions) {
    if (outcome === 'delivered') task.delivered -= 1
    if (reported_records === null) continue
    task.reportedDeclared -= record_count
    task.reportedRecords = Math.max(0, task.reportedRecords - reported_records)
    if (reported_records !== record_count) task.mismatched -= 1
  }
}
