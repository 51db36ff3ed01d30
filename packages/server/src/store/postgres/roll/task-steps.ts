import type { Step } from '../../../handoff/rules/control-rules.ts'
import type { LaneEntry, TaskEntry } from '../../../handoff/rules/task-entry.ts'
import { statement } from '../session/statement.ts'
import { STEP } from '../windows/lanes.ts'
import { cancelWaiting } from './cancelling.ts'
import { fill, isForgotten, roomOf } from './lane-windows.ts'
import { rerunDone } from './rerun.ts'
import type { Roll } from './roll.ts'

export interface Progress {
  changed: number
  readied: number
  more: boolean
}

const ALL_LEVELS = -1

/** Groups of lanes that a transaction looks at before it has changed a step's worth: most may have nothing to do. */
const ROUNDS = 4

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
  const tasks = new Set<TaskEntry>()
  for (const { task, partitions } of roll.touchedLanes) {
    const isWaiting = partitions.ready > 0 || partitions.held > 0 || partitions.parked > 0
    if (task.cancelled && isWaiting) tasks.add(task)
  }
  for (const task of tasks) await beginStep(roll, task, 'cancel')
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

/** Where a step goes on: at a level, behind an index of it. */
interface At {
  readonly level: number
  readonly index: number
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
  let at: At = { level: row['level'] as number, index: row['idx'] as number }
  for (let round = 0; progress.changed < STEP && round < ROUNDS; round += 1) {
    const found = await roll.lanes.from(task, at.level, onlyLevel === ALL_LEVELS ? undefined : 1)
    const lanes = found.filter(({ level }) => onlyLevel === ALL_LEVELS || level === onlyLevel)
    const last = lanes.at(-1)
    if (last === undefined) {
      await endStep(roll, task, step, onlyLevel)
      return progress
    }
    const before = at
    const goOn = await workOn(roll, { step, begunAt, at }, lanes, progress)
    at = goOn ?? { level: last.level + 1, index: -1 }
    // The next windows are a step of their own, or somebody has locked what comes next.
    if (goOn !== null && (step === 'fill' || (at.level === before.level && at.index === before.index))) break
  }
  await roll.tx.write(save, [task.id, step, onlyLevel, at.level, at.index])
  return { ...progress, more: true }
}

/** Returns where to go on within these lanes, or null when they need no more. */
async function workOn(
  roll: Roll,
  { step, begunAt, at }: { readonly step: Step; readonly begunAt: number; readonly at: At },
  lanes: readonly LaneEntry[],
  progress: Progress,
): Promise<At | null> {
  const limit = STEP - progress.changed
  switch (step) {
    case 'fill': {
      const forgotten = lanes.filter(isForgotten)
      const some = fitting(forgotten, limit)
      const putOff = forgotten[some.length]
      const readied = await fill(roll, some)
      progress.readied += readied
      progress.changed += readied
      return putOff === undefined ? null : { level: putOff.level, index: -1 }
    }
    case 'cancel': {
      const { cancelled, firstWaiting } = await cancelWaiting(roll, lanes, limit)
      progress.changed += cancelled
      return firstWaiting === undefined ? null : { level: firstWaiting.level, index: -1 }
    }
    case 'rerun': {
      const after = lanes[0]?.level === at.level ? at.index : -1
      const { changed, readied, goOn } = await rerunDone(roll, lanes, { begunAt, after, limit })
      progress.changed += changed
      progress.readied += readied
      return goOn === null ? null : { level: goOn.lane.level, index: goOn.after }
    }
  }
}

/** Those whose windows are filled in a step, of which so much is left; each is filled as a whole. */
function fitting(lanes: readonly LaneEntry[], limit: number): LaneEntry[] {
  const some: LaneEntry[] = []
  let left = limit
  for (const lane of lanes) {
    left -= roomOf(lane)
    // One that is larger than a step is a step of its own.
    if (left < 0 && (some.length > 0 || limit < STEP)) break
    some.push(lane)
  }
  return some
}
