import { partitionName, type WebhookEventType } from '@baton/protocol'
import { notAttempted, type StoredSubscription } from '../outbox.ts'
import { totalOf, unfinishedOf } from '../rules/tally.ts'
import type { TaskState } from '../rules/task-facts.ts'
import type { Lane, Task } from './memory.ts'
import type { Transaction } from './transaction.ts'

/**
 * What subscriptions are told of a transaction, as part of its entry. Called when everything is concluded. Without
 * subscriptions it only remembers what it would have told: one that is made later is not told of the past.
 */
export function tellEvents(tx: Transaction): void {
  const { subscriptions } = tx.memory
  const told = new Set<number>()
  if (subscriptions.size > 0)
    for (const partition of tx.parked) {
      if (partition.state !== 'parked' || told.has(partition.id)) continue
      told.add(partition.id)
      const { home, index, spelling, recordCount, attempts, reason } = partition
      tell(tx, 'partition.parked', home.owner, {
        partition_name: spelling ?? partitionName(home.owner.taskId, home.level, index),
        priorityLevel: home.level,
        record_count: recordCount,
        attempts,
        reason,
      })
    }
  for (const lane of tx.touchedLanes) {
    const finished = finishedOf(lane)
    if (finished === lane.toldFinished) continue
    lane.toldFinished = finished
    if (finished !== null && subscriptions.size > 0 && !lane.owner.cancelled)
      tell(tx, 'level.done', lane.owner, {
        priorityLevel: lane.level,
        partitions: finished,
        records: lane.records.done,
      })
  }
  for (const task of tx.touchedTasks) {
    const { state, generation } = task
    if (state === task.toldState && generation === task.toldGeneration) continue
    const isNew = state !== task.toldState || state === 'done'
    task.toldState = state
    task.toldGeneration = generation
    const type = eventOf[state]
    if (type !== undefined && isNew && subscriptions.size > 0) tell(tx, type, task, summaryOf(task, tx.now))
  }
}

const eventOf: Partial<Record<TaskState, WebhookEventType>> = {
  done: 'task.done',
  stalled: 'task.stalled',
  cancelled: 'task.cancelled',
}

/** How many partitions of a lane are done, if all of them are. */
export function finishedOf({ partitions }: Pick<Lane, 'partitions'>): number | null {
  return partitions.done > 0 && partitions.cancelled === 0 && unfinishedOf(partitions) === 0
    ? partitions.done
    : null
}

function tell(tx: Transaction, type: WebhookEventType, task: Task, facts: Record<string, unknown>): void {
  const { taskId, generation } = task
  const interested = [...tx.memory.subscriptions.values()].filter((one) => wants(one, type, taskId))
  if (interested.length === 0) return
  const event = tx.issue('event')
  const message = { id: `evt_${tx.secret()}`, type, data: { taskId, generation, ...facts } }
  for (const { id: subscription, url } of interested) {
    const progress = notAttempted(url === null ? 'kept' : 'pending', tx.now)
    tx.outbox.deliveries.push({ subscription, event, taskId, at: tx.now, message, progress })
  }
}

export const wants = (
  { state, types, taskPrefix }: StoredSubscription,
  type: WebhookEventType,
  taskId: string,
): boolean => state === 'active' && types.includes(type) && taskId.startsWith(taskPrefix)

/** Everything that a next step needs to know of how a task ended. */
function summaryOf(task: Task, now: number): Record<string, unknown> {
  const { partitions, records, firstCallBackAt } = task
  const endedAt = task.finishedAt ?? now
  return {
    partitions: { total: totalOf(partitions), done: partitions.done, parked: partitions.parked },
    records: {
      declared: totalOf(records),
      done: records.done,
      reported: task.reportedRecords,
      // What was declared of those partitions whose workers reported: the sum to compare `reported` with.
      reportedOf: task.reportedDeclared,
      mismatchedPartitions: task.mismatched,
    },
    attempts: partitions.done + task.attemptsWasted,
    firstCallBackAt: new Date(firstCallBackAt).toISOString(),
    endedAt: new Date(endedAt).toISOString(),
    durationSeconds: (endedAt - firstCallBackAt) / 1000,
  }
}
