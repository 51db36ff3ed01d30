import type { LeaseRef } from '../../handoff/lease-id.ts'
import type { Policy } from '../../handoff/policy.ts'
import { type Change, judgeSettlement } from '../../handoff/settlement.ts'
import type { HandOffBatch } from '../../handoff/store.ts'
import type { CountDeltas } from './count-deltas.ts'
import { NOW, statement } from './statement.ts'
import type { Transaction } from './transactions.ts'

/**
 * What nearly every settlement is: done, of a lease that runs. One update finds the rows, makes sure
 * of that and writes; the verdict is the same as the core's, which judges all others. Locking rows
 * first, as for those, costs as much again as the update. The state is a parameter, or the planner
 * takes the index of all running leases for a way to find a few of them. The time when the lease
 * would have ended stays in the row: the update returns it, and so finds its place in the queue.
 */
const finish = statement(
  'finish-plain',
  `WITH asked AS MATERIALIZED (
     SELECT s.*, p.lane, p.level, p.record_count, t.task, t.level_barrier
     FROM unnest($1::bigint[], $2::int[], $3::text[], $4::bigint[]) AS s (id, term, secret, reported)
     CROSS JOIN LATERAL (SELECT lane, level, record_count FROM baton.partition WHERE id = s.id OFFSET 0) p
     CROSS JOIN LATERAL (
       SELECT l.task, t.level_barrier FROM baton.lane l JOIN baton.task t ON t.id = l.task
       WHERE l.id = p.lane AND NOT t.cancelled OFFSET 0
     ) t
   ), finished AS (
     UPDATE baton.partition p SET state = $5, outcome = $9, releases = $10, attempts = p.attempts + $8,
       settled_at = coalesce($6, ${NOW}), reported_records = coalesce(s.reported, p.reported_records)
     FROM asked s
     WHERE p.id = s.id AND p.term = s.term AND p.secret = s.secret AND p.state = $7 AND p.outcome IS NULL
     RETURNING p.id, s.lane, s.level, s.record_count, p.settled_at, p.due_at, s.task, s.level_barrier
   ), ended AS (
     DELETE FROM baton.due d USING finished f WHERE NOT d.delayed AND d.due_at = f.due_at AND d.id = f.id
   )
   SELECT id, lane, level, record_count, settled_at, task, level_barrier FROM finished`,
)

export interface PlainlyFinished {
  readonly partitions: ReadonlySet<number>
  readonly mayOpenLevels: boolean
}

interface Plain {
  readonly lease: LeaseRef
  readonly reported: number | null
}

/** Settlements of partitions that are mentioned once in the whole batch; a second mention needs the first one's outcome. */
function plainOf({ settles, renews, undos }: HandOffBatch): Map<number, Plain> {
  const plain = new Map<number, Plain>()
  const mentioned = new Set<number>()
  for (const { settlements } of settles) {
    for (const { lease, order } of settlements) {
      if (mentioned.has(lease.partition)) plain.delete(lease.partition)
      else if (order.outcome === 'done') plain.set(lease.partition, { lease, reported: order.records })
      mentioned.add(lease.partition)
    }
  }
  for (const { leases } of renews) for (const { partition } of leases) plain.delete(partition)
  for (const { partition } of undos) plain.delete(partition)
  return plain
}

/** What the core makes of such a settlement, for a lease of a first attempt; attempts are added to those before. */
function plainVerdict(policy: Policy): Change {
  const lease = { partition: 1, term: 1, secret: '' }
  const running = { outcome: null, attempts: 0, releasesInARow: 0, taskCancelled: false }
  const order = {
    outcome: 'done',
    reason: null,
    retryAfterMillis: null,
    final: false,
    records: null,
  } as const
  const verdict = judgeSettlement({ state: 'leased', ...lease, ...running }, lease, order, policy, 0)
  if (verdict.refused !== null || verdict.change === null)
    throw new Error('a running lease cannot be settled as done')
  return verdict.change
}

/** Settles all that is plain and tells which; whatever is not among them is left to be judged. */
export async function finishPlain(
  tx: Transaction,
  batch: HandOffBatch,
  deltas: CountDeltas,
  policy: Policy,
): Promise<PlainlyFinished> {
  const plain = plainOf(batch)
  if (plain.size === 0) return { partitions: new Set(), mayOpenLevels: false }
  // In the order of their ids, like everyone who locks several.
  const asked = [...plain.values()].sort((a, b) => a.lease.partition - b.lease.partition)
  const verdict = plainVerdict(policy)
  const { to } = verdict
  const rows = await tx.write(finish, [
    asked.map(({ lease }) => lease.partition),
    asked.map(({ lease }) => lease.term),
    asked.map(({ lease }) => lease.secret),
    asked.map(({ reported }) => reported),
    to,
    tx.knownNow,
    'leased',
    verdict.attempts,
    verdict.outcome,
    verdict.releasesInARow,
  ])
  const [first] = rows
  if (first !== undefined) tx.learnNow(first['settled_at'] as number)
  const partitions = new Set<number>()
  let mayOpenLevels = false
  for (const row of rows) {
    const id = row['id'] as number
    const lane = { id: row['lane'] as number, task: row['task'] as number, level: row['level'] as number }
    const recordCount = row['record_count'] as number
    const reported = plain.get(id)?.reported ?? null
    deltas.move(lane, 'leased', to, recordCount)
    deltas.finished(lane, recordCount)
    if (reported !== null) deltas.reported(lane, recordCount, reported)
    partitions.add(id)
    if (row['level_barrier'] === true) mayOpenLevels = true
  }
  return { partitions, mayOpenLevels }
}
