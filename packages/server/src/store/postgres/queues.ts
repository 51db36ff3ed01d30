import { statement } from './statement.ts'
import type { Transaction } from './transaction.ts'

/**
 * Who waits stands in a queue: `held` behind the window of a lane, `ready` for the next pull, `due`
 * while a lease or a back-off runs. A queue is an index kept by hand. What is true is the state in
 * the partition's row, and whoever changes a queue has locked that row; so who finds something in a
 * queue locks the row and compares. As indexes of the table itself each of them would have all the
 * others rewritten with every step (one client in batches of 200: 109 microseconds of statements per
 * partition on its way from held to done, against 79 with queues; one run each).
 *
 * Claims are the exception: they lock the place in `ready`, passing over those that others have locked, and then
 * wait for the row. So nobody who has locked a row may wait for its place in `ready`.
 */
export type Queue = 'held' | 'ready' | 'due'

/**
 * In SQL: removes places from a queue, of which there are nearly always few in it and then many again. `places` selects
 * where they lie, one by one: a join could begin with the queue, which was planned when it was empty and has
 * thousands of dead entries now. Places are only written and removed, never changed, so they lie where they lay.
 */
export const removeFrom = (queue: Queue, places: string) =>
  `DELETE FROM baton.${queue} WHERE ctid = ANY (ARRAY(${places}))`

/** In SQL: where the places of some rows `s` lie, for `removeFrom`. */
export const placesOf = (queue: Queue, rows: string, isPlace: string, lock = 'OFFSET 0') =>
  `SELECT q.ctid FROM ${rows} CROSS JOIN LATERAL (SELECT ctid FROM baton.${queue} WHERE ${isPlace} ${lock}) q`

/**
 * A place in `ready` that a claim has locked is left to it: the claim waits for the row, finds it changed, and says
 * that it passed a place over.
 */
const leave = statement(
  'leave-queues',
  `WITH leaving AS MATERIALIZED (
     SELECT id, state, lane, level, rank, due_at FROM baton.partition WHERE id = ANY($1::bigint[])
   ), held AS (
     ${removeFrom('held', placesOf('held', 'leaving s', "s.state = 'held' AND lane = s.lane AND id = s.id"))}
   ), ready AS (
     ${removeFrom('ready', placesOf('ready', 'leaving s', 'lane = s.lane AND id = s.id', 'FOR UPDATE SKIP LOCKED'))}
   )
   ${removeFrom(
     'due',
     placesOf(
       'due',
       'leaving s',
       `s.state IN ('leased', 'delayed') AND delayed = (s.state = 'delayed') AND due_at = s.due_at AND id = s.id`,
     ),
   )}`,
)
/** A place in `ready` that is taken is a stray one of the same partition, and now it is right. */
const enter = statement(
  'enter-queues',
  `WITH entering AS MATERIALIZED (
     SELECT id, state, lane, level, rank, due_at, holder FROM baton.partition WHERE id = ANY($1::bigint[])
   ), held AS (
     INSERT INTO baton.held (lane, id) SELECT lane, id FROM entering WHERE state = 'held'
   ), ready AS (
     INSERT INTO baton.ready (level, rank, id, lane, task)
     SELECT level, rank, id, lane, (SELECT task FROM baton.lane WHERE id = entering.lane) FROM entering WHERE state = 'ready'
     ON CONFLICT (level, rank, id) DO NOTHING
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
