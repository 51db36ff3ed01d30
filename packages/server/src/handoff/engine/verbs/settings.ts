import { areSame, settingsOf, type TaskSettingsChange } from '../../rules/task-settings.ts'
import type { Task } from '../state/memory.ts'
import type { Transaction } from '../transaction.ts'

/**
 * What holds for a task from now on, in place of what was set before. Leases and back-offs that run are as they were agreed.
 * Its barrier is placed by whoever calls this: that may have to read. Returns whether anything changed.
 */
export function applySettings(tx: Transaction, task: Task, change: TaskSettingsChange): boolean {
  const settings = settingsOf(change)
  const isBarrierNew = change.levelBarrier !== undefined && change.levelBarrier !== task.levelBarrier
  if (areSame(settings, task.settings) && !isBarrierNew) return false
  task.settings = settings
  tx.touchTask(task)
  // Where a limit was raised, its lanes come back; where not, they are set aside again when they are met.
  tx.lines.reopen(task)
  if (!task.paused && !task.cancelled) tx.readied.add(task.taskId, null, task.partitions.ready)
  return true
}
