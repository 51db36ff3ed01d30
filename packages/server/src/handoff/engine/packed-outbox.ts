import type { WebhookEventType } from '@baton/protocol'
import { type EventMessage, notAttempted, type OutboxEntry, type StoredDelivery } from '../outbox.ts'

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
  facts: EventMessage['facts'],
]

export const packOutbox = (outbox: OutboxEntry): PackedOutbox => ({
  ...outbox,
  deliveries: outbox.deliveries.map(({ subscription, event, taskId, progress, message }) => {
    const { id, type, generation, facts } = message
    const state = progress === null ? 'pending' : 'kept'
    return [subscription, event, taskId, state, id, type, generation, facts]
  }),
})

/** `at` is the time of the entry. */
export const unpackOutbox = (outbox: PackedOutbox, at: number): OutboxEntry => ({
  ...outbox,
  deliveries: outbox.deliveries.map((one) => {
    if (!isPacked(one)) return one
    const [subscription, event, taskId, state, id, type, generation, facts] = one
    const message = { id, type, generation, facts }
    const progress = state === 'kept' ? notAttempted('kept', at) : null
    return { subscription, event, taskId, at, message, progress }
  }),
})

const isPacked = (delivery: PackedDelivery | StoredDelivery): delivery is PackedDelivery =>
  Array.isArray(delivery)
