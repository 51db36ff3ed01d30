import type { ControlOrder, ControlResult } from './control.ts'
import { totalOf } from './tally.ts'
import { isDone } from './task-course.ts'
import type { TaskEntry } from './task-entry.ts'

/** Why an order to a task is refused; undefined for one that is carried out. */
export function refusalOf(task: TaskEntry, order: ControlOrder): ControlResult | undefined {
  if (task.cancelled && order.verb !== 'cancel') return { kind: 'task_cancelled' }
  switch (order.verb) {
    case 'pause':
    case 'cancel':
    case 'skip-parked':
      return isDone(task) ? { kind: 'task_finished' } : undefined
    case 'seal': {
      const known = totalOf(task.partitions)
      return (order.expectedPartitions ?? known) < known ? { kind: 'more_are_known', known } : undefined
    }
    case 'retry':
      if (order.done && task.sealed && isDone(task)) return { kind: 'task_sealed' }
      return order.done && task.purgedAt !== null ? { kind: 'task_purged' } : undefined
    case 'resume':
    case 'level-barrier':
    case 'settings':
      return undefined
  }
}
