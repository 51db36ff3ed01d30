import { areSame, settingsOf, type TaskSettingsChange } from '../../rules/task-settings.ts'
import type { Task } from '../state/memory-rows.ts'
import type { Transaction } from '../transaction.ts'

/**
 * Replaces the settings of a task. Current leases and back-offs keep their times. The caller places the
 * barrier, because that may need to load rows. Returns whether anything changed.
 */
export function applySettings(tx: Transaction, task: Task, change: TaskSettingsChange): boolean {
  const settings = settingsOf(change)
  const isBarrierNew = change.levelBarrier !== undefined && change.levelBarrier !== task.levelBarrier
  if (areSame(settings, task.settings) && !isBarrierNew) return false
  task.settings = settings
  tx.touchTask(task)
  // If a limit was raised, the task's lanes can be served again. If not, they are set aside again at the
  // front of the order.
  tx.lines.reopen(task)
  if (!task.paused && !task.cancelled) tx.readied.add(task.taskId, null, task.partitions.ready)
  return true
}
