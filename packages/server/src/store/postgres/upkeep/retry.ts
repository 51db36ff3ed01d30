import type { ControlResult, RetryOrder } from '../../../handoff/control.ts'
import type { Applied } from '../../../handoff/control-rules.ts'
import { next, type PartitionState } from '../../../handoff/life-cycle.ts'
import type { LaneEntry, TaskEntry } from '../../../handoff/task-entry.ts'
import { changeQueued } from '../queues/queues.ts'
import { fillBehind, settleLanes } from '../roll/lane-windows.ts'
import { DONE_COLUMNS, type DoneRow, rerun } from '../roll/rerun.ts'
import type { Roll } from '../roll/roll.ts'
import { advanceStep, beginStep } from '../roll/task-steps.ts'
import { lockAtHand } from '../rows/at-hand.ts'
import { statement } from '../session/statement.ts'
import { STEP } from '../windows/lanes.ts'

const parked = statement(
  'parked-of-lane',
  lockAtHand(
    'SELECT id AS row FROM baton.partition WHERE lane = $1 AND parked ORDER BY idx LIMIT $2',
    'id, record_count AS "recordCount"',
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
  `SELECT n.position, l.id AS lane, l.level, p.id
   FROM unnest($2::bigint[], $3::bigint[]) WITH ORDINALITY AS n (level, idx, position)
   JOIN baton.lane l ON l.task = $1 AND l.level = n.level
   JOIN baton.partition p ON p.lane = l.id AND p.idx = n.idx`,
)
const atHand = statement(
  'named-partitions-at-hand',
  `SELECT state, ${DONE_COLUMNS} FROM baton.partition WHERE id = ANY($1::bigint[]) ORDER BY id
   FOR UPDATE SKIP LOCKED`,
)

type ParkedRow = Pick<DoneRow, 'id' | 'recordCount'>

interface NamedRow extends DoneRow {
  readonly state: PartitionState
}

export async function retry(
  roll: Roll,
  task: TaskEntry,
  order: RetryOrder,
): Promise<Applied | ControlResult> {
  if (order.partitions !== null) return retryNamed(roll, task, order.partitions, order.done)
  if (order.level !== null && (await roll.laneOf(task, order.level)) === undefined)
    return { kind: 'level_unknown' }
  const lanes = await roll.lanesWith(task, 'parked')
  const progress = await retryParked(
    roll,
    lanes.filter(({ level }) => order.level === null || level === order.level),
  )
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
  lanes: readonly LaneEntry[],
): Promise<{ changed: number; readied: number; more: boolean }> {
  let changed = 0
  let isAnyLocked = false
  for (const lane of lanes) {
    const found = await roll.tx.run(parked, [lane.id, STEP - changed])
    const rows = found.filter((row) => row['id'] !== null) as unknown as ParkedRow[]
    await retryRows(roll, lane, rows)
    changed += rows.length
    isAnyLocked ||= rows.length < found.length
    if (changed === STEP) break
  }
  return {
    changed,
    readied: await settleLanes(roll, lanes, fillBehind),
    more: isAnyLocked || changed === STEP,
  }
}

async function retryRows(roll: Roll, lane: LaneEntry, rows: readonly ParkedRow[]): Promise<void> {
  if (rows.length === 0) return
  const to = next('parked', 'retry')
  lane.parkedSkipped = false
  for (const { recordCount } of rows) roll.move(lane, 'parked', to, recordCount)
  const ids = rows.map(({ id }) => id)
  changeQueued(roll.tx, ids, () => roll.tx.post(retried, [ids, to]))
}

/** What somebody is settling at this moment is not waited for while lanes are locked: another step follows. */
async function retryNamed(
  roll: Roll,
  task: TaskEntry,
  named: readonly { level: number; index: number }[],
  done: boolean,
): Promise<Applied | ControlResult> {
  const found = await roll.tx.run(known, [
    task.id,
    named.map(({ level }) => level),
    named.map(({ index }) => index),
  ])
  const positions = new Set(found.map((row) => (row['position'] as number) - 1))
  const unknown = named.flatMap((_, position) => (positions.has(position) ? [] : [position]))
  if (unknown.length > 0) return { kind: 'partitions_unknown', positions: unknown }
  const levels = new Map(found.map((row) => [row['id'] as number, row['level'] as number]))
  const rows = (await roll.tx.run(atHand, [[...levels.keys()]])) as unknown as NamedRow[]
  const touched = new Set<LaneEntry>()
  let changed = 0
  for (const [level, of] of Map.groupBy(rows, ({ id }) => levels.get(id) ?? 0)) {
    const lane = await roll.laneOf(task, level)
    if (lane === undefined) continue
    const again = of.filter(({ state }) => state === 'parked')
    const anew = done ? of.filter(({ state }) => state === 'done') : []
    await retryRows(roll, lane, again)
    await rerun(roll, lane, anew)
    if (again.length + anew.length > 0) touched.add(lane)
    changed += again.length + anew.length
  }
  return {
    changed,
    readied: await settleLanes(roll, [...touched], fillBehind),
    more: rows.length < levels.size,
  }
}
