import type { ControlOrder, ControlResult } from '../../../handoff/rules/control.ts'
import {
  type Applied,
  type Effect,
  effectOf,
  mayPass,
  refusalOf,
} from '../../../handoff/rules/control-rules.ts'
import { holdsBarrier, isLaneOpen } from '../../../handoff/rules/lane-rules.ts'
import { taskState } from '../../../handoff/rules/task-course.ts'
import type { TaskEntry } from '../../../handoff/rules/task-entry.ts'
import { placeBarrier } from '../roll/barrier.ts'
import { hold } from '../roll/lane-windows.ts'
import { Roll } from '../roll/roll.ts'
import { settleLanes } from '../roll/settle-lanes.ts'
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
  const result = await carryOutIn(transactions, order)
  const isHeldUp = order.verb === 'retry' && result.kind === 'applied' && result.more && result.changed === 0
  if (isHeldUp) await untilOthersAreThrough()
  return result
}

/**
 * Partitions that are named are taken some at a time, one after the other here: an order that is repeated does not say how far
 * it came, and would run those again that were done meanwhile.
 */
async function carryOutIn(transactions: Transactions, order: ControlOrder): Promise<ControlResult> {
  const names = order.verb === 'retry' ? (order.partitions?.length ?? 0) : 0
  let whole = await transactions.run((tx) => step(tx, order))
  for (let from = STEP; from < names && whole.kind === 'applied'; from += STEP) {
    const { changed, readied, more } = whole
    const part = await transactions.run((tx) => step(tx, order, from))
    if (part.kind !== 'applied') return part
    whole = {
      ...part,
      changed: changed + part.changed,
      readied: readied + part.readied,
      more: more || part.more,
    }
  }
  return whole
}

async function step(tx: Transaction, order: ControlOrder, from = 0): Promise<ControlResult> {
  const roll = await Roll.begin(tx)
  const folded = await roll.foldTask(order.taskId)
  if (folded === undefined) return { kind: 'task_unknown' }
  const { task, lanes } = folded
  const opened = await settleLanes(roll, lanes)
  task.state = taskState(task, await roll.decidingLane(task))
  const outcome = refusalOf(task, order) ?? (await apply(roll, task, order, from))
  if (!('kind' in outcome)) roll.touch(task)
  await cancelLate(roll)
  await roll.flush()
  if ('kind' in outcome) return outcome
  const { changed, readied = 0, more = false } = outcome
  return { kind: 'applied', state: task.state, changed, readied: readied + opened, more }
}

function apply(
  roll: Roll,
  task: TaskEntry,
  order: ControlOrder,
  from: number,
): Promise<Applied | ControlResult> {
  if (order.verb === 'retry') return retry(roll, task, order, from)
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

/** Lets the barrier pass what is parked on the open level, and on those that it then opens: a step of lanes at a time. */
async function skipParked(roll: Roll, task: TaskEntry): Promise<Applied> {
  if (!task.levelBarrier || task.openLevel === null) return { changed: 0 }
  const { lanes, next } = await roll.lanes.with('unfinished', { task, level: task.openLevel }, STEP)
  let changed = 0
  for (const lane of lanes.slice(0, STEP)) {
    if (!mayPass(lane)) break
    lane.parkedSkipped = true
    roll.touch(lane)
    changed += 1
    if (holdsBarrier(lane)) break
  }
  const readied = await placeBarrier(roll, task)
  return { changed, readied, more: changed === STEP && (next !== null || lanes.length > STEP) }
}

/**
 * One step of taking a task's closed lanes out of the reach of pulls; true while some is left. Rows
 * that a pull has locked at the moment are not waited for: who claims them before this transaction
 * was before it, and what is given back later is held then.
 */
async function holdClosed(roll: Roll, task: TaskEntry): Promise<boolean> {
  let left = STEP
  for await (const lanes of roll.lanes.pagesWith('ready', task)) {
    const closed = lanes.filter(({ level }) => !isLaneOpen(task, level))
    if (closed.length > 0) left -= await hold(roll, closed, left)
    if (left === 0) return true
  }
  return false
}
