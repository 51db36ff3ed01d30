import type { CalledBackPartition } from '@baton/protocol'
import { totalOf } from './tally.ts'
import type { TaskEntry } from './task-entry.ts'

export interface CallBackRefusal {
  readonly kind: 'task_cancelled' | 'task_sealed' | 'record_total_too_large'
}

/** Why a task takes no new partitions with so many records; undefined if it does. Repeated ones are never refused. */
export function refusalOfNew(task: TaskEntry, records: number): CallBackRefusal | undefined {
  if (task.cancelled) return { kind: 'task_cancelled' }
  if (task.sealed) return { kind: 'task_sealed' }
  return Number.isSafeInteger(totalOf(task.records) + records)
    ? undefined
    : { kind: 'record_total_too_large' }
}

/** Whether what is called back again says the same as the first time. */
export function isSamePartition(a: CalledBackPartition, b: CalledBackPartition): boolean {
  return (
    a.recordCount === b.recordCount && a.computeTableName === b.computeTableName && a.spelling === b.spelling
  )
}
