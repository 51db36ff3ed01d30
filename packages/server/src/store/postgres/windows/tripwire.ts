import { removeFrom, WAITS } from '../queues/places.ts'
import { statement } from '../session/statement.ts'
import type { Transaction } from '../session/transaction.ts'
import type { Transactions } from '../session/transactions.ts'
import { LOW_WATER, laneIsOpen, WINDOW } from './lanes.ts'

/**
 * A window that is filled gets its tripwire with those that are admitted. Where partitions come to stand behind a window that
 * has none, because nobody stood there before, it has to be given one by whoever brings them.
 */

/** Places are not changed, so it gets another one; until the call-back is through, claims pass it over. */
const setTripwire = statement(
  'set-tripwire',
  `WITH place AS (
     ${removeFrom(
       'ready',
       `SELECT q.lies FROM (SELECT id FROM baton.ready WHERE lane = $1 AND fresh ORDER BY id DESC OFFSET ${LOW_WATER}) r
        CROSS JOIN LATERAL (
          SELECT ctid AS lies, id, stay FROM baton.ready WHERE lane = $1 AND id = r.id FOR UPDATE SKIP LOCKED
        ) q
        CROSS JOIN LATERAL (SELECT id FROM baton.partition WHERE id = q.id AND ${WAITS} OFFSET 0) p LIMIT 1`,
     )} RETURNING *
   )
   INSERT INTO baton.ready (level, rank, id, lane, task, stay, fresh, refill)
   SELECT level, rank, id, lane, task, stay, fresh, true FROM place`,
)

/** Open lanes with a backlog, found one after the other: each is one step into the index, however long it is. */
const unwatched = statement(
  'lanes-without-tripwire',
  `WITH RECURSIVE backlog (lane) AS (
     SELECT 0::bigint
     UNION ALL
     SELECT h.lane FROM backlog b
     CROSS JOIN LATERAL (SELECT lane FROM baton.held WHERE lane > b.lane ORDER BY lane, id LIMIT 1) h
   )
   SELECT b.lane FROM backlog b
   WHERE (SELECT ${laneIsOpen('t', 'l.level')} FROM baton.lane l JOIN baton.task t ON t.id = l.task WHERE l.id = b.lane)
     AND (SELECT r.id FROM baton.ready r WHERE r.lane = b.lane AND r.refill ORDER BY r.id LIMIT 1) IS NULL`,
)
const fullWindows = statement(
  'full-windows',
  `SELECT l.lane FROM unnest($1::bigint[]) AS l (lane)
   WHERE (SELECT count(*) FROM (SELECT FROM baton.ready r WHERE r.lane = l.lane AND r.fresh LIMIT ${WINDOW}) w) = ${WINDOW}`,
)

/** A lane whose window is full gets its first backlog: somebody has to notice when the window empties. */
export function placeTripwire(tx: Transaction, lane: number): void {
  tx.post(setTripwire, [lane])
}

/** Which of these lanes have a full window, by their places: counters do not tell what is fresh. The caller has locked them. */
export async function lanesWithFullWindows(tx: Transaction, lanes: readonly number[]): Promise<Set<number>> {
  const rows = lanes.length === 0 ? [] : await tx.run(fullWindows, [lanes])
  return new Set(rows.map((row) => row['lane'] as number))
}

/**
 * Lanes whose tripwire was handed out and whose window was not filled: it is about to be, or whoever was to do it is gone.
 */
export async function lanesWithoutTripwire(transactions: Transactions): Promise<number[]> {
  return (await transactions.runOne(unwatched)).map((row) => row['lane'] as number)
}
