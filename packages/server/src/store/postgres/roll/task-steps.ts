import type { Step } from '../../../handoff/control-rules.ts'
import { next } from '../../../handoff/life-cycle.ts'
import type { LaneEntry, TaskEntry } from '../../../handoff/task-entry.ts'
import { lockedOf, WAITS } from '../queues/places.ts'
import { changeQueued } from '../queues/queues.ts'
import { dropStraysOfLane } from '../queues/strays.ts'
import { statement } from '../session/statement.ts'
import { readyOfLane, STEP } from '../windows/lanes.ts'
import { fill } from './lane-windows.ts'
import { rerunDone } from './rerun.ts'
import type { Roll } from './roll.ts'

export interface Progress {
  changed: number
  readied: number
  more: boolean
}

const ALL_LEVELS = -1

/** A clock that was set back since may be behind what is done: that is meant all the same. */
const begin = statement(
  'begin-step',
  `INSERT INTO baton.task_step (task, step, level, only_level, begun_at)
   SELECT $1, $2, $3, $4, coalesce(max(second) * 1000 + 999, $5) FROM baton.pace WHERE task = $1 AND second > $5::bigint / 1000
   ON CONFLICT DO NOTHING RETURNING task`,
)
const stepOf = statement(
  'step-of-task',
  'SELECT level, idx, begun_at FROM baton.task_step WHERE task = $1 AND step = $2 AND only_level = $3',
)
const save = statement(
  'save-step',
  'UPDATE baton.task_step SET level = $4, idx = $5 WHERE task = $1 AND step = $2 AND only_level = $3',
)
const end = statement(
  'end-step',
  'DELETE FROM baton.task_step WHERE task = $1 AND step = $2 AND only_level = $3',
)
const isRerunning = statement(
  'is-rerunning',
  `SELECT EXISTS (SELECT FROM baton.task_step WHERE task = $1 AND step = 'rerun') AS rerunning`,
)
const drop = statement('drop-step', 'DELETE FROM baton.task_step WHERE task = $1 AND step = $2')
const waitingIn = (state: 'ready' | 'held', places: string) =>
  statement(
    `waiting-${state}-of-lane`,
    `SELECT p.* FROM (${places}) q ${lockedOf('id, record_count', WAITS)} LIMIT $2`,
  )
const parkedIn = statement(
  'waiting-parked-of-lane',
  'SELECT id, record_count FROM baton.partition WHERE lane = $1 AND parked ORDER BY idx LIMIT $2 FOR UPDATE SKIP LOCKED',
)
const waiting = {
  ready: waitingIn('ready', readyOfLane('id, stay')),
  held: waitingIn('held', 'SELECT id, stay FROM baton.held WHERE lane = $1 ORDER BY id OFFSET 0'),
  parked: parkedIn,
}
const anyWaiting = statement(
  'any-waiting-of-lane',
  `SELECT EXISTS (SELECT FROM baton.ready WHERE lane = $1) OR EXISTS (SELECT FROM baton.held WHERE lane = $1)
     OR (SELECT idx FROM baton.partition WHERE lane = $1 AND parked ORDER BY idx LIMIT 1) IS NOT NULL
     AS waiting`,
)
const cancel = statement(
  'cancel',
  'UPDATE baton.partition SET state = $2, parked = false, rank = NULL, due_at = NULL WHERE id = ANY($1::bigint[])',
)

/** False when the same step is under way already. */
export async function beginStep(
  { tx }: Roll,
  task: TaskEntry,
  step: Step,
  onlyLevel = ALL_LEVELS,
): Promise<boolean> {
  if (step === 'rerun') task.rerunning = true
  const values = [task.id, step, Math.max(onlyLevel, 0), onlyLevel, await tx.now()]
  return (await tx.write(begin, values)).length > 0
}

/**
 * Who was judged before a cancel and committed after it may have gone back to waiting when the cancel had been through
 * with their lane. They are counted there: the cancel goes on.
 */
export async function cancelLate(roll: Roll): Promise<void> {
  for (const { task, partitions } of roll.touchedLanes) {
    const isWaiting = partitions.ready > 0 || partitions.held > 0 || partitions.parked > 0
    if (task.cancelled && isWaiting) await beginStep(roll, task, 'cancel')
  }
}

/** A pause or a cancel overtakes what an earlier order left to do. */
export async function dropStep({ tx }: Roll, task: TaskEntry, step: Step): Promise<void> {
  if (step === 'rerun') task.rerunning = false
  await tx.write(drop, [task.id, step])
}

async function endStep(roll: Roll, task: TaskEntry, step: Step, onlyLevel: number): Promise<void> {
  await roll.tx.write(end, [task.id, step, onlyLevel])
  if (step !== 'rerun') return
  // The same may be under way on another level.
  const [row] = await roll.tx.run(isRerunning, [task.id])
  task.rerunning = row?.['rerunning'] === true
  roll.touch(task)
}

/** One bounded transaction's worth of a task's step. */
export async function advanceStep(
  roll: Roll,
  task: TaskEntry,
  step: Step,
  onlyLevel = ALL_LEVELS,
): Promise<Progress> {
  const progress: Progress = { changed: 0, readied: 0, more: false }
  const [row] = await roll.tx.run(stepOf, [task.id, step, onlyLevel])
  if (row === undefined) return progress
  const begunAt = row['begun_at'] as number
  let at = { level: row['level'] as number, index: row['idx'] as number }
  let visited = 0
  while (progress.changed < STEP && visited < STEP) {
    const lane = await roll.laneFrom(task, at.level)
    if (lane === undefined || (onlyLevel !== ALL_LEVELS && lane.level !== onlyLevel)) {
      await endStep(roll, task, step, onlyLevel)
      return progress
    }
    const index = lane.level === at.level ? at.index : -1
    const after = await workOn(roll, { step, begunAt }, lane, index, STEP - progress.changed, progress)
    at = after === null ? { level: lane.level + 1, index: -1 } : { level: lane.level, index: after }
    visited += 1
    // A page of partitions that are not to run again is followed by the next one, unless somebody has locked its first.
    if (after !== null && (step !== 'rerun' || after === index)) break
  }
  await roll.tx.write(save, [task.id, step, onlyLevel, at.level, at.index])
  return { ...progress, more: true }
}

/** Returns the index to go on from within the lane, or null when the lane needs no more. */
async function workOn(
  roll: Roll,
  { step, begunAt }: { readonly step: Step; readonly begunAt: number },
  lane: LaneEntry,
  after: number,
  limit: number,
  progress: Progress,
): Promise<number | null> {
  switch (step) {
    case 'fill': {
      const readied = await fill(roll, lane)
      progress.readied += readied
      progress.changed += readied
      return null
    }
    case 'cancel': {
      const cancelled = await cancelWaiting(roll, lane, limit)
      progress.changed += cancelled
      // A stray place would look for ever like somebody who waits.
      if (cancelled < limit) await roll.tx.write(dropStraysOfLane, [lane.id])
      // Rows that a pull has locked are not seen: the lane is done with when none is left.
      const [row] = await roll.tx.run(anyWaiting, [lane.id])
      return row?.['waiting'] === true ? after : null
    }
    case 'rerun': {
      const { changed, readied, goOnAfter } = await rerunDone(roll, lane, { begunAt, after, limit })
      progress.changed += changed
      progress.readied += readied
      return goOnAfter
    }
  }
}

/** Leased and delayed partitions follow when their time ends; nothing can be done with them until then. */
async function cancelWaiting(roll: Roll, lane: LaneEntry, limit: number): Promise<number> {
  let cancelled = 0
  for (const state of ['ready', 'held', 'parked'] as const) {
    if (cancelled === limit) break
    const rows = await roll.tx.run(waiting[state], [lane.id, limit - cancelled])
    if (rows.length === 0) continue
    const to = next(state, 'cancel')
    for (const row of rows) roll.move(lane, state, to, row['record_count'] as number)
    const ids = rows.map((row) => row['id'] as number)
    changeQueued(roll.tx, ids, () => roll.tx.post(cancel, [ids, to]))
    cancelled += rows.length
  }
  return cancelled
}
