import { statement } from '../session/statement.ts'
import type { Transaction } from '../session/transaction.ts'
import { leaveSets, shrinkSets } from './due-sets.ts'
import { placesOf, removeFrom } from './places.ts'

/**
 * Who waits stands in a queue: `held` behind the window of a lane, `ready` for the next pull, `due`
 * while a lease or a back-off runs. A queue is an index kept by hand. That a partition waits or runs stands in its row,
 * and who finds it in a queue compares. As indexes of the table itself each of them would have all the
 * others rewritten with every step (one client in batches of 200: 109 microseconds of statements per
 * partition on its way from held to done, against 79 with queues; one run each).
 *
 * Whether one that waits is ready or held, its place alone says; the row calls both held. So filling a window writes no
 * row, which was half of its time. Places move between the two only under the lock of their lane, and who else
 * has to know which it is takes that lock as well (waiting.ts). A row counts how often it came to wait (`stay`), and a
 * place is of one stay: a stray place is never mistaken for the one that counts.
 *
 * Claims need no lane: they lock the place in `ready`, passing over those that others have locked, and then
 * wait for the row. So nobody who has locked a row may wait for its place in `ready`.
 */

/**
 * A place in `ready` that a claim has locked is left to it: the claim waits for the row, finds it changed, and says
 * that it passed a place over.
 */
const leave = statement(
  'leave-queues',
  `WITH leaving AS MATERIALIZED (
     SELECT id, state, lane, due_at, due_with FROM baton.partition WHERE id = ANY($1::bigint[])
   ), held AS (
     ${removeFrom('held', placesOf('held', 'leaving s', "s.state = 'held' AND lane = s.lane AND id = s.id"))}
   ), ready AS (
     ${removeFrom('ready', placesOf('ready', 'leaving s', 'lane = s.lane AND id = s.id', 'FOR UPDATE SKIP LOCKED'))}
   ), running AS (
     SELECT state = 'delayed' AS delayed, due_at, due_with FROM leaving WHERE state IN ('leased', 'delayed')
   ), ${leaveSets('running')}, ${shrinkSets}
   SELECT`,
)
/** Who has kept a rank or was given one is ready; all of these have been handed out before. */
const enter = statement(
  'enter-queues',
  `WITH entering AS MATERIALIZED (
     SELECT id, state, stay, lane, level, rank, record_count, due_at, due_with, holder FROM baton.partition WHERE id = ANY($1::bigint[])
   ), held AS (
     INSERT INTO baton.held (lane, id, stay, record_count)
     SELECT lane, id, stay, record_count FROM entering WHERE state = 'held' AND rank IS NULL
   ), ready AS (
     INSERT INTO baton.ready (level, rank, id, lane, task, stay, fresh)
     SELECT level, rank, id, lane, (SELECT task FROM baton.lane WHERE id = entering.lane), stay, false
     FROM entering WHERE state = 'held' AND rank IS NOT NULL
   )
   INSERT INTO baton.due (delayed, due_at, number, holders, remaining, ids)
   SELECT state = 'delayed', due_at, due_with, ARRAY[holder], 1, ARRAY[id] FROM entering WHERE state IN ('leased', 'delayed')`,
)

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
