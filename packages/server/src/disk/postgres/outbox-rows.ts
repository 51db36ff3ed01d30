import { MAX_COUNTED_DELIVERIES } from '@baton/protocol'
import {
  type DeliveryBacklog,
  type DeliveryQuery,
  deliveryFields,
  type OutboxDisk,
  type OutboxImages,
  type StoredDelivery,
  type StoredSubscription,
  type SubscriptionRow,
  subscriptionFields,
} from '../../handoff/outbox.ts'
import { Columns, inChunks, plainArray, textArray } from './columns.ts'
import type { Row, Statement } from './session/connection.ts'

export const subscriptionColumns = new Columns<SubscriptionRow>(subscriptionFields)
export const deliveryColumns = new Columns<StoredDelivery>(deliveryFields)

/** Subscriptions and deliveries of a flush. */
export function* outboxStatements({ subscriptions, deliveries, changes }: OutboxImages): Iterable<Statement> {
  yield* subscriptionStatements([...subscriptions])
  for (const chunk of inChunks(deliveries))
    yield {
      text: `INSERT INTO baton.delivery (${deliveryColumns.names.join(', ')})
        SELECT * FROM ${deliveryColumns.unnest('n')} ON CONFLICT DO NOTHING`,
      values: deliveryColumns.arrays(chunk),
    }
  const all = [...changes.values()]
  const changed = all.flatMap(({ progress, ...place }) => (progress === null ? [] : [{ ...place, progress }]))
  for (const chunk of inChunks(changed))
    yield {
      text: `UPDATE baton.delivery d SET progress = n.progress
        FROM unnest($1::text[], $2::bigint[], $3::json[]) AS n (subscription, event, progress)
        WHERE d.subscription = n.subscription AND d.event = n.event`,
      values: [...placesOf(chunk), textArray(chunk.map(({ progress }) => JSON.stringify(progress)))],
    }
  for (const chunk of inChunks(all.filter(({ progress }) => progress === null)))
    yield {
      text: `DELETE FROM baton.delivery d USING unnest($1::text[], $2::bigint[]) AS n (subscription, event)
        WHERE d.subscription = n.subscription AND d.event = n.event`,
      values: placesOf(chunk),
    }
}

function* subscriptionStatements(images: [string, StoredSubscription | null][]): Iterable<Statement> {
  const removed = images.flatMap(([id, row]) => (row === null ? [id] : []))
  const written = images.filter(([, row]) => row !== null)
  if (removed.length > 0)
    yield { text: 'DELETE FROM baton.subscription WHERE id = ANY ($1::text[])', values: [textArray(removed)] }
  if (written.length > 0)
    yield {
      text: `INSERT INTO baton.subscription (id, body) SELECT * FROM unnest($1::text[], $2::json[])
        ON CONFLICT (id) DO UPDATE SET body = excluded.body`,
      values: [
        textArray(written.map(([id]) => id)),
        textArray(written.map(([, row]) => JSON.stringify(row))),
      ],
    }
}

const placesOf = (all: readonly { readonly subscription: string; readonly event: number }[]) => [
  textArray(all.map(({ subscription }) => subscription)),
  plainArray(all.map(({ event }) => event)),
]

export function deliveriesStatement(query: DeliveryQuery): Statement {
  const { subscription, pending, ofTask, after, newestFirst, limit } = query
  const isPending = pending ? 'AND pending' : ''
  const isOfTask = ofTask === null ? '' : 'AND event <= $4 AND task_id = $5'
  return {
    text: `SELECT ${deliveryColumns.asJson('d')} AS row FROM baton.delivery d
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

const readDelivery = ({ row }: Row): StoredDelivery => deliveryColumns.read(row as unknown[])

/** Reads with `run`. */
export const postgresOutbox = (run: (statement: Statement) => Promise<Row[]>): OutboxDisk => ({
  async subscriptions() {
    const rows = await run({ text: 'SELECT body FROM baton.subscription ORDER BY id', values: [] })
    return rows.map((row) => row['body'] as StoredSubscription)
  },
  deliveries: async (query) => (await run(deliveriesStatement(query))).map(readDelivery),
  backlogs: async (subscriptions) => (await run(backlogsStatement(subscriptions))).map(readBacklog),
})
