import type { DatabaseSync } from 'node:sqlite'
import { MAX_COUNTED_DELIVERIES } from '@baton/protocol'
import {
  type DeliveryBacklog,
  type DeliveryQuery,
  deliveryFields,
  type OutboxImages,
  type StoredDelivery,
  type StoredSubscription,
  type SubscriptionRow,
  subscriptionFields,
} from '../../handoff/outbox.ts'
import { finder, inserter, Table } from './tables.ts'

export const subscriptionTable = new Table<SubscriptionRow>('subscription', subscriptionFields)
export const deliveryTable = new Table<StoredDelivery>('delivery', deliveryFields)

/**
 * Pending is null when nothing is left to do. Most deliveries are written before their first attempt, with a
 * progress of null, so that no JSON is parsed then.
 */
export const deliverySchema = `
-- Events for subscriptions, one row for each subscription.
CREATE TABLE delivery (
  ${deliveryTable.declarations},
  pending INTEGER GENERATED ALWAYS AS (
    CASE WHEN progress IS NULL OR json_extract(progress, '$.state') = 'pending' THEN 1 END) STORED,
  PRIMARY KEY (subscription, event)
) STRICT, WITHOUT ROWID;
CREATE INDEX delivery_pending ON delivery (subscription, event) WHERE pending IS NOT NULL;
`

export class OutboxRows {
  readonly #sql: ReturnType<typeof prepare>

  constructor(db: DatabaseSync) {
    this.#sql = prepare(db)
  }

  /** Must be called within a transaction. */
  write({ subscriptions, deliveries, changes }: OutboxImages): void {
    for (const [id, row] of subscriptions) {
      if (row === null) this.#sql.removeSubscription.run(id)
      else this.#sql.subscription.run(...subscriptionTable.values({ id, body: row }))
    }
    this.#sql.insertDeliveries(deliveries)
    for (const { subscription, event, progress } of changes.values()) {
      if (progress === null) this.#sql.removeDelivery.run(subscription, event)
      else this.#sql.change.run(JSON.stringify(progress), subscription, event)
    }
  }

  subscriptions(): StoredSubscription[] {
    return this.#sql.subscriptions.all().map(({ body }) => body)
  }

  deliveries({ subscription, pending, ofTask, after, newestFirst, limit }: DeliveryQuery): StoredDelivery[] {
    const { log, newest, pendingOnes, pendingOfTask } = this.#sql
    if (!pending) return (newestFirst ? newest : log).all(subscription, after, limit)
    if (ofTask === null) return pendingOnes.all(subscription, after, limit)
    return pendingOfTask.all(subscription, after, ofTask.upTo, ofTask.taskId, limit)
  }

  backlogs(subscriptions: readonly string[]): DeliveryBacklog[] {
    return subscriptions.map((subscription) => {
      const [oldest] = this.#sql.pendingOnes.all(subscription, 0, 1)
      if (oldest === undefined) return { pending: 0, oldestAt: null }
      const row = this.#sql.pendingCount.get(subscription, MAX_COUNTED_DELIVERIES)
      return { pending: Number(row?.['pending']), oldestAt: oldest.at }
    })
  }
}

function prepare(db: DatabaseSync) {
  const deliveries = (rest: string) => finder(db, deliveryTable, rest)
  return {
    subscription: db.prepare(subscriptionTable.upsert('id')),
    removeSubscription: db.prepare('DELETE FROM subscription WHERE id = ?'),
    subscriptions: finder(db, subscriptionTable, 'ORDER BY id'),
    insertDeliveries: inserter(db, deliveryTable, 'ON CONFLICT DO NOTHING'),
    change: db.prepare('UPDATE delivery SET progress = ? WHERE subscription = ? AND event = ?'),
    removeDelivery: db.prepare('DELETE FROM delivery WHERE subscription = ? AND event = ?'),
    log: deliveries('WHERE subscription = ? AND event > ? ORDER BY event LIMIT ?'),
    newest: deliveries('WHERE subscription = ? AND event < ? ORDER BY event DESC LIMIT ?'),
    pendingOnes: deliveries(
      'INDEXED BY delivery_pending WHERE subscription = ? AND pending IS NOT NULL AND event > ? ORDER BY event LIMIT ?',
    ),
    pendingCount: db.prepare(
      `SELECT count(*) AS pending FROM (
        SELECT 1 FROM delivery INDEXED BY delivery_pending WHERE subscription = ? AND pending IS NOT NULL LIMIT ?)`,
    ),
    pendingOfTask: deliveries(
      'INDEXED BY delivery_pending WHERE subscription = ? AND pending IS NOT NULL AND event > ? AND event <= ? AND task_id = ? ORDER BY event LIMIT ?',
    ),
  }
}
