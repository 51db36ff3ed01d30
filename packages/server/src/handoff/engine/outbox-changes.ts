import type { WebhookEventType } from '@baton/protocol'
import {
  type DeliveryChange,
  type EventFacts,
  notAttempted,
  type OutboxEntry,
  type StoredDelivery,
  type StoredSubscription,
  type TaskEventFacts,
} from '../outbox.ts'

/** The changes of one transaction to the outbox. */
export class OutboxChanges {
  readonly subscriptions = new Map<string, StoredSubscription | null>()
  readonly deliveries: StoredDelivery[] = []
  readonly changes: DeliveryChange[] = []

  get isEmpty(): boolean {
    return this.subscriptions.size === 0 && this.deliveries.length === 0 && this.changes.length === 0
  }

  entry(): OutboxEntry | null {
    if (this.isEmpty) return null
    const { subscriptions, deliveries, changes } = this
    return { subscriptions: [...subscriptions], deliveries, changes }
  }
}

/** An outbox as an entry stores it. Many tasks may end in one entry, so deliveries are short. */
export type PackedOutbox = Omit<OutboxEntry, 'deliveries'> & {
  // Entries written before deliveries were packed have them as they are.
  readonly deliveries: readonly (PackedDelivery | StoredDelivery)[]
}

type PackedDelivery = readonly [
  subscription: string,
  event: number,
  taskId: string,
  state: 'pending' | 'kept',
  id: string,
  type: WebhookEventType,
  generation: number,
  facts: readonly number[] | EventFacts,
]

export const packOutbox = (outbox: OutboxEntry): PackedOutbox => ({
  ...outbox,
  deliveries: outbox.deliveries.map(({ subscription, event, taskId, progress, message }) => {
    const { id, type, generation, facts } = message
    const state = progress === null ? 'pending' : 'kept'
    const packed = facts.of === 'task' ? packTaskFacts(facts) : facts
    return [subscription, event, taskId, state, id, type, generation, packed]
  }),
})

/** `at` is the time of the entry. */
export const unpackOutbox = (outbox: PackedOutbox, at: number): OutboxEntry => ({
  ...outbox,
  deliveries: outbox.deliveries.map((one) => {
    if (!isPacked(one)) return one
    const [subscription, event, taskId, state, id, type, generation, packed] = one
    const facts = 'of' in packed ? packed : unpackTaskFacts(packed)
    const message = { id, type, generation, facts }
    const progress = state === 'kept' ? notAttempted('kept', at) : null
    return { subscription, event, taskId, at, message, progress }
  }),
})

const isPacked = (delivery: PackedDelivery | StoredDelivery): delivery is PackedDelivery =>
  Array.isArray(delivery)

const packTaskFacts = ({ partitions, records, ...facts }: TaskEventFacts): number[] => [
  partitions.total,
  partitions.done,
  partitions.parked,
  records.declared,
  records.done,
  facts.reportedRecords,
  facts.reportedDeclared,
  facts.mismatched,
  facts.attempts,
  facts.firstCallBackAt,
  facts.endedAt,
]

function unpackTaskFacts(values: readonly number[]): TaskEventFacts {
  const [total = 0, done = 0, parked = 0, declared = 0, recordsDone = 0, ...rest] = values
  const [reportedRecords = 0, reportedDeclared = 0, mismatched = 0, attempts = 0] = rest
  const [firstCallBackAt = 0, endedAt = 0] = rest.slice(4)
  return {
    of: 'task',
    partitions: { total, done, parked },
    records: { declared, done: recordsDone },
    reportedRecords,
    reportedDeclared,
    mismatched,
    attempts,
    firstCallBackAt,
    endedAt,
  }
}
