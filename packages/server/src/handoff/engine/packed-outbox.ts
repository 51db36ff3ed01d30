import type { TaskState, WebhookEventType } from '@baton/protocol'
import {
  type EventMessage,
  notAttempted,
  type OutboxEntry,
  type StoredDelivery,
  type TaskEventTuple,
} from '../outbox.ts'
import { totalOf } from '../rules/task.ts'
import type { StoredTask } from '../stored.ts'

/** The event of a task that enters this state. */
export const taskEvents: Partial<Record<TaskState, WebhookEventType>> = {
  done: 'task.done',
  stalled: 'task.stalled',
  cancelled: 'task.cancelled',
  paused: 'task.paused',
}

/** Everything a follow-up job needs to know about how a task ended, or why it paused itself. */
export function taskEventTuple(task: StoredTask, now: number): TaskEventTuple {
  const { partitions, records, reportedRecords, reportedDeclared, mismatched, firstCallBackAt } = task
  const because = task.state === 'paused' ? task.stamps?.paused?.[2] : undefined
  const summary = [
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
  ] as const
  return because === undefined ? summary : [...summary, because]
}

/** An outbox as an entry stores it. Many tasks may end in one entry, so deliveries are short. */
export type PackedOutbox = Omit<OutboxEntry, 'deliveries'> & {
  readonly deliveries: readonly (PackedTaskDelivery | PackedDelivery)[]
}

/** An event of a task. Everything else about it is in the change of the task, in the same entry. */
type PackedTaskDelivery = readonly [
  subscription: string,
  event: number,
  /** The position of the task in the entry. */
  task: number,
  id: string,
  kept?: 'kept',
]

type PackedDelivery = readonly [
  subscription: string,
  event: number,
  taskId: string,
  state: 'pending' | 'kept',
  id: string,
  type: WebhookEventType,
  generation: number,
  facts: EventMessage['facts'],
]

export function packOutbox(outbox: OutboxEntry, tasks: readonly StoredTask[]): PackedOutbox {
  const positions = new Map(tasks.map(({ taskId }, position) => [taskId, position]))
  return {
    ...outbox,
    deliveries: outbox.deliveries.map(({ subscription, event, taskId, progress, message }) => {
      const { id, type, generation, facts } = message
      const task = 'of' in facts ? undefined : positions.get(taskId)
      if (task !== undefined)
        return progress === null ? [subscription, event, task, id] : [subscription, event, task, id, 'kept']
      const state = progress === null ? 'pending' : 'kept'
      return [subscription, event, taskId, state, id, type, generation, facts]
    }),
  }
}

/** `tasks` and `at` are those of the entry. */
export const unpackOutbox = (
  outbox: PackedOutbox,
  tasks: readonly StoredTask[],
  at: number,
): OutboxEntry => ({
  ...outbox,
  deliveries: outbox.deliveries.map((one) => unpackDelivery(one, tasks, at)),
})

function unpackDelivery(
  packed: PackedTaskDelivery | PackedDelivery,
  tasks: readonly StoredTask[],
  at: number,
): StoredDelivery {
  if (isOfTask(packed)) {
    const [subscription, event, position, id, kept] = packed
    const task = tasks[position]
    const type = task && taskEvents[task.state]
    if (task === undefined || type === undefined)
      throw new Error(`event ${event} is of a task that its entry lacks`)
    const message = { id, type, generation: task.generation, facts: taskEventTuple(task, at) }
    const progress = kept === undefined ? null : notAttempted('kept', at)
    return { subscription, event, taskId: task.taskId, at, message, progress }
  }
  const [subscription, event, taskId, state, id, type, generation, facts] = packed
  const progress = state === 'kept' ? notAttempted('kept', at) : null
  return { subscription, event, taskId, at, message: { id, type, generation, facts }, progress }
}

const isOfTask = (packed: PackedTaskDelivery | PackedDelivery): packed is PackedTaskDelivery =>
  typeof packed[2] === 'number'
