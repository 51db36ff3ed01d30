import { emptyRowOf } from '../fields.ts'
import type { OpenWorkLimits, TooManyLanes } from '../rules/open-work-limits.ts'
import { noTallies } from '../rules/task.ts'
import { taskFields } from '../stored.ts'
import type { Memory } from './state/memory.ts'
import type { Task } from './state/memory-rows.ts'
import type { Transaction } from './transaction.ts'

const emptyTask = emptyRowOf(taskFields)

export function newTask(tx: Transaction, taskId: string): Task {
  return tx.addTask({
    ...emptyTask(),
    id: tx.issue('task'),
    taskId,
    state: 'open',
    levelBarrier: tx.policy.levelBarrier,
    generation: 1,
    firstCallBackAt: tx.now,
    lastCallBackAt: tx.now,
    ...noTallies(),
  })
}

const TASKS_NAMED = 3

export const tooManyLanes = (memory: Memory, { lanes: most }: OpenWorkLimits): TooManyLanes => ({
  kind: 'too_many_lanes',
  most,
  tasks: memory.widestTasks(TASKS_NAMED),
})
