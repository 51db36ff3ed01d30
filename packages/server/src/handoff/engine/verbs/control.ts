import { withFinished } from '../../rules/attempts.ts'
import {
  type ControlRequest,
  type ControlResult,
  type RetryControl,
  refusalOfControl,
} from '../../rules/control.ts'
import { next } from '../../rules/life-cycle.ts'
import { changedBarrier } from '../../rules/policy.ts'
import { exists, uncountDone, unfinishedOf } from '../../rules/task.ts'
import type { Rerun } from '../../stored.ts'
import { addPartitions, firstRows, lanesFrom, loadLanes, taskNamed } from '../read-rows.ts'
import type { Partition, Task } from '../state/memory-rows.ts'
import {
  applySettings,
  concludeTasks,
  emptyFailureWindow,
  moveBarriers,
  noteControl,
  placeBarrier,
  reopenTask,
  setBarrier,
} from '../task-updates.ts'
import { newTask, tooManyLanes } from '../tasks.ts'
import { isEndOfSlice, type Transaction } from '../transaction.ts'

/** The maximum number of partitions or levels that one step changes. */
const STEP = 500

interface Applied {
  readonly changed: number
  readonly more?: boolean
  readonly next?: number
  /** The number of partitions that all steps will change, if this step does not change all of them. */
  readonly total?: number
}

/** Runs one step. Pause, resume, cancel, barrier and seal change only the task. */
export async function control(tx: Transaction, request: ControlRequest): Promise<ControlResult> {
  const known = await taskNamed(tx, request.taskId)
  const refusal = refusalOfControl(known, request)
  if (refusal !== undefined) return refusal
  const task = known ?? newTask(tx, request.taskId)
  const outcome = await carryOut(tx, task, request)
  if ('kind' in outcome) return outcome
  // One that has only settings is not done: it does not exist yet.
  if (exists(task)) {
    await moveBarriers(tx)
    await concludeTasks(tx)
  }
  const { changed, more = false, next, total = changed } = outcome
  if (changed > 0) noteControl(tx, task, request, total)
  const { count: newlyReady, kinds: newlyReadyOf } = tx.newlyReady
  const { state, settings, levelBarrier } = task
  return {
    kind: 'applied',
    state,
    changed,
    newlyReady,
    newlyReadyOf,
    more,
    ...(next === undefined ? {} : { next }),
    ...(request.verb === 'settings' ? { settings, levelBarrier } : {}),
  }
}

async function carryOut(
  tx: Transaction,
  task: Task,
  request: ControlRequest,
): Promise<Applied | ControlResult> {
  switch (request.verb) {
    case 'pause':
      return flag(tx, task, { paused: true })
    case 'resume': {
      const applied = flag(tx, task, { paused: false })
      if (applied.changed > 0) reopenTask(tx, task)
      emptyFailureWindow(tx, task)
      return applied
    }
    case 'cancel': {
      if (task.cancelled) return { changed: 0 }
      const changed = unfinishedOf(task.partitions)
      flag(tx, task, { cancelled: true, reruns: [] })
      tx.cancelled.push(task)
      return { changed }
    }
    case 'seal': {
      const expectedPartitions = request.expectedPartitions ?? task.expectedPartitions
      return flag(tx, task, { sealed: true, expectedPartitions })
    }
    case 'owner': {
      if (task.owners[0] === request.name) return { changed: 0 }
      const others = task.owners.filter((name) => name !== request.name)
      return flag(tx, task, { owners: [request.name, ...others] })
    }
    case 'level-barrier':
      return { changed: (await setBarrier(tx, task, request.enabled)) ? 1 : 0 }
    case 'settings': {
      const isNew = applySettings(tx, task, request.settings)
      const isMoved = await setBarrier(
        tx,
        task,
        changedBarrier(tx.policy, task.levelBarrier, request.settings),
      )
      return { changed: isNew || isMoved ? 1 : 0 }
    }
    case 'skip-parked':
      return await skipParked(tx, task)
    case 'retry': {
      const outcome = await retry(tx, task, request)
      if (!('kind' in outcome)) emptyFailureWindow(tx, task)
      return outcome
    }
  }
}

/** Setting the same values again changes nothing. */
function flag(tx: Transaction, task: Task, flags: Partial<Task>): Applied {
  const isNew = Object.entries(flags).some(([name, value]) => task[name as keyof Task] !== value)
  if (!isNew) return { changed: 0 }
  tx.touchTask(task)
  Object.assign(task, flags)
  return { changed: 1 }
}

/** Lets the barrier pass parked partitions on the open level, and on the levels opened by that. */
async function skipParked(tx: Transaction, task: Task): Promise<Applied> {
  let changed = 0
  while (task.levelBarrier && task.openLevel !== null && changed < STEP) {
    await loadLanes(tx, task, [task.openLevel])
    const lane = task.lanes.get(task.openLevel)
    if (lane === undefined || lane.parkedSkipped || lane.partitions.parked === 0) break
    tx.touchLane(lane)
    lane.parkedSkipped = true
    changed += 1
    await placeBarrier(tx, task, task.openLevel)
  }
  return { changed, more: changed === STEP }
}

async function retry(tx: Transaction, task: Task, request: RetryControl): Promise<Applied | ControlResult> {
  if (tx.memory.lanesUsed >= tx.limits.lanes) return tooManyLanes(tx.memory, tx.limits)
  if (request.partitions !== null) return await retryNamed(tx, task, request.partitions, request.done)
  if (request.level !== null) {
    await loadLanes(tx, task, [request.level])
    if (!task.lanes.has(request.level)) return { kind: 'level_unknown' }
  }
  const parked = await retryParked(tx, task, request)
  if (!request.done || parked.more) return { ...parked, total: parked.changed + parkedOf(task, request) }
  const { changed } = await beginRerun(tx, task, request.level)
  return { changed: parked.changed + changed }
}

/** How many partitions that a retry concerns are parked. */
function parkedOf({ failures, partitions, lanes }: Task, { level, reason }: RetryControl): number {
  if (reason !== undefined) return (failures ?? []).find(({ key }) => key === reason)?.parked.partitions ?? 0
  return (level === null ? partitions : lanes.get(level)?.partitions)?.parked ?? 0
}

/** Most lanes may have parked partitions for other reasons only, so their number is limited, too. */
const LANES_PER_STEP = 1000

/** Each step continues where the one before ended: what is parked again in the meantime is left. */
async function retryParked(
  tx: Transaction,
  task: Task,
  request: RetryControl,
): Promise<Applied & { readonly more: boolean }> {
  const { level: only, reason, from = 0 } = request
  let changed = 0
  let level = Math.max(only ?? 0, from)
  for (let lanesSeen = 0; lanesSeen < LANES_PER_STEP; ) {
    if (parkedOf(task, request) === 0) return { changed, more: false }
    const parked = await lanesFrom(tx, task, level, 'parked')
    const lanes = only === null ? parked : parked.filter((lane) => lane.level === only)
    if (lanes.length === 0) return { changed, more: false }
    const most = STEP - changed
    const found = await firstRows(tx, lanes, { state: 'parked', failure: reason, most })
    for (const { lane, rows } of found) {
      const some = rows.slice(0, STEP - changed)
      for (const partition of some) if (partition.state === 'parked') retryOne(tx, partition)
      changed += some.length
      lanesSeen += 1
      level = lane.level
      if (changed === STEP) return { changed, more: true, next: level }
      level += 1
    }
  }
  return { changed, more: true, next: level }
}

async function retryNamed(
  tx: Transaction,
  task: Task,
  named: readonly { level: number; index: number }[],
  done: boolean,
): Promise<Applied | ControlResult> {
  await loadLanes(tx, task, new Set(named.map(({ level }) => level)))
  const byLevel = Map.groupBy(named, ({ level }) => level)
  const wanted = [...byLevel].flatMap(([level, ones]) => {
    const lane = task.lanes.get(level)
    return lane === undefined ? [] : [{ lane: lane.id, indexes: ones.map(({ index }) => index) }]
  })
  const found = new Map<string, Partition>()
  if (wanted.length > 0) {
    for (const partition of await addPartitions(tx, await tx.disk.partitionsNamed(wanted)))
      if (partition.id <= partition.parentLane.tail)
        found.set(`${partition.parentLane.level}-${partition.index}`, partition)
  }
  const unknownAt = named.flatMap(({ level, index }, i) => (found.has(`${level}-${index}`) ? [] : [i]))
  if (unknownAt.length > 0) return { kind: 'partitions_unknown', positions: unknownAt }
  let changed = 0
  for (const [i, partition] of [...found.values()].entries()) {
    if (isEndOfSlice(i)) await tx.nextIteration()
    if (partition.state === 'parked') retryOne(tx, partition)
    else if (partition.state === 'done' && done) rerunOne(tx, partition)
    else continue
    changed += 1
  }
  return { changed }
}

/** Resets the attempts of a parked partition. It comes back and holds the barrier again. */
function retryOne(tx: Transaction, partition: Partition): void {
  tx.touchLane(partition.parentLane)
  partition.parentLane.parkedSkipped = false
  requeue(tx, partition, 'retry')
}

/** Resets a done partition as if it had just been called back. Its last lease is no longer valid. */
function rerunOne(tx: Transaction, partition: Partition): void {
  const { outcome, parentLane } = partition
  tx.touchPartition(partition)
  tx.touchTask(parentLane.parentTask)
  if (outcome === 'done' || outcome === 'delivered') partition.history = withFinished(partition, outcome)
  uncountDone(parentLane.parentTask, partition)
  requeue(tx, partition, 'rerun')
  partition.leaseNumber += 1
  partition.secret = ''
  partition.outcome = null
  partition.settledAt = null
  partition.reportedRecords = null
}

function requeue(tx: Transaction, partition: Partition, event: 'retry' | 'rerun'): void {
  const to = next(partition.state, event)
  tx.touchPartition(partition)
  tx.count(partition, to)
  partition.state = to
  partition.dueAt = tx.now
  partition.attempts = 0
  partition.releases = 0
  tx.waiting.add(partition)
}

/** The first step runs now, the others by `advanceRerun`: a repeated order does not start over. */
async function beginRerun(tx: Transaction, task: Task, only: number | null): Promise<{ changed: number }> {
  if (task.reruns.some((rerun) => rerun.only === only)) return { changed: 0 }
  const lane = only === null ? undefined : task.lanes.get(only)
  // Rows are flushed. The disk adds up the lanes, because there may be hundreds of thousands.
  const done = lane === undefined ? await tx.disk.doneRows(task.id) : lane.partitions.done - lane.purged
  setReruns(tx, task, [...task.reruns, { only, begunAt: tx.now, level: only ?? 0, index: -1 }])
  await advanceRerun(tx, task, task.reruns.length - 1)
  return { changed: done }
}

/** Runs one bounded step of a rerun of done partitions. */
export async function advanceRerun(tx: Transaction, task: Task, place: number): Promise<void> {
  const rerun = task.reruns[place]
  if (rerun === undefined) return
  let { level, index } = rerun
  let left = STEP
  while (left > 0) {
    const found = await lanesFrom(tx, task, level, 'rows')
    const lanes = rerun.only === null ? found : found.filter((lane) => lane.level === rerun.only)
    if (lanes.length === 0) {
      saveRerun(tx, task, place, null)
      return
    }
    if (lanes[0]?.level !== level) index = -1
    const most = left
    for (const { lane, rows } of await firstRows(tx, lanes, { state: null, afterIndex: index, most })) {
      if (left <= 0) break
      const some = rows.slice(0, left)
      for (const partition of some)
        if (partition.state === 'done' && isBefore(tx, rerun, partition.settledAt)) rerunOne(tx, partition)
      left -= some.length + 1
      const isThrough = some.length === rows.length && rows.length < most
      // If its partitions are already done again, its event was held back until now.
      if (isThrough) tx.touchLane(lane)
      level = isThrough ? lane.level + 1 : lane.level
      index = isThrough ? -1 : (some.at(-1)?.index ?? -1)
    }
  }
  saveRerun(tx, task, place, { ...rerun, level, index })
}

/** What was settled in the future was so before the clock was set back. */
const isBefore = ({ now }: Transaction, { begunAt }: Rerun, settledAt: number | null): boolean =>
  settledAt === null || settledAt <= begunAt || settledAt > now

function saveRerun(tx: Transaction, task: Task, place: number, rerun: Rerun | null): void {
  setReruns(tx, task, task.reruns.toSpliced(place, 1, ...(rerun === null ? [] : [rerun])))
}

function setReruns(tx: Transaction, task: Task, reruns: readonly Rerun[]): void {
  tx.touchTask(task)
  task.reruns = reruns
}
