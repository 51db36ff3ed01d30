import { next } from '../../../handoff/rules/life-cycle.ts'
import type { LaneEntry } from '../../../handoff/rules/task-entry.ts'
import { lockedOf, WAITS } from '../queues/places.ts'
import { changeQueued } from '../queues/queues.ts'
import { dropStraysOfLanes } from '../queues/strays.ts'
import { statement } from '../session/statement.ts'
import { readyOfLane } from '../windows/lanes.ts'
import type { Roll } from './roll.ts'

const OF_LANES = 'FROM unnest($1::bigint[]) AS l (lane) CROSS JOIN LATERAL'
const waitingIn = (state: 'ready' | 'held', places: string) =>
  statement<WaitingRow>(
    `waiting-${state}-of-lanes`,
    `SELECT p.* ${OF_LANES} (${places}) q ${lockedOf('id, lane, record_count', WAITS)} LIMIT $2`,
  )
const waiting = {
  ready: waitingIn('ready', readyOfLane('id, stay', 'l.lane')),
  held: waitingIn('held', 'SELECT id, stay FROM baton.held WHERE lane = l.lane ORDER BY id OFFSET 0'),
  parked: statement<WaitingRow>(
    'waiting-parked-of-lanes',
    `SELECT p.* ${OF_LANES} (
       SELECT id, lane, record_count FROM baton.partition WHERE lane = l.lane AND parked ORDER BY idx
       LIMIT $2 FOR UPDATE SKIP LOCKED
     ) p LIMIT $2`,
  ),
}
const firstWaiting = statement(
  'first-waiting-of-lanes',
  `SELECT l.lane FROM unnest($1::bigint[]) WITH ORDINALITY AS l (lane, position)
   WHERE (SELECT id FROM baton.ready WHERE lane = l.lane ORDER BY id LIMIT 1) IS NOT NULL
     OR (SELECT id FROM baton.held WHERE lane = l.lane ORDER BY id LIMIT 1) IS NOT NULL
     OR (SELECT id FROM baton.partition WHERE lane = l.lane AND parked ORDER BY idx LIMIT 1) IS NOT NULL
   ORDER BY l.position LIMIT 1`,
)
const cancel = statement(
  'cancel',
  'UPDATE baton.partition SET state = $2, parked = false, rank = NULL, due_at = NULL WHERE id = ANY($1::bigint[])',
)

interface WaitingRow {
  readonly id: number
  readonly lane: number
  readonly record_count: number
}

interface Cancelled {
  readonly cancelled: number
  /** The first of the lanes that is not done with. */
  readonly firstWaiting: LaneEntry | undefined
}

/**
 * Cancels up to `limit` of those who wait in these lanes. Leased and delayed partitions follow when their time ends;
 * nothing can be done with them until then.
 */
export async function cancelWaiting(
  roll: Roll,
  lanes: readonly LaneEntry[],
  limit: number,
): Promise<Cancelled> {
  const ids = lanes.map(({ id }) => id)
  let cancelled = 0
  for (const state of ['ready', 'held', 'parked'] as const) {
    if (cancelled === limit) break
    cancelled += await cancelIn(roll, state, ids, limit - cancelled)
  }
  // A stray place would look for ever like somebody who waits.
  if (cancelled < limit) await roll.tx.write(dropStraysOfLanes, [ids])
  // Rows that a pull has locked are not seen: a lane is done with when none is left.
  const [row] = await roll.tx.run(firstWaiting, [ids])
  return { cancelled, firstWaiting: lanes.find(({ id }) => id === row?.['lane']) }
}

async function cancelIn(
  roll: Roll,
  state: 'ready' | 'held' | 'parked',
  lanes: readonly number[],
  limit: number,
): Promise<number> {
  const rows = await roll.tx.run(waiting[state], [lanes, limit])
  if (rows.length === 0) return 0
  const to = next(state, 'cancel')
  for (const [lane, of] of roll.lanes.grouped(rows))
    for (const { record_count } of of) roll.move(lane, state, to, record_count)
  const ids = rows.map(({ id }) => id)
  changeQueued(roll.tx, ids, () => roll.tx.post(cancel, [ids, to]))
  return rows.length
}
