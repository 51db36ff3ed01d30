import type { LeaseRef } from '../../../handoff/rules/lease-id.ts'
import type { Policy } from '../../../handoff/rules/policy.ts'
import { type Change, judgeSettlement } from '../../../handoff/rules/settlement.ts'
import type { HandOffBatch } from '../../../handoff/store.ts'
import type { CountDeltas } from '../counters/count-deltas.ts'
import { setsLeftBy } from '../queues/due-sets.ts'
import { besideId } from '../rows/beside-ids.ts'
import { NOW, statement } from '../session/statement.ts'
import { textArray } from '../session/text-arrays.ts'
import type { Transaction } from '../session/transaction.ts'

/**
 * In SQL: the time, which may be given. A statement that is a transaction of its own first takes the lock of its
 * connection, which is a parameter; see `runAlone`.
 */
export const clock = (lock: number | null) =>
  `clock AS MATERIALIZED (SELECT coalesce($1::bigint, ${NOW}) AS now${lock === null ? '' : ` FROM pg_advisory_xact_lock($${lock}::bigint)`})`

/** In SQL: one of the arrays beside the ids of the settled partitions. */
const settled = (elements: string) => besideId(elements, '$2::bigint[]')

/** In SQL: the lanes whose partitions are settled, by the partitions or, where they are known, by their ids. */
const lanesOf = {
  partitions: `SELECT p.lane AS id, l.task FROM (
         SELECT DISTINCT p.lane FROM unnest($2::bigint[]) AS a (id)
         CROSS JOIN LATERAL (SELECT lane FROM baton.partition WHERE id = a.id OFFSET 0) p
       ) p CROSS JOIN LATERAL (SELECT task FROM baton.lane WHERE id = p.lane OFFSET 0) l`,
  lanes: 'SELECT id, task FROM baton.lane WHERE id = ANY ($11::bigint[])',
}

/**
 * What nearly every settlement is: done, of a lease that runs. One update finds the rows, makes sure
 * of that and writes; the verdict is the same as the core's, which judges all others. Locking rows
 * first, as for those, costs as much again as the update. Lanes of cancelled tasks are not among those
 * `concerned`; array_position compares them, so that no index can be chosen. The time when the lease
 * would have ended stays in the row, and says where its set is. A lease that is renewed at this moment has a set that
 * this statement cannot see; it is among those that are left.
 */
export const finishing = (
  by: keyof typeof lanesOf,
  lock: number | null,
) => `${clock(lock)}, concerned AS MATERIALIZED (
     SELECT l.id AS lane, l.task, t.level_barrier FROM (${lanesOf[by]} OFFSET 0) l
     CROSS JOIN LATERAL (SELECT level_barrier FROM baton.task WHERE id = l.task AND NOT cancelled OFFSET 0) t
   ), finished AS (
     UPDATE baton.partition p SET state = $6, outcome = $9, releases = $10, attempts = p.attempts + $8,
       settled_at = (SELECT now FROM clock), reported_records = coalesce(${settled('$5::bigint[]')}, p.reported_records)
     WHERE p.id = ANY ($2::bigint[]) AND p.state = $7 AND p.outcome IS NULL
       AND p.term = ${settled('$3::int[]')} AND p.secret = ${settled('$4::text[]')}
       AND array_position(ARRAY(SELECT lane FROM concerned), p.lane) IS NOT NULL
     RETURNING p.id, p.lane, p.level, p.record_count, p.due_at, p.due_with, ${settled('$5::bigint[]')} AS reported
   )`

export const setsLeft = setsLeftBy('finished')
const finish = statement(
  'finish-plain',
  `WITH ${finishing('partitions', null)}
   SELECT f.id, f.lane, f.level, f.record_count, c.task, c.level_barrier, (SELECT now FROM clock) AS now, ${setsLeft} AS sets_left
   FROM finished f JOIN concerned c ON c.lane = f.lane`,
)

export interface PlainlyFinished {
  readonly partitions: ReadonlySet<number>
  readonly mayOpenLevels: boolean
  /** Sets of leases that have to shrink; see shrinking.ts. */
  readonly setsLeft: readonly string[]
}

interface Plain {
  readonly lease: LeaseRef
  readonly reported: number | null
}

/** By their partitions. */
export type PlainSettlements = ReadonlyMap<number, Plain>

/** Settlements of partitions that are mentioned once in the whole batch; a second mention needs the first one's outcome. */
export function plainSettlements({ settles, renews, undos }: HandOffBatch): PlainSettlements {
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
export function plainVerdict(policy: Policy): Change {
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

/** The parameters of `finishing`, sorted by id, like everyone's who locks several. */
export function plainValues(plain: PlainSettlements, policy: Policy, now: number | null): unknown[] {
  const asked = [...plain.values()].sort((a, b) => a.lease.partition - b.lease.partition)
  const { to, attempts, outcome, releasesInARow } = plainVerdict(policy)
  return [
    now,
    textArray(asked.map(({ lease }) => lease.partition)),
    textArray(asked.map(({ lease }) => lease.term)),
    textArray(asked.map(({ lease }) => lease.secret)),
    textArray(asked.map(({ reported }) => reported)),
    to,
    'leased',
    attempts,
    outcome,
    releasesInARow,
  ]
}

/** Settles all that is plain and tells which; whatever is not among them is left to be judged. */
export async function finishPlain(
  tx: Transaction,
  batch: HandOffBatch,
  deltas: CountDeltas,
  policy: Policy,
): Promise<PlainlyFinished> {
  const plain = plainSettlements(batch)
  if (plain.size === 0) return { partitions: new Set(), mayOpenLevels: false, setsLeft: [] }
  const { to } = plainVerdict(policy)
  const rows = await tx.write(finish, plainValues(plain, policy, tx.knownNow))
  const [first] = rows
  if (first !== undefined) tx.learnNow(first['now'] as number)
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
  return { partitions, mayOpenLevels, setsLeft: (first?.['sets_left'] ?? []) as string[] }
}
