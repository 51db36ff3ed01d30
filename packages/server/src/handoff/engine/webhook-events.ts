import type { WebhookEventType } from '@baton/protocol'
import { type EventMessage, notAttempted, type StoredSubscription, type TaskSummary } from '../outbox.ts'
import { finishedOf, type TaskState, totalOf } from '../rules/task.ts'
import type { Memory } from './state/memory.ts'
import type { Task } from './state/memory-rows.ts'
import type { Transaction } from './transaction.ts'

/**
 * Creates the webhook deliveries of a transaction, as part of its entry. Call it when everything is
 * concluded, and only while there are subscriptions.
 */
export function createDeliveries(tx: Transaction): void {
  const seen = new Set<number>()
  for (const partition of tx.parked) {
    if (partition.state !== 'parked' || seen.has(partition.id)) continue
    seen.add(partition.id)
    const { parentLane: lane, index, spelling, recordCount, attempts, reason } = partition
    const { level, parentTask: task } = lane
    const facts = { of: 'partition' as const, level, index, spelling, recordCount, attempts, reason }
    createDelivery(tx, 'partition.parked', task, facts)
  }
  for (const lane of tx.touchedLanes) {
    const finished = finishedOf(lane.partitions)
    if (finished === lane.lastEventFinished) continue
    lane.lastEventFinished = finished
    if (finished !== null && !lane.parentTask.cancelled)
      createDelivery(tx, 'level.done', lane.parentTask, {
        of: 'level',
        level: lane.level,
        partitions: finished,
        records: lane.records.done,
      })
  }
  for (const task of tx.touchedTasks) {
    const { state, generation } = task
    if (state === task.lastEventState && generation === task.lastEventGeneration) continue
    const isNew = state !== task.lastEventState || state === 'done'
    task.lastEventState = state
    task.lastEventGeneration = generation
    const type = eventOf[state]
    if (type !== undefined && isNew) createDelivery(tx, type, task, summaryOf(task, tx.now))
  }
}

/** Call it before the first subscription is created: subscriptions get no past events. */
export function skipPastEvents({ lanes, tasks }: Memory): void {
  for (const lane of lanes.values()) lane.lastEventFinished = finishedOf(lane.partitions)
  for (const task of tasks.values()) {
    task.lastEventState = task.state
    task.lastEventGeneration = task.generation
  }
}

const eventOf: Partial<Record<TaskState, WebhookEventType>> = {
  done: 'task.done',
  stalled: 'task.stalled',
  cancelled: 'task.cancelled',
}

function createDelivery(
  tx: Transaction,
  type: WebhookEventType,
  task: Task,
  facts: EventMessage['facts'],
): void {
  const { taskId, generation } = task
  const interested = [...tx.memory.subscriptions.values()].filter((one) => wants(one, type, taskId))
  if (interested.length === 0) return
  const event = tx.issue('event')
  const message = { id: `evt_${tx.secret()}`, type, generation, facts }
  for (const { id: subscription, url } of interested) {
    const progress = url === null ? notAttempted('kept', tx.now) : null
    tx.outbox.deliveries.push({ subscription, event, taskId, at: tx.now, message, progress })
  }
}

export const wants = (
  { state, types, taskPrefix }: StoredSubscription,
  type: WebhookEventType,
  taskId: string,
): boolean => state === 'active' && types.includes(type) && taskId.startsWith(taskPrefix)

/** Everything a follow-up job needs to know about how a task ended. */
function summaryOf(task: Task, now: number): TaskSummary {
  const { partitions, records, reportedRecords, reportedDeclared, mismatched, firstCallBackAt } = task
  return [
    totalOf(partitions),
    partitions.done,
    partitions.parked,
    totalOf(records),
    records.done,
    reportedRecords,
    reportedDeclared,
    mismatched,
    partitions.done + task.attemptsWasted,
    firstCallBackAt,
    task.finishedAt ?? now,
  ]
}
