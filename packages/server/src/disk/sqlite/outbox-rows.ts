import type { DatabaseSync } from 'node:sqlite'
import { MAX_COUNTED_DELIVERIES } from '@baton/protocol'
import type {
  DeliveryBacklog,
  DeliveryQuery,
  StoredDelivery,
  StoredSubscription,
} from '../../handoff/outbox.ts'
import { finder, sqlite } from './tables.ts'

export class OutboxRows {
  readonly #sql: ReturnType<typeof prepare>

  constructor(db: DatabaseSync) {
    this.#sql = prepare(db)
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
  const deliveries = (rest: string) => finder(db, sqlite.deliveries, rest)
  return {
    subscriptions: finder(db, sqlite.subscriptions, 'ORDER BY id'),
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
