import { next } from '../../../handoff/life-cycle.ts'
import { type Finished, takeBack } from '../../../handoff/task-course.ts'
import type { LaneEntry } from '../../../handoff/task-entry.ts'
import { changeQueued } from '../queues/queues.ts'
import { lockAtHand } from '../rows/at-hand.ts'
import { statement } from '../session/statement.ts'
import { fillBehind, settleLanes } from './lane-windows.ts'
import type { Roll } from './roll.ts'

/** In SQL: what a DoneRow holds. */
export const DONE_COLUMNS =
  'id, outcome, record_count AS "recordCount", reported_records AS "reportedRecords"'
const doneFrom = statement(
  'done-from',
  lockAtHand(
    `SELECT id AS row, idx, state = 'done' AND coalesce(settled_at, 0) <= $4 AS is_meant FROM baton.partition
     WHERE lane = $1 AND idx > $2 ORDER BY idx LIMIT $3`,
    DONE_COLUMNS,
    "q.is_meant AND state = 'done'",
  ),
)
const rerunRows = statement(
  'rerun',
  `UPDATE baton.partition SET state = $2, stay = stay + 1, rank = NULL, term = term + 1, secret = '',
     outcome = NULL, attempts = 0, releases = 0, settled_at = NULL, reported_records = NULL WHERE id = ANY($1::bigint[])`,
)

export interface DoneRow extends Finished {
  readonly id: number
}

interface PageRow {
  readonly idx: number
  readonly is_meant: boolean
  readonly id: number | null
}

interface Rerun {
  readonly changed: number
  readonly readied: number
  /** The index behind which the lane goes on; null when it needs no more. */
  readonly goOnAfter: number | null
}

/** One page of a lane. It goes on at the first that somebody has locked: a settlement that is said again locks, too. */
export async function rerunDone(
  roll: Roll,
  lane: LaneEntry,
  { begunAt, after, limit }: { readonly begunAt: number; readonly after: number; readonly limit: number },
): Promise<Rerun> {
  if (lane.partitions.done === lane.purged) return { changed: 0, readied: 0, goOnAfter: null }
  const page = (await roll.tx.run(doneFrom, [lane.id, after, limit, begunAt])) as unknown as PageRow[]
  const done = page.filter(({ id }) => id !== null) as unknown as DoneRow[]
  await rerun(roll, lane, done)
  const locked = page.find((row) => row.is_meant && row.id === null)
  const last = page.length < limit ? null : (page.at(-1)?.idx ?? null)
  return {
    changed: done.length,
    readied: await settleLanes(roll, [lane], fillBehind),
    goOnAfter: locked === undefined ? last : locked.idx - 1,
  }
}

/** As if they had just been called back; whoever finished them before no longer holds a lease. */
export async function rerun(roll: Roll, lane: LaneEntry, rows: readonly DoneRow[]): Promise<void> {
  if (rows.length === 0) return
  const to = next('done', 'rerun')
  takeBack(lane.task, rows)
  for (const { recordCount } of rows) roll.move(lane, 'done', to, recordCount)
  const ids = rows.map(({ id }) => id)
  changeQueued(roll.tx, ids, () => roll.tx.post(rerunRows, [ids, to]))
}
