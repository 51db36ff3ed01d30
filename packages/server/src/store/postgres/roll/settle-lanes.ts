import { isLaneOpen } from '../../../handoff/rules/lane-rules.ts'
import type { LaneEntry } from '../../../handoff/rules/task-entry.ts'
import { STEP } from '../windows/lanes.ts'
import { inSteps } from '../windows/many-lanes.ts'
import { moveBarriers } from './barrier.ts'
import { fill, hold } from './lane-windows.ts'
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
  const opened = await moveBarriers(roll, touched)
  // Nothing of a cancelled task is handed out, and its cancel takes what is ready from where it is.
  const closed = touched.filter(
    ({ task, level, partitions }) => partitions.ready > 0 && !task.cancelled && !isLaneOpen(task, level),
  )
  for (const lanes of inSteps(closed, ({ partitions }) => partitions.ready)) await hold(roll, lanes, STEP)
  return opened + (await fillOpen(roll, touched))
}
