import type { DeliveryChange, OutboxEntry, StoredDelivery, StoredSubscription } from '../outbox.ts'

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
