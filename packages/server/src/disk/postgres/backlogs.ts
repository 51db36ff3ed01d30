import { MAX_COUNTED_DELIVERIES } from '@baton/protocol'
import type { DeliveryBacklog } from '../../handoff/outbox.ts'
import type { Row, Statement } from './session/connection.ts'
import { textArray } from './tables.ts'

export const backlogsStatement = (subscriptions: readonly string[]): Statement => ({
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

export const readBacklog = ({ pending, oldest_at: at }: Row): DeliveryBacklog => ({
  pending: Number(pending),
  oldestAt: at === null ? null : Number(at),
})
