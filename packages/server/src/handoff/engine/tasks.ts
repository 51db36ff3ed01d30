import type { OpenWorkLimits, TooManyLanes } from '../rules/open-work-limits.ts'
import { noTallies } from '../rules/task.ts'
import type { Memory } from './state/memory.ts'
import type { Task } from './state/memory-rows.ts'
import type { Transaction } from './transaction.ts'

export function newTask(tx: Transaction, taskId: string): Task {
  return tx.addTask({
    id: tx.issue('task'),
    taskId,
    state: 'open',
    paused: false,
    cancelled: false,
    sealed: false,
    expectedPartitions: null,
    levelBarrier: tx.policy.levelBarrier,
    settings: null,
    openLevel: null,
    generation: 1,
    firstCallBackAt: tx.now,
    lastCallBackAt: tx.now,
    finishedAt: null,
    purgedAt: null,
    delivered: 0,
    attemptsWasted: 0,
    reportedDeclared: 0,
    reportedRecords: 0,
    mismatched: 0,
    ...noTallies(),
    owners: [],
    reruns: [],
    failures: null,
    failureWindow: '',
    durations: [],
    stamps: null,
    staging: null,
  })
}

const TASKS_NAMED = 3

export const tooManyLanes = (memory: Memory, { lanes: most }: OpenWorkLimits): TooManyLanes => ({
  kind: 'too_many_lanes',
  most,
  tasks: memory.widestTasks(TASKS_NAMED),
})
