import { MAX_COUNTED_DELIVERIES } from '@baton/protocol'
import type {
  DeliveryBacklog,
  DeliveryQuery,
  OutboxDisk,
  StoredDelivery,
  StoredSubscription,
} from '../../handoff/outbox.ts'
import type { Row, Statement } from './session/connection.ts'
import { asJson, postgres, textArray } from './tables.ts'

export function deliveriesStatement(query: DeliveryQuery): Statement {
  const { subscription, pending, ofTask, after, newestFirst, limit } = query
  const isPending = pending ? 'AND pending' : ''
  const isOfTask = ofTask === null ? '' : 'AND event <= $4 AND task_id = $5'
  return {
    text: `SELECT ${asJson(postgres.deliveries)} AS row FROM baton.delivery
      WHERE subscription = $1 ${isPending} ${isOfTask} AND event ${newestFirst ? '<' : '>'} $2
      ORDER BY event ${newestFirst ? 'DESC' : ''} LIMIT $3`,
    values: [subscription, after, limit, ...(ofTask === null ? [] : [ofTask.upTo, ofTask.taskId])],
  }
}

const backlogsStatement = (subscriptions: readonly string[]): Statement => ({
  text: `SELECT c.pending::int AS pending, o.at::text AS oldest_at
    FROM unnest($1::text[]) WITH ORDINALITY AS s (id, place)
    CROSS JOIN LATERAL (
      SELECT count(*) AS pending FROM (
        SELECT 1 FROM baton.delivery d WHERE d.subscription = s.id AND d.pending LIMIT $2) AS counted) AS c
    LEFT JOIN LATERAL (
      SELECT d.at FROM baton.delivery d WHERE d.subscription = s.id AND d.pending ORDER BY d.event LIMIT 1) AS o
      ON true
    ORDER BY s.place`,
  values: [textArray(subscriptions), MAX_COUNTED_DELIVERIES],
})

const readBacklog = ({ pending, oldest_at: at }: Row): DeliveryBacklog => ({
  pending: Number(pending),
  oldestAt: at === null ? null : Number(at),
})

const readDelivery = ({ row }: Row): StoredDelivery => postgres.deliveries.read(row as unknown[])

/** Reads with `run`. */
export const postgresOutbox = (run: (statement: Statement) => Promise<Row[]>): OutboxDisk => ({
  async subscriptions() {
    const rows = await run({ text: 'SELECT body FROM baton.subscription ORDER BY id', values: [] })
    return rows.map((row) => row['body'] as StoredSubscription)
  },
  deliveries: async (query) => (await run(deliveriesStatement(query))).map(readDelivery),
  backlogs: async (subscriptions) => (await run(backlogsStatement(subscriptions))).map(readBacklog),
})
