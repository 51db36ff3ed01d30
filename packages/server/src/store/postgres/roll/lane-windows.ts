import { holdsBarrier, isLaneOpen } from '../../../handoff/lane-rules.ts'
import type { LaneEntry, TaskEntry } from '../../../handoff/task-entry.ts'
import { fillLane, holdLane, LOW_WATER, STEP, WINDOW } from '../windows/lanes.ts'
import { isWindowFull, placeTripwire } from '../windows/tripwire.ts'
import type { Roll } from './roll.ts'

/**
 * Brings barriers, windows and closed lanes in line with what became of these lanes. Returns how
 * many partitions became ready.
 */
export async function settleLanes(
  roll: Roll,
  touched: readonly LaneEntry[],
  fillOpen: typeof fill = fill,
): Promise<number> {
  let readied = 0
  for (const lane of touched) {
    if (lane.task.levelBarrier)
      readied += await moveBarrier(roll, lane.task, holdsBarrier(lane) ? lane.level : null)
    if (isLaneOpen(lane.task, lane.level)) readied += await fillOpen(roll, lane)
    else if (lane.partitions.ready > 0) await hold(roll, lane, STEP)
  }
  return readied
}

/**
 * A window that has run so low was not filled by whoever was handed its tripwire. Between this and LOW_WATER they are
 * about to: the counters say what was claimed a moment before they say what was admitted, and looking at a window that
 * is full takes 1.7 ms.
 */
const FORGOTTEN = LOW_WATER / 2

/** Fills an open lane's window if it has run low and nobody else does. */
export async function fill(roll: Roll, lane: LaneEntry): Promise<number> {
  const { partitions, task } = lane
  if (partitions.held <= 0 || partitions.ready >= FORGOTTEN || !isLaneOpen(task, lane.level)) return 0
  return fillNow(roll, lane)
}

/**
 * The same for a lane behind whose window partitions were put just now. It may have no tripwire, and then whoever empties
 * it goes on with the next level, until the roller comes.
 */
export async function fillBehind(roll: Roll, lane: LaneEntry): Promise<number> {
  if (lane.partitions.held <= 0 || !isLaneOpen(lane.task, lane.level)) return 0
  if (!(await isWindowFull(roll.tx, lane.id))) return fillNow(roll, lane)
  placeTripwire(roll.tx, lane.id)
  return 0
}

async function fillNow(roll: Roll, lane: LaneEntry): Promise<number> {
  const tags = lockedLane(lane)
  const filled = await fillLane(
    roll.tx,
    tags,
    (from, to, records) => roll.move(lane, from, to, records),
    null,
  )
  return keepTags(roll, lane, tags, filled)
}

export async function hold(roll: Roll, lane: LaneEntry, limit: number): Promise<number> {
  const tags = lockedLane(lane)
  const held = await holdLane(roll.tx, tags, limit, (from, to, records) => roll.move(lane, from, to, records))
  return keepTags(roll, lane, tags, held)
}

/** Finds the barrier's place anew: after it was put up, or an operator let parked partitions pass. */
export async function placeBarrier(roll: Roll, task: TaskEntry): Promise<number> {
  return task.levelBarrier ? setOpenLevel(roll, task, await lowestUnfinished(roll, task, 0)) : 0
}

/**
 * Below the open level everything is finished, so the search starts there, and at `unfinished`, the
 * level that just got work.
 */
async function moveBarrier(roll: Roll, task: TaskEntry, unfinished: number | null): Promise<number> {
  const from = task.openLevel === null ? null : await lowestUnfinished(roll, task, task.openLevel)
  const candidates = [from, unfinished].filter((level) => level !== null)
  return setOpenLevel(roll, task, candidates.length === 0 ? null : Math.min(...candidates))
}

async function setOpenLevel(roll: Roll, task: TaskEntry, level: number | null): Promise<number> {
  const before = task.openLevel
  if (level === before) return 0
  task.openLevel = level
  roll.touch(task)
  const closes = before !== null && (level === null || before > level)
  const closing = closes ? await roll.laneOf(task, before) : undefined
  if (closing !== undefined && !isLaneOpen(task, closing.level)) await hold(roll, closing, WINDOW)
  const opening = level === null ? undefined : await roll.laneOf(task, level)
  return opening === undefined ? 0 : fill(roll, opening)
}

async function lowestUnfinished(roll: Roll, task: TaskEntry, fromLevel: number): Promise<number | null> {
  let level = fromLevel
  while (true) {
    const lane = await roll.laneFrom(task, level)
    if (lane === undefined) return null
    if (holdsBarrier(lane)) return lane.level
    level = lane.level + 1
  }
}

function lockedLane(lane: LaneEntry) {
  return {
    id: lane.id,
    task: lane.task.id,
    level: lane.level,
    finish: lane.finish,
    retryFinish: lane.retryFinish,
  }
}

function keepTags(
  roll: Roll,
  lane: LaneEntry,
  tags: { finish: bigint; retryFinish: bigint },
  changed: number,
): number {
  lane.finish = tags.finish
  lane.retryFinish = tags.retryFinish
  if (changed > 0) roll.touch(lane)
  return changed
}
