import type { ControlOrder, ControlResult } from '../../../handoff/control.ts'
import { type Applied, type Effect, effectOf, mayPass, refusalOf } from '../../../handoff/control-rules.ts'
import { isLaneOpen } from '../../../handoff/lane-rules.ts'
import { taskState } from '../../../handoff/task-course.ts'
import type { TaskEntry } from '../../../handoff/task-entry.ts'
import { hold, placeBarrier, settleLanes } from '../roll/lane-windows.ts'
import { Roll } from '../roll/roll.ts'
import { advanceStep, beginStep, cancelLate, dropStep } from '../roll/task-steps.ts'
import { untilOthersAreThrough } from '../rows/at-hand.ts'
import type { Transaction } from '../session/transaction.ts'
import type { Transactions } from '../session/transactions.ts'
import { STEP } from '../windows/lanes.ts'
import { retry } from './retry.ts'

/**
 * Orders to a task. The flag counts from this transaction on; rows follow in steps. It is decided by
 * counters, so it is the roller's turn: they are folded in first.
 */
export async function control(transactions: Transactions, order: ControlOrder): Promise<ControlResult> {
  const result = await transactions.run((tx) => step(tx, order))
  const isHeldUp = order.verb === 'retry' && result.kind === 'applied' && result.more && result.changed === 0
  if (isHeldUp) await untilOthersAreThrough()
  return result
}

async function step(tx: Transaction, order: ControlOrder): Promise<ControlResult> {
  const roll = await Roll.begin(tx)
  const folded = await roll.foldTask(order.taskId)
  if (folded === undefined) return { kind: 'task_unknown' }
  const { task, lanes } = folded
  const opened = await settleLanes(roll, lanes)
  task.state = taskState(task, await roll.decidingLane(task))
  const outcome = refusalOf(task, order) ?? (await apply(roll, task, order))
  await settleLanes(roll, roll.touchedLanes)
  if (!('kind' in outcome)) roll.touch(task)
  await cancelLate(roll)
  await roll.flush()
  if ('kind' in outcome) return outcome
  const { changed, readied = 0, more = false } = outcome
  return { kind: 'applied', state: task.state, changed, readied: readied + opened, more }
}

function apply(roll: Roll, task: TaskEntry, order: ControlOrder): Promise<Applied | ControlResult> {
  if (order.verb === 'retry') return retry(roll, task, order)
  if (order.verb === 'skip-parked') return skipParked(roll, task)
  return carryOut(roll, task, effectOf(task, order))
}

async function carryOut(roll: Roll, task: TaskEntry, effect: Effect): Promise<Applied> {
  const { changed, holdsFirst, flags, drops = [], begins, placesBarrier, advances, holds } = effect
  if (holdsFirst && (await holdClosed(roll, task))) return { changed: 0, more: true }
  Object.assign(task, flags)
  for (const step of drops) await dropStep(roll, task, step)
  if (begins !== undefined) await beginStep(roll, task, begins)
  const readied = placesBarrier ? await placeBarrier(roll, task) : 0
  if (advances !== undefined) return { ...(await advanceStep(roll, task, advances)), changed }
  return { changed, readied, more: holds === true && (await holdClosed(roll, task)) }
}

/** Lets the barrier pass what is parked on the open level, and on those that it then opens. */
async function skipParked(roll: Roll, task: TaskEntry): Promise<Applied> {
  let changed = 0
  let readied = 0
  while (task.levelBarrier && task.openLevel !== null && changed < STEP) {
    const lane = await roll.laneOf(task, task.openLevel)
    if (!mayPass(lane)) break
    lane.parkedSkipped = true
    roll.touch(lane)
    changed += 1
    readied += await placeBarrier(roll, task)
  }
  return { changed, readied }
}

/**
 * One step of taking a task's closed lanes out of the reach of pulls; true while some is left. Rows
 * that a pull has locked at the moment are not waited for: who claims them before this transaction
 * was before it, and what is given back later is held then.
 */
async function holdClosed(roll: Roll, task: TaskEntry): Promise<boolean> {
  let left = STEP
  for (const lane of await roll.lanesWith(task, 'ready')) {
    if (isLaneOpen(task, lane.level)) continue
    left -= await hold(roll, lane, left)
    if (left === 0) return true
  }
  return false
}
