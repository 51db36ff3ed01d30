import { type BarrierLane, holdsBarrierForGood } from './barrier.ts'
import { addCapped, type TaskFacts, type TaskState, unfinishedOf } from './task-facts.ts'

/** A task while a transaction changes it. */
export interface MutableTask extends Changing<Omit<TaskFacts, FixedFacts>>, Pick<TaskFacts, FixedFacts> {
  readonly id: number
  state: TaskState
}

type FixedFacts = 'taskId' | 'firstCallBackAt' | 'partitions' | 'records'

type Changing<Facts> = { -readonly [Fact in keyof Facts]: Facts[Fact] }

type Ending = Pick<TaskFacts, 'cancelled' | 'rerunning' | 'partitions'>
type Deciding = Ending & Pick<TaskFacts, 'paused' | 'levelBarrier' | 'openLevel'>

/**
 * `openLane` is the lane of the open level. Null if there is none, or if `decidingLevel` does not need it.
 */
export function taskState(task: Deciding, openLane: BarrierLane | null): TaskState {
  if (task.cancelled) return 'cancelled'
  if (isDone(task)) return 'done'
  if (task.paused) return 'paused'
  return isStalled(task, openLane) ? 'stalled' : 'open'
}

export function isDone({ cancelled, rerunning, partitions }: Ending): boolean {
  return !cancelled && !rerunning && unfinishedOf(partitions) === 0
}

/** The level whose lane decides whether a task is stalled. Null if the task alone decides that. */
export function decidingLevel(task: Deciding): number | null {
  return !task.cancelled && !task.paused && mayWaitForParked(task) ? task.openLevel : null
}

/**
 * Whether nothing moves until an operator handles the parked partitions: everything else waits behind the
 * barrier that they keep closed. Waiting partitions on the open level itself do not count as stuck, however
 * long they wait.
 */
function isStalled(task: Deciding, openLane: BarrierLane | null): boolean {
  const { rerunning, partitions } = task
  if (unfinishedOf(partitions) === partitions.parked) return !rerunning
  return mayWaitForParked(task) && openLane !== null && holdsBarrierForGood(openLane)
}

function mayWaitForParked({ rerunning, levelBarrier, partitions }: Deciding): boolean {
  const { ready, held, parked } = partitions
  return levelBarrier && !rerunning && parked > 0 && unfinishedOf(partitions) === parked + ready + held
}

/** Updates what depends on the counters: the state of the task and when it finished. */
export function bringUpToDate(task: MutableTask, openLane: BarrierLane | null, at: number): void {
  task.state = taskState(task, openLane)
  if (task.state === 'done' || task.state === 'cancelled') task.finishedAt ??= at
  else task.finishedAt = null
}

/** Reopens a done task that gets new partitions. */
export function reopen(task: MutableTask): void {
  task.generation += 1
  // Also reset if the task is done again within the same transaction: it gets a new finish time.
  task.finishedAt = null
  task.purgedAt = null
}

/** Counts the records that a worker reported for a partition. */
export function countReport(
  counts: Pick<MutableTask, 'reportedDeclared' | 'reportedRecords' | 'mismatched'>,
  declared: number,
  reported: number,
): void {
  counts.reportedDeclared += declared
  counts.reportedRecords = addCapped(counts.reportedRecords, reported)
  if (reported !== declared) counts.mismatched += 1
}

/** How a done partition ended, from its row. */
interface Finished {
  readonly outcome: string | null
  readonly recordCount: number
  readonly reportedRecords: number | null
}

/** Done partitions run again: their task is open again, and how they ended is no longer counted. */
export function uncountDone(task: MutableTask, partitions: readonly Finished[]): void {
  if (task.state === 'done') {
    task.generation += 1
    task.state = 'open'
  }
  for (const { outcome, recordCount, reportedRecords } of partitions) {
    if (outcome === 'delivered') task.delivered -= 1
    if (reportedRecords === null) continue
    task.reportedDeclared -= recordCount
    task.reportedRecords = Math.max(0, task.reportedRecords - reportedRecords)
    if (reportedRecords !== recordCount) task.mismatched -= 1
  }
}
