import { MAX_COUNTED_DELIVERIES } from '@baton/protocol'
import type {
  DeliveryBacklog,
  DeliveryQuery,
  OutboxImages,
  StoredDelivery,
  StoredSubscription,
} from '../../handoff/outbox.ts'

/** The outbox of a medium in memory. Its rows are never changed in place, so they need no copies. */
export class MemoryOutbox {
  readonly #subscriptions = new Map<string, StoredSubscription>()
  readonly #deliveries = new Map<string, StoredDelivery>()

  write({ subscriptions, deliveries, changes }: OutboxImages): void {
    for (const [id, row] of subscriptions)
      if (row === null) this.#subscriptions.delete(id)
      else this.#subscriptions.set(id, row)
    for (const [key, delivery] of deliveries)
      if (!this.#deliveries.has(key)) this.#deliveries.set(key, delivery)
    for (const [key, { progress }] of changes) {
      const delivery = this.#deliveries.get(key)
      if (delivery === undefined) continue
      if (progress === null) this.#deliveries.delete(key)
      else this.#deliveries.set(key, { ...delivery, progress })
    }
  }

  subscriptions(): StoredSubscription[] {
    return [...this.#subscriptions.values()].sort((a, b) => (a.id < b.id ? -1 : 1))
  }

  deliveries({ subscription, pending, taskId, after, newestFirst, limit }: DeliveryQuery): StoredDelivery[] {
    const found = this.#inOrder().filter(
      (one) =>
        one.subscription === subscription &&
        (!pending || one.progress.state === 'pending') &&
        (taskId === null || one.taskId === taskId) &&
        (newestFirst ? one.event < after : one.event > after),
    )
    return (newestFirst ? found.reverse() : found).slice(0, limit)
  }

  backlogs(subscriptions: readonly string[]): DeliveryBacklog[] {
    return subscriptions.map((subscription) => {
      const pending = this.#inOrder().filter(
        (one) => one.subscription === subscription && one.progress.state === 'pending',
      )
      return { pending: Math.min(pending.length, MAX_COUNTED_DELIVERIES), oldestAt: pending[0]?.at ?? null }
    })
  }

  #inOrder(): StoredDelivery[] {
    return [...this.#deliveries.values()].sort((a, b) => a.event - b.event)
  }
}
