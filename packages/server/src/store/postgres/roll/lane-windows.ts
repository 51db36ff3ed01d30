import { isLaneOpen } from '../../../handoff/rules/lane-rules.ts'
import type { LaneEntry } from '../../../handoff/rules/task-entry.ts'
import { LOW_WATER, WINDOW } from '../windows/lanes.ts'
import { type CountMoveIn, fillLanes, holdLanes, inSteps } from '../windows/many-lanes.ts'
import { lanesWithFullWindows, placeTripwire } from '../windows/tripwire.ts'
import type { Roll } from './roll.ts'

/**
 * A window that has run so low was not filled by whoever was handed its tripwire. Between this and LOW_WATER they are
 * about to: the counters say what was claimed a moment before they say what was admitted, and looking at a window that
 * is full takes 1.7 ms.
 */
const FORGOTTEN = LOW_WATER / 2

/** Whether an open lane's window has run low and nobody else fills it. */
export const isForgotten = (lane: LaneEntry): boolean =>
  hasOpenBacklog(lane) && lane.partitions.ready < FORGOTTEN

/** How many partitions filling the window of a lane admits, at most. */
export const roomOf = ({ partitions }: LaneEntry): number => Math.min(partitions.held, WINDOW)

/** Fills the windows of those that are forgotten; returns how many partitions became ready. */
export function fill(roll: Roll, lanes: readonly LaneEntry[]): Promise<number> {
  return fillNow(roll, lanes.filter(isForgotten))
}

/**
 * The same for lanes behind whose windows partitions were put just now. They may have no tripwire, and then whoever empties
 * such a window goes on with the next level, until the roller comes.
 */
export async function fillBehind(roll: Roll, lanes: readonly LaneEntry[]): Promise<number> {
  const waiting = lanes.filter(hasOpenBacklog)
  const full = await lanesWithFullWindows(
    roll.tx,
    waiting.map(({ id }) => id),
  )
  for (const lane of full) placeTripwire(roll.tx, lane)
  return fillNow(
    roll,
    waiting.filter(({ id }) => !full.has(id)),
  )
}

/** Takes up to `limit` ready partitions of closed lanes out of the reach of pulls. */
export function hold(roll: Roll, lanes: readonly LaneEntry[], limit: number): Promise<number> {
  return holdLanes(roll.tx, lanes, limit, countIn(roll))
}

async function fillNow(roll: Roll, lanes: readonly LaneEntry[]): Promise<number> {
  let filled = 0
  for (const some of inSteps(lanes, roomOf)) filled += await fillLanes(roll.tx, some, countIn(roll))
  return filled
}

const hasOpenBacklog = ({ task, level, partitions }: LaneEntry): boolean =>
  partitions.held > 0 && isLaneOpen(task, level)

const countIn =
  (roll: Roll): CountMoveIn =>
  (lane, from, to, records) =>
    roll.move(lane, from, to, records)
