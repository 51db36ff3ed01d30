import type { LaneKey } from './entries.ts'
import { laneIsOpen } from './lanes.ts'
import { NOW, statement } from './statement.ts'
import { textArray } from './text-arrays.ts'
import type { Transaction } from './transactions.ts'

export interface Candidate {
  readonly id: number
  readonly lane: LaneKey
  readonly taskId: string
  readonly idx: number
  readonly rank: bigint
  readonly fresh: boolean
  readonly refill: boolean
  readonly term: number
  readonly attempts: number
  readonly recordCount: number
  readonly computeTable: number
  readonly spelling: string | null
}

/** What is written of a partition that is handed out. */
export interface Grant {
  readonly id: number
  readonly level: number
  readonly rank: bigint
  readonly holder: number | null
  secret: string
  readonly dueAt: number
}

/**
 * In SQL: the front of the order, locked; rows that another node is about to hand out are skipped. Whether
 * a lane is open is read from the task in the same statement, so a pause counts for every later pull.
 * The state to be is a column of the queue's, and the queue is read apart, so that no planner
 * begins with the partitions. Not lateral as elsewhere: a claim meets many rows that others have just
 * taken, and for each the server would set up the whole statement anew (21 ms for 200 with three claims at a time, 6 alone).
 */
export const front = (limit: string) => `SELECT q.id, q.lane, q.task, q.task_id, q.level, q.rank,
     p.idx, p.fresh, p.refill, p.term, p.attempts, p.record_count, p.compute_table, p.spelling
   FROM (
     SELECT r.level, r.rank, r.id, r.lane, r.task, t.task_id, 'ready' AS state
     FROM baton.ready r JOIN baton.task t ON t.id = r.task
     WHERE ${laneIsOpen('t', 'r.level')} ORDER BY r.level, r.rank, r.id OFFSET 0
   ) q
   JOIN baton.partition p ON p.id = q.id AND p.state = q.state AND p.rank = q.rank
   ORDER BY q.level, q.rank, q.id LIMIT ${limit} FOR UPDATE OF p SKIP LOCKED`
const claim = statement(
  'claim',
  `WITH candidate AS MATERIALIZED (${front('$1')})
   SELECT *, rank::text AS rank_text, ${NOW} AS now FROM candidate`,
)
const lease = statement(
  'lease',
  `WITH granted AS MATERIALIZED (
     SELECT * FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::bigint[], $7::bigint[], $8::bigint[])
       AS g (id, secret, holder, due_at, level, rank)
   ), leased AS (
     UPDATE baton.partition p SET state = $5, fresh = false, refill = false, term = p.term + 1, secret = g.secret,
       outcome = NULL, holder = g.holder, due_at = g.due_at, leased_at = $6
     FROM granted g WHERE p.id = g.id
   ), taken AS (
     DELETE FROM baton.ready r USING granted g WHERE r.level = g.level AND r.rank = g.rank AND r.id = g.id
   )
   INSERT INTO baton.due (delayed, due_at, id, holder) SELECT false, due_at, id, holder FROM granted`,
)
const deliver = statement(
  'deliver',
  `WITH granted AS MATERIALIZED (
     SELECT * FROM unnest($1::bigint[], $2::bigint[], $5::bigint[], $6::bigint[]) AS g (id, holder, level, rank)
   ), taken AS (
     DELETE FROM baton.ready r USING granted g WHERE r.level = g.level AND r.rank = g.rank AND r.id = g.id
   )
   UPDATE baton.partition p SET state = $3, fresh = false, refill = false, term = p.term + 1,
     attempts = p.attempts + 1, outcome = 'delivered',
     holder = g.holder, leased_at = $4, settled_at = $4
   FROM granted g WHERE p.id = g.id`,
)

export async function claimCandidates(tx: Transaction, limit: number): Promise<Candidate[]> {
  const rows = await tx.run(claim, [limit])
  const [first] = rows
  if (first !== undefined) tx.learnNow(first['now'] as number)
  const candidates = rows.map((row) => ({
    id: row['id'] as number,
    lane: { id: row['lane'] as number, task: row['task'] as number, level: row['level'] as number },
    taskId: row['task_id'] as string,
    idx: row['idx'] as number,
    rank: BigInt(row['rank_text'] as string),
    fresh: row['fresh'] as boolean,
    refill: row['refill'] as boolean,
    term: row['term'] as number,
    attempts: row['attempts'] as number,
    recordCount: row['record_count'] as number,
    computeTable: row['compute_table'] as number,
    spelling: row['spelling'] as string | null,
  }))
  // A row that was waited for may have moved in the order meanwhile.
  return candidates.sort(inOrder)
}

function inOrder(a: Candidate, b: Candidate): number {
  if (a.lane.level !== b.lane.level) return a.lane.level - b.lane.level
  if (a.rank !== b.rank) return a.rank < b.rank ? -1 : 1
  return a.id - b.id
}

export function writeLeases(tx: Transaction, grants: readonly Grant[], state: string, now: number): void {
  tx.post(lease, [
    textArray(grants.map(({ id }) => id)),
    textArray(grants.map(({ secret }) => secret)),
    textArray(grants.map(({ holder }) => holder)),
    textArray(grants.map(({ dueAt }) => dueAt)),
    state,
    now,
    ...placesOf(grants),
  ])
}

export function writeDeliveries(tx: Transaction, grants: readonly Grant[], state: string, now: number): void {
  const ids = textArray(grants.map(({ id }) => id))
  tx.post(deliver, [ids, textArray(grants.map(({ holder }) => holder)), state, now, ...placesOf(grants)])
}

/** Where they stood in the order. */
function placesOf(grants: readonly Grant[]): [levels: string, ranks: string] {
  return [textArray(grants.map(({ level }) => level)), textArray(grants.map(({ rank }) => rank))]
}
