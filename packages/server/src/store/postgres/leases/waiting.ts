import { WAITS } from '../queues/places.ts'
import { statement } from '../session/statement.ts'
import type { Transaction } from '../session/transaction.ts'
import type { PartitionEntry } from './partitions.ts'
import { lockLanesToWake } from './wake.ts'

const readyPlaces = statement(
  'places-of-waiting',
  `SELECT p.id, q.rank::text AS rank_text FROM unnest($1::bigint[], $2::bigint[]) AS a (id, lane)
   CROSS JOIN LATERAL (SELECT id, stay, rank FROM baton.ready WHERE lane = a.lane AND id = a.id OFFSET 0) q
   CROSS JOIN LATERAL (SELECT id FROM baton.partition WHERE id = a.id AND ${WAITS} OFFSET 0) p`,
)

/**
 * Of partitions whose rows are locked: which of those that wait are ready, and at which rank. Places move between
 * `held` and `ready` under the lock of their lane only, so it is taken. Asked for the late word of somebody
 * whose lease expired; nothing else that is said of a lease changes a partition that waits.
 */
export async function tellWaitingApart(tx: Transaction, partitions: Iterable<PartitionEntry>): Promise<void> {
  const waiting = [...partitions].filter(
    ({ state, outcome, taskCancelled }) => state === 'held' && outcome === 'expired' && !taskCancelled,
  )
  if (waiting.length === 0) return
  await lockLanesToWake(tx, waiting)
  const rows = await tx.run(readyPlaces, [waiting.map(({ id }) => id), waiting.map(({ lane }) => lane.id)])
  const ranks = new Map(rows.map((row) => [row['id'] as number, BigInt(row['rank_text'] as string)]))
  for (const partition of waiting) {
    partition.keptRank = ranks.get(partition.id) ?? null
    if (partition.keptRank !== null) partition.state = 'ready'
  }
}
