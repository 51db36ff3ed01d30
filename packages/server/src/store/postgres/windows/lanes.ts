import { setTimeout as sleep } from 'node:timers/promises'
import { type LaneTags, rankFresh, setBack } from '../../../handoff/rules/fair-order.ts'
import { next, type PartitionState } from '../../../handoff/rules/life-cycle.ts'
import type { CountDeltas } from '../counters/count-deltas.ts'
import { levelsToRank } from '../counters/level-times.ts'
import { WAITS } from '../queues/places.ts'
import { besideId } from '../rows/beside-ids.ts'
import type { LaneKey } from '../rows/entries.ts'
import { type Row, statement } from '../session/statement.ts'
import { textArray } from '../session/text-arrays.ts'
import type { Transaction } from '../session/transaction.ts'

/**
 * Opening and closing lanes without rewriting them.
 *
 * Of an open lane only a window of partitions is ready; those behind it are held and follow as the
 * window empties, ranked in the order of their call-back. So the index that pulls read stays small
 * whatever the backlog, and closing a lane of a million partitions touches the window alone.
 *
 * Several nodes take from one window, and none of them counts what the others took. So one row of
 * the window is a tripwire: whoever is handed it fills the window, in the same transaction or right after it. Tags are
 * changed only by who has locked the lane's row. Who holds that lock never waits for a partition's.
 *
 * Here one lane at a time, for those who hand out; for many at once see many-lanes.ts.
 */
export const WINDOW = 2000

/** How many partitions stand behind a tripwire: for those who claim while the window is filled, see filling.ts. */
export const LOW_WATER = 1000

/** The most partitions that one claim takes: no lane runs dry in it. */
export const LARGEST_CLAIM = LOW_WATER / 2

/** The most rows that one transaction takes out of reach; what is left, later steps take. */
export const STEP = 1000

const LOOKS_FOR_LANE = 20
const LOOK_AGAIN_MILLIS = 2

export interface HeldPlace {
  readonly id: number
  readonly stay: number
  readonly record_count: number
}

export interface ReadyPlace extends HeldPlace {
  readonly place: string
  readonly rank_text: string
  readonly fresh: boolean
}

export interface LockedLane extends LaneKey, LaneTags {}

/** Counts a move of a partition, wherever that is counted. */
export type CountMove = (from: PartitionState, to: PartitionState, recordCount: number) => void

/** In SQL: whether pulls may take from the lane of a partition. The same rule as isLaneOpen. */
export const laneIsOpen = (task: string, level: string) =>
  `NOT ${task}.paused AND NOT ${task}.cancelled AND (NOT ${task}.level_barrier OR ${level} <= ${task}.open_level)`

/**
 * In SQL: how many are admitted to the window of a lane. At least LOW_WATER, so that as many stand behind the new tripwire:
 * what other claims have just taken still counts as there, and so does what a node that is alone has not written up. What
 * is handed out again is not of the window.
 */
export const roomInWindow = (lane: string) =>
  `(SELECT greatest(${WINDOW} - count(*), ${LOW_WATER}) FROM
     (SELECT FROM baton.ready r WHERE r.lane = ${lane} AND r.fresh LIMIT ${WINDOW}) AS window_now)`
const firstHeld = statement<HeldPlace>(
  'first-held',
  `SELECT id, stay, record_count FROM baton.held
   WHERE lane = $1
     AND (SELECT ${laneIsOpen('t', 'l.level')} FROM baton.lane l JOIN baton.task t ON t.id = l.task WHERE l.id = $1)
   ORDER BY id LIMIT ${roomInWindow('$1')}`,
)
const admit = statement(
  'admit',
  `WITH gone AS (
     DELETE FROM baton.held WHERE lane = $5 AND id = ANY ($1::bigint[])
   )
   INSERT INTO baton.ready (level, rank, id, lane, task, stay, refill)
   SELECT $6, rank, id, $5, $7, stay, id = $3
   FROM unnest($1::bigint[], $2::bigint[], $4::int[]) AS a (id, rank, stay)`,
)
/** Places that a claim has locked are left to it. */
export const readyOfLane = (columns: string, lane: string) =>
  `SELECT ${columns} FROM baton.ready WHERE lane = ${lane} ORDER BY id FOR UPDATE SKIP LOCKED`
const firstReady = statement<ReadyPlace>(
  'first-ready-of-lane',
  `SELECT q.place::text AS place, q.id, q.stay, q.rank::text AS rank_text, q.fresh, p.record_count
   FROM (${readyOfLane('ctid AS place, id, stay, rank, fresh', '$1')}) q
   CROSS JOIN LATERAL (SELECT record_count FROM baton.partition WHERE id = q.id AND ${WAITS} OFFSET 0) p LIMIT $2`,
)
const hold = statement(
  'hold',
  `WITH gone AS (DELETE FROM baton.ready WHERE ctid = ANY ($1::tid[]))
   INSERT INTO baton.held (lane, id, stay, record_count)
   SELECT $2, id, stay, record_count FROM unnest($3::bigint[], $4::int[], $5::bigint[]) AS a (id, stay, record_count)`,
)
const saveTags = statement(
  'save-tags',
  `UPDATE baton.lane p SET finish = ${besideId('$2::bigint[]')}, retry_finish = ${besideId('$3::bigint[]')}
   WHERE p.id = ANY ($1::bigint[])`,
)
const lockingLanes = `SELECT id, task, level, finish::text AS finish, retry_finish::text AS retry_finish FROM baton.lane
   WHERE id = ANY($1::bigint[]) ORDER BY id FOR NO KEY UPDATE`
const lockLanes = statement('lock-lanes', lockingLanes)
const lockLanesAtHand = statement('lock-lanes-at-hand', `${lockingLanes} SKIP LOCKED`)

/** Where the tripwire stands among so many partitions that were admitted together. */
export function tripwireAt(admitted: number): number {
  return Math.max(0, admitted - LOW_WATER)
}

/** Fills the window of a lane if it is open; returns how many partitions became ready. */
async function fillLane(tx: Transaction, lane: LockedLane, deltas: CountDeltas): Promise<number> {
  const rows = await tx.run(firstHeld, [lane.id])
  if (rows.length === 0) return 0
  const time = (await levelsToRank(tx, [lane.level], deltas)).get(lane.level)
  if (time === undefined) throw new Error(`level ${lane.level} has no time`)
  const to = next('held', 'admit')
  const ranks: bigint[] = []
  for (const row of rows) {
    ranks.push(rankFresh(time, lane, row.record_count))
    deltas.move(lane, 'held', to, row.record_count)
  }
  const ids = rows.map(({ id }) => id)
  tx.post(admit, [
    textArray(ids),
    textArray(ranks),
    ids[tripwireAt(ids.length)],
    textArray(rows.map(({ stay }) => stay)),
    lane.id,
    lane.level,
    lane.task,
  ])
  return rows.length
}

/** Takes up to `limit` ready partitions of a closed lane out of the reach of pulls. */
export async function holdLane(
  tx: Transaction,
  lane: LockedLane,
  limit: number,
  count: CountMove,
): Promise<number> {
  const rows = await tx.run(firstReady, [lane.id, limit])
  if (rows.length === 0) return 0
  const to = next('ready', 'hold')
  for (const row of rows) {
    if (row.fresh) setBack(lane, BigInt(row.rank_text))
    count('ready', to, row.record_count)
  }
  tx.post(hold, [
    rows.map(({ place }) => place),
    lane.id,
    textArray(rows.map(({ id }) => id)),
    textArray(rows.map(({ stay }) => stay)),
    textArray(rows.map(({ record_count }) => record_count)),
  ])
  return rows.length
}

/** All at once: for 5,000 lanes a statement each took 350 to 800 ms, and one for all of them 45 to 100. */
export function saveLaneTags(tx: Transaction, lanes: readonly LockedLane[]): void {
  if (lanes.length === 0) return
  const sorted = lanes.toSorted((a, b) => a.id - b.id)
  tx.post(saveTags, [
    textArray(sorted.map(({ id }) => id)),
    textArray(sorted.map(({ finish }) => finish)),
    textArray(sorted.map(({ retryFinish }) => retryFinish)),
  ])
}

/**
 * Fills the lanes whose tripwire this transaction was handed, except those that are still locked after some looks: the
 * roller, which locks most, takes some milliseconds. Waiting for the lock would deadlock, because lanes are
 * locked in the order in which claims come across them. Nobody else fills these before they are nearly empty, so the
 * caller has to after its commit: see filling.ts.
 */
export async function fillAtHand(
  tx: Transaction,
  lanes: readonly number[],
  deltas: CountDeltas,
): Promise<{ readied: number; stillLocked: readonly number[] }> {
  let readied = 0
  let left = lanes
  for (let look = 0; left.length > 0 && look < LOOKS_FOR_LANE; look += 1) {
    if (look > 0) await sleep(LOOK_AGAIN_MILLIS)
    const rows = await tx.run(lockLanesAtHand, [left])
    readied += await fillLocked(tx, rows, deltas)
    const found = new Set(rows.map((row) => row['id'] as number))
    left = left.filter((lane) => !found.has(lane))
  }
  return { readied, stillLocked: left }
}

/** Waits for the lane's row, in a transaction that holds nothing that others could wait for. */
export async function fillWaiting(tx: Transaction, lane: number, deltas: CountDeltas): Promise<number> {
  return fillLocked(tx, await tx.run(lockLanes, [[lane]]), deltas)
}

async function fillLocked(tx: Transaction, rows: readonly Row[], deltas: CountDeltas): Promise<number> {
  let readied = 0
  for (const row of rows) {
    const lane = {
      id: row['id'] as number,
      task: row['task'] as number,
      level: row['level'] as number,
      finish: BigInt(row['finish'] as string),
      retryFinish: BigInt(row['retry_finish'] as string),
    }
    const filled = await fillLane(tx, lane, deltas)
    if (filled > 0) saveLaneTags(tx, [lane])
    readied += filled
  }
  return readied
}
