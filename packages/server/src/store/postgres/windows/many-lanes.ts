import { rankFresh, setBack } from '../../../handoff/rules/fair-order.ts'
import { next, type PartitionState } from '../../../handoff/rules/life-cycle.ts'
import type { LaneEntry } from '../../../handoff/rules/task-entry.ts'
import { levelsToRank } from '../counters/level-times.ts'
import { placesOf, removeFrom, WAITS } from '../queues/places.ts'
import { statement } from '../session/statement.ts'
import { textArray } from '../session/text-arrays.ts'
import type { Transaction } from '../session/transaction.ts'
import { type HeldPlace, type ReadyPlace, readyOfLane, roomInWindow, STEP, tripwireAt } from './lanes.ts'

/**
 * Opening and closing many lanes of a task at once, for who has locked the task and them. A task may have thousands
 * of levels with a few partitions each: with round trips for each lane, cancelling 5,000 of them took 20 s instead of 0.7,
 * and who waited for the roll lock waited for up to 2.6 s at a time instead of 0.1. For one lane of 1,000 partitions the
 * statements of lanes.ts are better: 18 instead of 27 ms to admit them.
 */

const firstHeld = statement(
  'first-held-of-lanes',
  `SELECT l.lane, h.* FROM unnest($1::bigint[]) AS l (lane)
   CROSS JOIN LATERAL (
     SELECT id, stay, record_count FROM baton.held WHERE lane = l.lane ORDER BY id LIMIT ${roomInWindow('l.lane')}
   ) h`,
)
const admit = statement(
  'admit-to-lanes',
  `WITH gone AS (
     ${removeFrom('held', placesOf('held', 'unnest($2::bigint[], $1::bigint[]) AS s (id, lane)', 'lane = s.lane AND id = s.id'))}
   )
   INSERT INTO baton.ready (lane, id, stay, rank, refill, level, task)
   SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::int[], $4::bigint[], $5::boolean[], $6::bigint[], $7::bigint[])`,
)
const firstReady = statement(
  'first-ready-of-lanes',
  `SELECT l.lane, q.place::text AS place, q.id, q.stay, q.rank::text AS rank_text, q.fresh, p.record_count
   FROM unnest($1::bigint[]) AS l (lane)
   CROSS JOIN LATERAL (${readyOfLane('ctid AS place, id, stay, rank, fresh', 'l.lane')}) q
   CROSS JOIN LATERAL (SELECT record_count FROM baton.partition WHERE id = q.id AND ${WAITS} OFFSET 0) p LIMIT $2`,
)
const hold = statement(
  'hold-in-lanes',
  `WITH gone AS (DELETE FROM baton.ready WHERE ctid = ANY ($1::tid[]))
   INSERT INTO baton.held (lane, id, stay, record_count)
   SELECT * FROM unnest($2::bigint[], $3::bigint[], $4::int[], $5::bigint[])`,
)

/** Counts a move of a partition in a lane. */
export type CountMoveIn = (
  lane: LaneEntry,
  from: PartitionState,
  to: PartitionState,
  recordCount: number,
) => void

/** Groups of lanes that come to a step each, by so many partitions of every lane; one that is larger stands alone. */
export function* inSteps(
  lanes: readonly LaneEntry[],
  partitionsOf: (lane: LaneEntry) => number,
): Generator<LaneEntry[]> {
  let group: LaneEntry[] = []
  let partitions = 0
  for (const lane of lanes) {
    const more = partitionsOf(lane)
    if (group.length > 0 && partitions + more > STEP) {
      yield group
      group = []
      partitions = 0
    }
    group.push(lane)
    partitions += more
  }
  if (group.length > 0) yield group
}

/** Fills the windows of lanes that are open, possibly by a change that is not written yet. Returns how many became ready. */
export async function fillLanes(
  tx: Transaction,
  lanes: readonly LaneEntry[],
  count: CountMoveIn,
): Promise<number> {
  const places = await placesIn<HeldPlace>(lanes, tx.run(firstHeld, [lanes.map(({ id }) => id)]))
  if (places.length === 0) return 0
  const times = await levelsToRank(
    tx,
    places.map(({ lane }) => lane.level),
    null,
  )
  const to = next('held', 'admit')
  const admitted = places.flatMap(({ lane, of }) => {
    const time = times.get(lane.level)
    if (time === undefined) throw new Error(`level ${lane.level} has no time`)
    const tripwire = tripwireAt(of.length)
    return of.map((place, position) => {
      count(lane, 'held', to, place.record_count)
      const rank = rankFresh(time, lane, place.record_count)
      return { ...place, lane, rank, refill: position === tripwire }
    })
  })
  tx.post(admit, [
    textArray(admitted.map(({ lane }) => lane.id)),
    textArray(admitted.map(({ id }) => id)),
    textArray(admitted.map(({ stay }) => stay)),
    textArray(admitted.map(({ rank }) => rank)),
    textArray(admitted.map(({ refill }) => String(refill))),
    textArray(admitted.map(({ lane }) => lane.level)),
    textArray(admitted.map(({ lane }) => lane.task.id)),
  ])
  return admitted.length
}

/** Takes up to `limit` ready partitions of closed lanes out of the reach of pulls. */
export async function holdLanes(
  tx: Transaction,
  lanes: readonly LaneEntry[],
  limit: number,
  count: CountMoveIn,
): Promise<number> {
  const places = await placesIn<ReadyPlace>(lanes, tx.run(firstReady, [lanes.map(({ id }) => id), limit]))
  if (places.length === 0) return 0
  const to = next('ready', 'hold')
  const held = places.flatMap(({ lane, of }) =>
    of.map((place) => {
      if (place.fresh) setBack(lane, BigInt(place.rank_text))
      count(lane, 'ready', to, place.record_count)
      return { ...place, lane }
    }),
  )
  tx.post(hold, [
    held.map(({ place }) => place),
    textArray(held.map(({ lane }) => lane.id)),
    textArray(held.map(({ id }) => id)),
    textArray(held.map(({ stay }) => stay)),
    textArray(held.map(({ record_count }) => record_count)),
  ])
  return held.length
}

async function placesIn<Place>(
  lanes: readonly LaneEntry[],
  answer: Promise<unknown[]>,
): Promise<{ lane: LaneEntry; of: Place[] }[]> {
  const rows = (await answer) as (Place & { lane: number })[]
  const byLane = Map.groupBy(rows, ({ lane }) => lane)
  return lanes.flatMap((lane) => {
    const of = byLane.get(lane.id)
    return of === undefined ? [] : [{ lane, of }]
  })
}
