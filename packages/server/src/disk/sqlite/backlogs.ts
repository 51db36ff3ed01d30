import type { DatabaseSync } from 'node:sqlite'
import { MAX_COUNTED_DELIVERIES } from '@baton/protocol'
import type { DeliveryBacklog } from '../../handoff/outbox.ts'
import { arrayQuery } from './tables.ts'

/** Counts the pending deliveries of subscriptions. */
export class Backlogs {
  readonly #sql: ReturnType<typeof prepare>

  constructor(db: DatabaseSync) {
    this.#sql = prepare(db)
  }

  of(subscriptions: readonly string[]): DeliveryBacklog[] {
    return subscriptions.map((subscription) => {
      const [oldestAt] = this.#sql.oldest.get(subscription) ?? []
      if (oldestAt === undefined) return { pending: 0, oldestAt: null }
      const [pending] = this.#sql.count.get(subscription, MAX_COUNTED_DELIVERIES) ?? [0]
      return { pending, oldestAt }
    })
  }
}

function prepare(db: DatabaseSync) {
  const pending = 'FROM delivery INDEXED BY delivery_pending WHERE subscription = ? AND pending IS NOT NULL'
  return {
    oldest: arrayQuery<[at: number]>(db, `SELECT at ${pending} ORDER BY event LIMIT 1`),
    count: arrayQuery<[pending: number]>(db, `SELECT count(*) FROM (SELECT 1 ${pending} LIMIT ?)`),
  }
}
