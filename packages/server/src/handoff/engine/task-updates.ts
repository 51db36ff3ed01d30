import type { ControlRequest } from '../rules/control.ts'
import { reasonToPause, withAttempt, withoutExpiry } from '../rules/failure-window.ts'
import {
  areSame,
  changedBarrier,
  changedSettings,
  pausesAlike,
  type TaskSettingsChange,
} from '../rules/policy.ts'
import { stamped } from '../rules/stamps.ts'
import {
  type BarrierLane,
  bringUpToDate,
  decidingLevel,
  finishedOf,
  holdsBarrier,
  isLaneOpen,
} from '../rules/task.ts'
import { lanesFrom, loadLanes } from './read-rows.ts'
import type { Lane, Task } from './state/memory-rows.ts'
import type { Transaction } from './transaction.ts'

// Updates tasks after their partitions changed: the position of their level barrier and their state.

/** The next lane is nearly always the right one, so the first read is small. */
const LANES_AT_FIRST = 4
const LANES_AT_MOST = 256

/** Opens and closes levels. Call it before serving pulls, so that they see newly opened levels. */
export async function moveBarriers(tx: Transaction): Promise<void> {
  for (const [task, enabled] of tx.barriers) {
    tx.barriers.delete(task)
    await setBarrier(tx, task, enabled)
  }
  for (const { row: lane } of tx.touchedLanes) if (lane.parentTask.levelBarrier) await moveBarrier(tx, lane)
}

async function moveBarrier(tx: Transaction, lane: Lane): Promise<void> {
  const { parentTask: task, level } = lane
  if (holdsBarrier(lane)) {
    if (task.openLevel === null || level < task.openLevel) setOpenLevel(tx, task, lane)
  } else if (level === task.openLevel) await placeBarrier(tx, task, level)
}

/** Turns the level barrier of a task on or off. Returns false if nothing changed. */
export async function setBarrier(tx: Transaction, task: Task, enabled: boolean): Promise<boolean> {
  if (task.levelBarrier === enabled) return false
  tx.touchTask(task)
  task.levelBarrier = enabled
  task.openLevel = null
  if (enabled) await placeBarrier(tx, task, 0)
  else reopenTask(tx, task)
  return true
}

/** All lanes of the task may be served again, subject to its barrier. */
export function reopenTask(tx: Transaction, task: Task): void {
  tx.waiting.reopen(task)
  if (!task.paused && !task.cancelled) tx.newlyReady.add(task.taskId, null, task.partitions.ready)
}

/** Places the barrier. Everything below level `from` must be finished. */
export async function placeBarrier(tx: Transaction, task: Task, from: number): Promise<void> {
  setOpenLevel(tx, task, await lowestUnfinished(tx, task, from))
}

function setOpenLevel(tx: Transaction, task: Task, lane: Lane | undefined): void {
  const level = lane?.level ?? null
  if (task.openLevel === level) return
  tx.touchTask(task)
  task.openLevel = level
  // Everything below is finished, so this is the only lane that can open.
  if (lane === undefined || !isLaneOpen(task, lane.level)) return
  tx.waiting.reopen(task)
  tx.newlyReady.add(task.taskId, null, lane.partitions.ready)
}

/** The lowest lane that keeps higher levels closed. One with only parked and finished ones is on disk. */
async function lowestUnfinished(tx: Transaction, task: Task, from: number): Promise<Lane | undefined> {
  let lowest: Lane | undefined
  for (const lane of task.lanes.values())
    if (lane.level >= from && holdsBarrier(lane) && (lowest === undefined || lane.level < lowest.level))
      lowest = lane
  if (task.partitions.parked === 0) return lowest
  let next = from
  let limit = LANES_AT_FIRST
  while (lowest === undefined || next < lowest.level) {
    const found = await lanesFrom(tx, task, next, 'parked', limit)
    const holding = found.find(holdsBarrier)
    if (holding !== undefined) return lowest === undefined || holding.level < lowest.level ? holding : lowest
    if (found.length < limit) break
    next = (found.at(-1)?.level ?? next) + 1
    limit = Math.min(limit * 4, LANES_AT_MOST)
  }
  return lowest
}

/** Updates the state and finish time of every task and lane that the transaction touched. */
export async function concludeTasks(tx: Transaction): Promise<void> {
  for (const { row: lane } of tx.touchedLanes)
    lane.finishedAt = finishedOf(lane, lane.parentTask) === null ? null : (lane.finishedAt ?? tx.now)
  for (const { row: task } of tx.touchedTasks) {
    const isDecidedByLane = decidingLevel(task) !== null
    bringUpToDate(task, isDecidedByLane ? await decidingLane(tx, task) : null, tx.now)
  }
}

async function decidingLane(tx: Transaction, task: Task): Promise<BarrierLane | null> {
  const level = decidingLevel(task)
  if (level === null) return null
  await loadLanes(tx, task, [level])
  return task.lanes.get(level) ?? null
}

/** Leases and back-offs keep their times. The caller places the barrier, which may need to load rows. */
export function applySettings(tx: Transaction, task: Task, change: TaskSettingsChange): boolean {
  const settings = changedSettings(task.settings, change)
  const isBarrierNew = changedBarrier(tx.policy, task.levelBarrier, change) !== task.levelBarrier
  if (areSame(settings, task.settings) && !isBarrierNew) return false
  tx.touchTask(task)
  if (!pausesAlike(settings, task.settings)) task.failureWindow = ''
  task.settings = settings
  // If a limit was raised, the task can be served again.
  reopenTask(tx, task)
  return true
}

/** Records who changed the task. */
export function noteControl(
  tx: Transaction,
  task: Task,
  { verb, by }: Pick<ControlRequest, 'verb' | 'by'>,
  changed: number,
): void {
  tx.audit(by, { action: verb, taskId: task.taskId, changed })
  const stamps = stamped(task.stamps, verb, tx.now, by?.name ?? null)
  if (stamps === task.stamps) return
  tx.touchTask(task)
  task.stamps = stamps
}

/** An attempt ended: done, or failed or expired. The task pauses itself if too many of its last ones failed. */
export function noteAttempt(tx: Transaction, task: Task, hasFailed: boolean): void {
  const rule = task.settings?.pauseAfterFailures
  if (rule === undefined) return
  tx.touchTask(task)
  task.failureWindow = withAttempt(task.failureWindow, hasFailed, rule)
  const because =
    hasFailed && !task.paused && !task.cancelled ? reasonToPause(task.failureWindow, rule) : null
  if (because === null) return
  task.paused = true
  task.stamps = { ...task.stamps, paused: [tx.now, null, because] }
  const by = { name: null, address: null, body: { because } }
  tx.audit(by, { action: 'pause', taskId: task.taskId, changed: 1 })
}

/** An expired lease was renewed. */
export function forgetExpiry(tx: Transaction, task: Task): void {
  if (task.failureWindow === '') return
  tx.touchTask(task)
  task.failureWindow = withoutExpiry(task.failureWindow)
}

export function emptyFailureWindow(tx: Transaction, task: Task): void {
  if (task.failureWindow === '') return
  tx.touchTask(task)
  task.failureWindow = ''
}
