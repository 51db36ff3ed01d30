import { holdsBarrier, isLaneOpen } from '../../../handoff/rules/lane-rules.ts'
import type { LaneEntry, TaskEntry } from '../../../handoff/rules/task-entry.ts'
import { WINDOW } from '../windows/lanes.ts'
import { fill, hold } from './lane-windows.ts'
import type { Roll } from './roll.ts'

/** Finds the barrier's place anew: after it was put up, or an operator let parked partitions pass. */
export async function placeBarrier(roll: Roll, task: TaskEntry): Promise<number> {
  if (!task.levelBarrier) return 0
  const lowest = await roll.lanes.lowestUnfinished([{ task, level: task.openLevel ?? 0 }])
  return setOpenLevels(roll, new Map([[task, lowest.get(task)?.level ?? null]]))
}

/**
 * Brings the barriers of their tasks in line with what became of these lanes. Below the open level everything is finished,
 * so the search starts there, and at the lanes themselves, which may just have got work. All tasks together: as many levels
 * open at once as there are partitions in a batch.
 */
export async function moveBarriers(roll: Roll, touched: readonly LaneEntry[]): Promise<number> {
  const lanesOf = Map.groupBy(
    touched.filter(({ task }) => task.levelBarrier),
    ({ task }) => task,
  )
  const lowest = await roll.lanes.lowestUnfinished(
    [...lanesOf.keys()].flatMap((task) => (task.openLevel === null ? [] : [{ task, level: task.openLevel }])),
  )
  const levels = new Map<TaskEntry, number | null>()
  for (const [task, lanes] of lanesOf) {
    let level = lowest.get(task)?.level ?? null
    for (const lane of lanes) if (holdsBarrier(lane)) level = Math.min(lane.level, level ?? lane.level)
    levels.set(task, level)
  }
  return setOpenLevels(roll, levels)
}

async function setOpenLevels(roll: Roll, levels: ReadonlyMap<TaskEntry, number | null>): Promise<number> {
  const opening: LaneEntry[] = []
  for (const [task, level] of levels) {
    const before = task.openLevel
    if (level === before) continue
    task.openLevel = level
    roll.touch(task)
    const closes = before !== null && (level === null || before > level)
    const closing = closes ? await roll.lanes.of(task, before) : undefined
    if (closing !== undefined && !isLaneOpen(task, closing.level)) await hold(roll, [closing], WINDOW)
    const lane = level === null ? undefined : await roll.lanes.of(task, level)
    if (lane !== undefined) opening.push(lane)
  }
  return fill(roll, opening)
}
