import { next } from '../../../handoff/rules/life-cycle.ts'
import { type Finished, takeBack } from '../../../handoff/rules/task-course.ts'
import type { LaneEntry } from '../../../handoff/rules/task-entry.ts'
import { changeQueued } from '../queues/queues.ts'
import { lockAtHand } from '../rows/at-hand.ts'
import { statement } from '../session/statement.ts'
import { fillBehind } from './lane-windows.ts'
import type { Roll } from './roll.ts'
import { settleLanes } from './settle-lanes.ts'

/** In SQL: what a DoneRow holds. */
export const DONE_COLUMNS =
  'id, lane, outcome, record_count AS "recordCount", reported_records AS "reportedRecords"'
const doneFrom = statement<PageRow>(
  'done-from',
  lockAtHand(
    `SELECT r.* FROM unnest($1::bigint[], $2::bigint[]) AS l (lane, after)
     CROSS JOIN LATERAL (
       SELECT id AS row, lane AS of_lane, idx, state = 'done' AND coalesce(settled_at, 0) <= $4 AS is_meant
       FROM baton.partition WHERE lane = l.lane AND idx > l.after ORDER BY idx LIMIT $3
     ) r LIMIT $3`,
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
  readonly lane: number
}

interface Place {
  readonly of_lane: number
  readonly idx: number
  readonly is_meant: boolean
}

/** What it stands for is null where somebody has locked it, or it is not meant. */
type PageRow = Place & (DoneRow | { readonly id: null })

const isAtHand = (row: PageRow): row is Place & DoneRow => row.id !== null

/** Behind which index of which lane to go on. */
export interface PlaceInLane {
  readonly lane: LaneEntry
  readonly after: number
}

interface Rerun {
  readonly changed: number
  readonly readied: number
  /** Null when these lanes need no more. */
  readonly goOn: PlaceInLane | null
}

/**
 * One page of these lanes, of which the first is begun behind an index. It goes on at the first that somebody has
 * locked: a settlement that is said again locks, too.
 */
export async function rerunDone(
  roll: Roll,
  lanes: readonly LaneEntry[],
  { begunAt, after, limit }: { readonly begunAt: number; readonly after: number; readonly limit: number },
): Promise<Rerun> {
  const [first] = lanes
  const meant = lanes.filter(({ partitions, purged }) => partitions.done !== purged)
  if (meant.length === 0) return { changed: 0, readied: 0, goOn: null }
  const page = await roll.tx.run(doneFrom, [
    meant.map(({ id }) => id),
    meant.map((lane) => (lane === first ? after : -1)),
    limit,
    begunAt,
  ])
  const locked = page.find((row) => row.is_meant && row.id === null)
  // Lanes after it come when it is free, and not a second time then.
  const end = page.findLastIndex(({ of_lane }) => of_lane === locked?.of_lane)
  const taken = locked === undefined ? page : page.slice(0, end + 1)
  const done = taken.filter(isAtHand)
  const changed = rerun(roll, done)
  const last = locked ?? (page.length < limit ? undefined : page.at(-1))
  const lane = last === undefined ? undefined : roll.lanes.known(last.of_lane)
  return {
    changed: done.length,
    readied: await settleLanes(roll, changed, fillBehind),
    goOn:
      last === undefined || lane === undefined
        ? null
        : { lane, after: last === locked ? last.idx - 1 : last.idx },
  }
}

/**
 * As if they had just been called back; whoever finished them before no longer holds a lease. Their lanes are known, and
 * those that change are returned.
 */
export function rerun(roll: Roll, rows: readonly DoneRow[]): LaneEntry[] {
  if (rows.length === 0) return []
  const to = next('done', 'rerun')
  const lanes = roll.lanes.grouped(rows)
  for (const [lane, of] of lanes) {
    takeBack(lane.task, of)
    for (const { recordCount } of of) roll.move(lane, 'done', to, recordCount)
  }
  const ids = rows.map(({ id }) => id)
  changeQueued(roll.tx, ids, () => roll.tx.post(rerunRows, [ids, to]))
  return [...lanes.keys()]
}
