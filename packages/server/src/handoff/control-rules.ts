import type { ControlOrder, ControlResult } from './control.ts'
import type { TaskEntry } from './task-entry.ts'
import { taskState, totalOf, unfinishedOf } from './task-record.ts'

/** What a step of an order came to. */
export interface Applied {
  readonly changed: number
  readonly readied?: number
  readonly more?: boolean
}

/** Why an order to a task is refused; undefined for one that is carried out. */
export function refusalOf(task: TaskEntry, order: ControlOrder): ControlResult | undefined {
  if (task.cancelled && order.verb !== 'cancel') return { kind: 'task_cancelled' }
  switch (order.verb) {
    case 'pause':
    case 'cancel':
    case 'skip-parked':
      return !task.cancelled && unfinishedOf(task.partitions) === 0 ? { kind: 'task_finished' } : undefined
    case 'seal': {
      const known = totalOf(task.partitions)
      return (order.expectedPartitions ?? known) < known ? { kind: 'more_are_known', known } : undefined
    }
    case 'retry':
      if (order.done && task.sealed && taskState(task) === 'done') return { kind: 'task_sealed' }
      return order.done && task.purgedAt !== null ? { kind: 'task_purged' } : undefined
    case 'resume':
    case 'level-barrier':
      return undefined
  }
}

export function seal(task: TaskEntry, expected: number | null): Applied {
  const changed = task.sealed && (expected === null || task.expectedPartitions === expected) ? 0 : 1
  task.sealed = true
  task.expectedPartitions = expected ?? task.expectedPartitions
  return { changed }
}
