import type { ControlResult, RetryOrder } from '../../../handoff/rules/control.ts'
import type { Applied } from '../../../handoff/rules/control-rules.ts'
import { next, type PartitionState } from '../../../handoff/rules/life-cycle.ts'
import type { LaneEntry, TaskEntry } from '../../../handoff/rules/task-entry.ts'
import { changeQueued } from '../queues/queues.ts'
import { fillBehind } from '../roll/lane-windows.ts'
import { DONE_COLUMNS, type DoneRow, rerun } from '../roll/rerun.ts'
import type { Roll } from '../roll/roll.ts'
import { settleLanes } from '../roll/settle-lanes.ts'
import { advanceStep, beginStep } from '../roll/task-steps.ts'
import { lockAtHand } from '../rows/at-hand.ts'
import { type Row, statement } from '../session/statement.ts'
import { STEP } from '../windows/lanes.ts'

const parked = statement<ParkedRow | { readonly id: null }>(
  'parked-of-lanes',
  lockAtHand(
    `SELECT r.* FROM unnest($1::bigint[]) AS l (lane)
     CROSS JOIN LATERAL (
       SELECT id AS row FROM baton.partition WHERE lane = l.lane AND parked ORDER BY idx LIMIT $2
     ) r LIMIT $2`,
    'id, lane, record_count AS "recordCount"',
    "state = 'parked'",
  ),
)
const retried = statement(
  'retry',
  `UPDATE baton.partition SET state = $2, stay = stay + 1, parked = false, rank = NULL, attempts = 0, releases = 0
   WHERE id = ANY($1::bigint[])`,
)
const known = statement(
  'named-partitions',
  `SELECT n.position, l.id AS lane, p.id
   FROM unnest($2::bigint[], $3::bigint[]) WITH ORDINALITY AS n (level, idx, position)
   JOIN baton.lane l ON l.task = $1 AND l.level = n.level
   JOIN baton.partition p ON p.lane = l.id AND p.idx = n.idx`,
)
const atHand = statement<NamedRow>(
  'named-partitions-at-hand',
  `SELECT state, ${DONE_COLUMNS} FROM baton.partition WHERE id = ANY($1::bigint[]) ORDER BY id
   FOR UPDATE SKIP LOCKED`,
)

type ParkedRow = Pick<DoneRow, 'id' | 'lane' | 'recordCount'>

type Named = NonNullable<RetryOrder['partitions']>[number]

interface NamedRow extends DoneRow {
  readonly state: PartitionState
}

/** Of those that are named a step's worth, from a position on. */
export async function retry(
  roll: Roll,
  task: TaskEntry,
  order: RetryOrder,
  from: number,
): Promise<Applied | ControlResult> {
  if (order.partitions !== null) return retryNamed(roll, task, order.partitions, from, order.done)
  if (order.level !== null && (await roll.lanes.of(task, order.level)) === undefined)
    return { kind: 'level_unknown' }
  const progress = await retryParked(roll, task, order.level)
  if (!order.done || progress.more) return progress
  const rerunning = await rerunAll(roll, task, order.level)
  return {
    changed: progress.changed + rerunning.changed,
    readied: progress.readied + rerunning.readied,
  }
}

/**
 * Upkeep does what is left after the first step, and nothing more is asked of whoever gave the
 * order: repeated when upkeep is done already, it would begin anew.
 */
async function rerunAll(
  roll: Roll,
  task: TaskEntry,
  level: number | null,
): Promise<{ changed: number; readied: number }> {
  const done = await roll.doneRows(task, level)
  const begun = await beginStep(roll, task, 'rerun', level ?? undefined)
  const { readied } = await advanceStep(roll, task, 'rerun', level ?? undefined)
  return { changed: begun ? done : 0, readied }
}

/** Who is locked at the moment is left to a further step. */
async function retryParked(
  roll: Roll,
  task: TaskEntry,
  level: number | null,
): Promise<{ changed: number; readied: number; more: boolean }> {
  let left = STEP
  let isAnyLocked = false
  const touched: LaneEntry[] = []
  for await (const lanes of lanesToRetry(roll, task, level)) {
    const found = await roll.tx.run(parked, [lanes.map(({ id }) => id), left])
    const rows = found.filter((row) => row.id !== null)
    touched.push(...retryRows(roll, rows))
    left -= rows.length
    isAnyLocked ||= rows.length < found.length
    if (left === 0) break
  }
  return {
    changed: STEP - left,
    readied: await settleLanes(roll, touched, fillBehind),
    more: isAnyLocked || left === 0,
  }
}

async function* lanesToRetry(
  roll: Roll,
  task: TaskEntry,
  level: number | null,
): AsyncGenerator<readonly LaneEntry[]> {
  if (level === null) return yield* roll.lanes.pagesWith('parked', task)
  const lane = await roll.lanes.of(task, level)
  if (lane !== undefined) yield [lane]
}

/** Returns their lanes. */
function retryRows(roll: Roll, rows: readonly ParkedRow[]): LaneEntry[] {
  if (rows.length === 0) return []
  const to = next('parked', 'retry')
  const lanes = roll.lanes.grouped(rows)
  for (const [lane, of] of lanes) {
    lane.parkedSkipped = false
    for (const { recordCount } of of) roll.move(lane, 'parked', to, recordCount)
  }
  const ids = rows.map(({ id }) => id)
  changeQueued(roll.tx, ids, () => roll.tx.post(retried, [ids, to]))
  return [...lanes.keys()]
}

/**
 * All of them have to be known before the first is retried. What somebody is settling at this moment is not waited for while
 * lanes are locked: another step follows.
 */
async function retryNamed(
  roll: Roll,
  task: TaskEntry,
  named: readonly Named[],
  from: number,
  done: boolean,
): Promise<Applied | ControlResult> {
  const found = await find(roll, task, from === 0 ? named : named.slice(from, from + STEP))
  const unknown = found.flatMap((row, position) => (row === undefined ? [from + position] : []))
  if (unknown.length > 0) return { kind: 'partitions_unknown', positions: unknown }
  const lanes = new Map(found.slice(0, STEP).map((row) => [row?.['id'] as number, row?.['lane'] as number]))
  const rows = await roll.tx.run(atHand, [[...lanes.keys()]])
  await roll.lanes.read(new Set(lanes.values()))
  const again = rows.filter(({ state }) => state === 'parked')
  const anew = done ? rows.filter(({ state }) => state === 'done') : []
  const touched = new Set([...retryRows(roll, again), ...rerun(roll, anew)])
  return {
    changed: again.length + anew.length,
    readied: await settleLanes(roll, [...touched], fillBehind),
    more: rows.length < lanes.size,
  }
}

/** Position by position, undefined for who is not known. */
async function find({ tx }: Roll, task: TaskEntry, named: readonly Named[]): Promise<(Row | undefined)[]> {
  const rows = await tx.run(known, [
    task.id,
    named.map(({ level }) => level),
    named.map(({ index }) => index),
  ])
  const byPosition = new Map(rows.map((row) => [row['position'] as number, row]))
  return named.map((_, position) => byPosition.get(position + 1))
}
