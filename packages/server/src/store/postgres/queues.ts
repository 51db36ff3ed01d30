import { statement } from './statement.ts'
import type { Transaction } from './transactions.ts'

/**
 * Who waits stands in a queue: `held` behind the window of a lane, `ready` for the next pull, `due`
 * while a lease or a back-off runs. A queue is an index kept by hand. What is true is the state in
 * the partition's row, and whoever changes a queue has locked that row; so who finds something in a
 * queue locks the row and compares. As indexes of the table itself each of them would have all the
 * others rewritten with every step (one client in batches of 200: 109 microseconds of statements per
 * partition on its way from held to done, against 79 with queues; one run each).
 */
const leave = statement(
  'leave-queues',
  `WITH leaving AS MATERIALIZED (
     SELECT id, state, lane, level, rank, due_at FROM baton.partition WHERE id = ANY($1::bigint[])
   ), held AS (
     DELETE FROM baton.held q USING leaving p WHERE p.state = 'held' AND q.lane = p.lane AND q.id = p.id
   ), ready AS (
     DELETE FROM baton.ready q USING leaving p WHERE q.lane = p.lane AND q.id = p.id
   )
   DELETE FROM baton.due q USING leaving p
   WHERE p.state IN ('leased', 'delayed') AND q.delayed = (p.state = 'delayed') AND q.due_at = p.due_at AND q.id = p.id`,
)
const enter = statement(
  'enter-queues',
  `WITH entering AS MATERIALIZED (
     SELECT p.id, p.state, p.lane, l.task, p.level, p.rank, p.due_at, p.holder
     FROM baton.partition p JOIN baton.lane l ON l.id = p.lane WHERE p.id = ANY($1::bigint[])
   ), held AS (
     INSERT INTO baton.held (lane, id) SELECT lane, id FROM entering WHERE state = 'held'
   ), ready AS (
     INSERT INTO baton.ready (level, rank, id, lane, task)
     SELECT level, rank, id, lane, task FROM entering WHERE state = 'ready'
   )
   INSERT INTO baton.due (delayed, due_at, id, holder)
   SELECT state = 'delayed', due_at, id, holder FROM entering WHERE state IN ('leased', 'delayed')`,
)

/**
 * In SQL: of the places `q` of a queue, in their order, those partitions that still are in the state
 * of the queue, locked; who is locked by others is skipped. Lateral, or the planner that meets an
 * empty database begins with the partitions and keeps that plan when there are a million.
 */
export const lockedOf = (columns: string, stillThere: string) =>
  `CROSS JOIN LATERAL (
     SELECT ${columns} FROM baton.partition WHERE id = q.id AND ${stillThere} FOR UPDATE SKIP LOCKED
   ) p`

/**
 * Around a statement that changes partitions whose rows are locked, whatever state they leave or enter.
 * In `ready` they leave every place they have, also a stray one: a partition that is given back with
 * the rank it had would find its place taken.
 */
export function changeQueued(tx: Transaction, ids: readonly number[], change: () => void): void {
  tx.post(leave, [ids])
  change()
  tx.post(enter, [ids])
}

/**
 * A claim that is one statement does not see what was queued after it began: a partition that was
 * held and made ready again at that moment leaves the newer of its two places behind. Claims pass such a stray
 * place over, because the row says otherwise. Who left it removes it, and if that node died: whoever
 * changes the partition's state, a pull that found nothing else, or the roller when the front of the order gets there.
 */
export const dropStrays = statement(
  'drop-strays',
  `DELETE FROM baton.ready r USING
     (SELECT id, lane, state, rank FROM baton.partition WHERE id = ANY($1::bigint[]) ORDER BY id FOR UPDATE) p
   WHERE r.lane = p.lane AND r.id = p.id AND (p.state <> 'ready' OR p.rank <> r.rank)`,
)

/** Of the places `q`; those of partitions that were purged since have no row that could be locked. */
const straysAmong = (places: string, isStray: string) =>
  `WITH place AS MATERIALIZED (${places}), stray AS MATERIALIZED (
     SELECT q.* FROM place q ${lockedOf('id', `(${isStray})`)}
     UNION ALL
     SELECT q.* FROM place q WHERE (SELECT id FROM baton.partition WHERE id = q.id) IS NULL
   )`
const straysOfReady = (places: string) =>
  `${straysAmong(places, "state <> 'ready' OR rank <> q.rank")}
   DELETE FROM baton.ready r USING stray s WHERE r.level = s.level AND r.rank = s.rank AND r.id = s.id`

/** At the front of the order, where every place comes sooner or later. */
export const dropStraysInFront = statement(
  'drop-strays-in-front',
  straysOfReady('SELECT level, rank, id FROM baton.ready ORDER BY level, rank, id LIMIT 1000'),
)
export const dropStraysOfLane = statement(
  'drop-strays-of-lane',
  straysOfReady('SELECT level, rank, id FROM baton.ready WHERE lane = $1 ORDER BY id'),
)

/**
 * A settlement in one statement leaves such a place too, when its lease is renewed at that moment to end in the
 * same millisecond as before. It is in nobody's way until its time has come.
 */
const overdue = (delayed: string) =>
  `(SELECT delayed, due_at, id FROM baton.due WHERE ${delayed} AND due_at <= $1 ORDER BY due_at LIMIT 1000)`
export const dropStraysOverdue = statement(
  'drop-strays-overdue',
  `${straysAmong(
    `${overdue('NOT delayed')} UNION ALL ${overdue('delayed')}`,
    "state <> CASE WHEN q.delayed THEN 'delayed' ELSE 'leased' END OR due_at <> q.due_at",
  )}
   DELETE FROM baton.due d USING stray s WHERE d.delayed = s.delayed AND d.due_at = s.due_at AND d.id = s.id`,
)
