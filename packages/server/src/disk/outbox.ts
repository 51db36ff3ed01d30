import { MAX_COUNTED_DELIVERIES } from '@baton/protocol'
import type { DeliveryBacklog, OutboxDisk } from '../handoff/outbox.ts'
import type { SqlTables } from './sql-tables.ts'
import { LIMIT, type Query, rowsOf, type Session, select } from './statements.ts'

/** Subscriptions and their deliveries. */
export function outboxBy(session: Session, tables: SqlTables): OutboxDisk {
  const rows = rowsOf(tables.deliveries)
  const subscriptions = select(rowsOf(tables.subscriptions), 'ORDER BY id')
  const oldest = select(rows, `WHERE subscription = ? AND event > ? ORDER BY event ${LIMIT}`)
  const newest = select(rows, `WHERE subscription = ? AND event < ? ORDER BY event DESC ${LIMIT}`)
  const ofSubscription = `${tables.where.pendingDeliveries} AND subscription = ?`
  const pendingOnes = select(rows, `${ofSubscription} AND event > ? ORDER BY event ${LIMIT}`)
  const pendingOfTask = select(
    rows,
    `${ofSubscription} AND event > ? AND event <= ? AND task_id = ? ORDER BY event ${LIMIT}`,
  )
  // Events are numbered as they happen, so the first one is the oldest.
  const backlog: Query<DeliveryBacklog> = {
    selected: 'count(*), min(at)',
    from: `(SELECT at FROM ${rows.from} ${ofSubscription} ORDER BY event LIMIT ${MAX_COUNTED_DELIVERIES}) listed`,
    read: ([pending, oldestAt]) => ({ pending, oldestAt }) as DeliveryBacklog,
  }
  return {
    subscriptions: async () => (await session.all(subscriptions)).map(({ body }) => body),
    deliveries({ subscription, pending, ofTask, after, newestFirst, limit }) {
      if (!pending) return session.all(newestFirst ? newest : oldest, subscription, after, limit)
      if (ofTask === null) return session.all(pendingOnes, subscription, after, limit)
      return session.all(pendingOfTask, subscription, after, ofTask.upTo, ofTask.taskId, limit)
    },
    backlogs: async (ids) =>
      (await session.lists(ids.map((id) => ({ query: backlog, values: [id] })))).flat(),
  }
}
