import type { WebhookEventType } from '@baton/protocol'
import { type EventMessage, notAttempted, type StoredSubscription } from '../outbox.ts'
import { finishedOf } from '../rules/task.ts'
import { taskEvents, taskEventTuple } from './packed-outbox.ts'
import type { Memory } from './state/memory.ts'
import type { Task } from './state/memory-rows.ts'
import type { Transaction } from './transaction.ts'

/** Deliveries are part of the entry: call it when everything is concluded. */
export function createDeliveries(tx: Transaction): void {
  const seen = new Set<number>()
  for (const partition of tx.parked) {
    if (partition.state !== 'parked' || seen.has(partition.id)) continue
    seen.add(partition.id)
    const { parentLane: lane, index, spelling, recordCount, attempts, reason } = partition
    const { level, parentTask: task } = lane
    createDelivery(tx, 'partition.parked', task, () => ({
      of: 'partition',
      ...{ level, index, spelling, recordCount, attempts, reason },
    }))
  }
  for (const { row: lane } of tx.touchedLanes) {
    const finished = finishedOf(lane, lane.parentTask)
    if (finished === lane.lastEventFinished) continue
    lane.lastEventFinished = finished
    if (finished !== null && !lane.parentTask.cancelled)
      createDelivery(tx, 'level.done', lane.parentTask, () => ({
        of: 'level',
        level: lane.level,
        partitions: finished,
        records: lane.records.done,
      }))
  }
  for (const { row: task } of tx.touchedTasks) {
    const { state, generation } = task
    if (state === task.lastEventState && generation === task.lastEventGeneration) continue
    const isNew = state !== task.lastEventState || state === 'done'
    task.lastEventState = state
    task.lastEventGeneration = generation
    const type = taskEvents[state]
    if (type !== undefined && isNew) createDelivery(tx, type, task, () => taskEventTuple(task, tx.now))
  }
}

/** Call it before the first subscription is created: subscriptions get no past events. */
export function skipPastEvents({ lanes, tasks }: Memory): void {
  for (const lane of lanes.values()) lane.lastEventFinished = finishedOf(lane, lane.parentTask)
  for (const task of tasks.values()) {
    task.lastEventState = task.state
    task.lastEventGeneration = task.generation
  }
}

/** `facts` is called only if a subscription wants the event. */
function createDelivery(
  tx: Transaction,
  type: WebhookEventType,
  { taskId, generation }: Task,
  facts: () => EventMessage['facts'],
): void {
  let event = 0
  let message: EventMessage | undefined
  for (const subscription of tx.memory.subscriptions.values()) {
    if (!wants(subscription, type, taskId)) continue
    if (message === undefined) {
      event = tx.issue('event')
      message = { id: `evt_${tx.secret()}`, type, generation, facts: facts() }
    }
    const progress = subscription.url === null ? notAttempted('kept', tx.now) : null
    tx.outbox.deliveries.push({ subscription: subscription.id, event, taskId, at: tx.now, message, progress })
  }
}

const wants = (
  { state, types, taskPrefix }: StoredSubscription,
  type: WebhookEventType,
  taskId: string,
): boolean => state === 'active' && types.includes(type) && taskId.startsWith(taskPrefix)
