import type { LaneKey } from './entries.ts'
import { laneIsOpen } from './lanes.ts'
import { NOW, statement } from './statement.ts'
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
  readonly holder: number | null
  secret: string
  readonly dueAt: number
}

/**
 * The front of the order, locked; rows that another node is about to hand out are skipped. Whether a
 * lane is open is read from the task in the same statement, so a pause counts for every later pull.
 */
const claim = statement(
  'claim',
  `WITH candidate AS MATERIALIZED (
     SELECT p.id, p.lane, l.task, t.task_id, p.level, p.idx, p.rank::text AS rank_text, p.fresh, p.refill, p.term,
       p.attempts, p.record_count, p.compute_table, p.spelling
     FROM baton.partition p
     JOIN baton.lane l ON l.id = p.lane
     JOIN baton.task t ON t.id = l.task
     WHERE p.state = 'ready' AND ${laneIsOpen('t', 'p.level')}
     ORDER BY p.level, p.rank, p.id
     LIMIT $1
     FOR UPDATE OF p SKIP LOCKED
   )
   SELECT *, ${NOW} AS now FROM candidate`,
)
const lease = statement(
  'lease',
  `UPDATE baton.partition p SET state = $5, fresh = false, refill = false, term = p.term + 1, secret = g.secret,
     outcome = NULL, holder = g.holder, due_at = g.due_at, leased_at = $6
   FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::bigint[]) AS g (id, secret, holder, due_at)
   WHERE p.id = g.id`,
)
const deliver = statement(
  'deliver',
  `UPDATE baton.partition p SET state = $3, fresh = false, refill = false, term = p.term + 1,
     attempts = p.attempts + 1, outcome = 'delivered',
     holder = g.holder, leased_at = $4, settled_at = $4
   FROM unnest($1::bigint[], $2::bigint[]) AS g (id, holder)
   WHERE p.id = g.id`,
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
    grants.map(({ id }) => id),
    grants.map(({ secret }) => secret),
    grants.map(({ holder }) => holder),
    grants.map(({ dueAt }) => dueAt),
    state,
    now,
  ])
}

export function writeDeliveries(tx: Transaction, grants: readonly Grant[], state: string, now: number): void {
  tx.post(deliver, [grants.map(({ id }) => id), grants.map(({ holder }) => holder), state, now])
}
