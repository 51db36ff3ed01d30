import { compareRanked } from '../../../handoff/rules/fair-order.ts'
import { enterSets, NEXT_SET } from '../queues/due-sets.ts'
import { lockedOf, WAITS } from '../queues/places.ts'
import { besideId } from '../rows/beside-ids.ts'
import type { LaneKey } from '../rows/entries.ts'
import { NOW, statement } from '../session/statement.ts'
import { textArray } from '../session/text-arrays.ts'
import type { Transaction } from '../session/transaction.ts'
import { laneIsOpen } from '../windows/lanes.ts'

export interface Candidate {
  readonly id: number
  /** Where its place in `ready` lies. */
  readonly place: string
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
  readonly place: string
  readonly rank: bigint
  readonly holder: number | null
  secret: string
  readonly dueAt: number
  /** Which of the sets of the claim it is due with. */
  readonly set: number
}

/**
 * In SQL: the front of the order, locked; places that another claim has locked are passed over. Whether
 * a lane is open is read from the task in the same statement, so a pause counts for every later pull. No join: whatever
 * the planner believes of its tables, it can only walk the order and look each task up.
 */
export const front = (columns: string, after = 'true') =>
  `SELECT ${columns} FROM baton.ready r
   WHERE ${after} AND (SELECT ${laneIsOpen('t', 'r.level')} FROM baton.task t WHERE t.id = r.task) ORDER BY r.level, r.rank, r.id`
const claim = statement(
  'claim',
  `WITH candidate AS MATERIALIZED (
     SELECT q.lane, q.task, q.level, q.rank, q.fresh, q.refill, q.place::text AS place, p.*
     FROM (${front('r.ctid AS place, r.id, r.lane, r.task, r.level, r.rank, r.stay, r.fresh, r.refill')} FOR UPDATE SKIP LOCKED) q
     ${lockedOf('id, idx, term, attempts, record_count, compute_table, spelling', WAITS)} LIMIT $1
   )
   SELECT *, rank::text AS rank_text, (SELECT task_id FROM baton.task WHERE id = task) AS task_id, ${NOW} AS now FROM candidate`,
)
/** Their places are locked and lie where they lay. The rank stays in the row for a partition that is given back. */
const taken = 'DELETE FROM baton.ready WHERE ctid = ANY ($2::tid[])'
const lease = statement(
  'lease',
  `WITH numbers AS MATERIALIZED (SELECT ${NEXT_SET} AS first), taken AS (${taken}), leased AS (
     UPDATE baton.partition p SET state = $4, term = p.term + 1, secret = ${besideId('$5::text[]')}, outcome = NULL,
       holder = ${besideId('$3::bigint[]')}, due_at = ${besideId('$7::bigint[]')}, leased_at = $6,
       due_with = (SELECT first FROM numbers) + ${besideId('$8::int[]')}, rank = ${besideId('$9::bigint[]')}
     WHERE p.id = ANY ($1::bigint[])
     RETURNING p.id, p.due_at, p.due_with, p.holder
   )
   ${enterSets('leased')}`,
)
const deliver = statement(
  'deliver',
  `WITH taken AS (${taken})
   UPDATE baton.partition p SET state = $4, term = p.term + 1, attempts = p.attempts + 1, outcome = 'delivered',
     holder = ${besideId('$3::bigint[]')}, leased_at = $5, settled_at = $5
   WHERE p.id = ANY ($1::bigint[])`,
)

export async function claimCandidates(tx: Transaction, limit: number): Promise<Candidate[]> {
  const rows = await tx.run(claim, [limit])
  const [first] = rows
  if (first !== undefined) tx.learnNow(first['now'] as number)
  const candidates = rows.map((row) => ({
    id: row['id'] as number,
    place: row['place'] as string,
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
  return candidates.sort(compareRanked)
}

export function writeLeases(tx: Transaction, grants: readonly Grant[], state: string, now: number): void {
  const sorted = grants.toSorted((a, b) => a.id - b.id)
  const secrets = textArray(sorted.map(({ secret }) => secret))
  tx.post(lease, [
    ...placesAndHolders(sorted),
    state,
    secrets,
    now,
    textArray(sorted.map(({ dueAt }) => dueAt)),
    textArray(sorted.map(({ set }) => set)),
    textArray(sorted.map(({ rank }) => rank)),
  ])
}

export function writeDeliveries(tx: Transaction, grants: readonly Grant[], state: string, now: number): void {
  tx.post(deliver, [...placesAndHolders(grants.toSorted((a, b) => a.id - b.id)), state, now])
}

function placesAndHolders(grants: readonly Grant[]): unknown[] {
  return [
    textArray(grants.map(({ id }) => id)),
    grants.map(({ place }) => place),
    textArray(grants.map(({ holder }) => holder)),
  ]
}
