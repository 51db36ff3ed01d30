import type { TaskState } from '@baton/protocol'
import type { FailureWindow } from './failure-window.ts'
import type { FailureGroup } from './failures.ts'
import { type PartitionState, partitionStates, unfinishedStates } from './life-cycle.ts'
import { isAtLimit, type TaskSettings } from './policy.ts'
import type { TaskStamps } from './stamps.ts'

/** Counts by state: the number of partitions, or the sum of their records. */
export type Tally = Record<PartitionState, number>

/** Counts of the same partitions in both units. */
export interface Tallies {
  readonly partitions: Tally
  readonly records: Tally
}

export const emptyTally = (): Tally => ({
  ready: 0,
  held: 0,
  leased: 0,
  delayed: 0,
  parked: 0,
  done: 0,
  cancelled: 0,
})

export const noTallies = (): Tallies => ({ partitions: emptyTally(), records: emptyTally() })

export const totalOf = (tally: Tally): number => partitionStates.reduce((sum, state) => sum + tally[state], 0)

/** Whether one of its partitions counts: not with settings only, nor during the first call-back. */
export const exists = ({ partitions }: { readonly partitions: Tally }): boolean => totalOf(partitions) > 0

export const unfinishedOf = (tally: Tally): number =>
  unfinishedStates.reduce((sum, state) => sum + tally[state], 0)

/** The done partitions of a lane if all are done; null while a rerun may still reset some of them. */
export function finishedOf(
  { level, partitions }: { readonly level: number; readonly partitions: Tally },
  { reruns }: Pick<TaskFacts, 'reruns'>,
): number | null {
  const { done, cancelled } = partitions
  if (done === 0 || cancelled > 0 || unfinishedOf(partitions) > 0) return null
  const isAhead = reruns.some((rerun) => level >= rerun.level && (rerun.only ?? level) === level)
  return isAhead ? null : done
}

/** Sums of reported values are unbounded, and drivers read no larger integers. */
export const addCapped = (a: number, b: number): number => Math.min(a + b, Number.MAX_SAFE_INTEGER)

export type { TaskState }

/** The facts about a task that rules and views depend on. */
export interface TaskFacts extends Tallies {
  readonly taskId: string
  readonly paused: boolean
  readonly cancelled: boolean
  readonly sealed: boolean
  /** While done partitions that are to run again are being reset. */
  readonly reruns: readonly { readonly only: number | null; readonly level: number }[]
  readonly expectedPartitions: number | null
  readonly levelBarrier: boolean
  readonly settings: TaskSettings | null
  /** With a barrier: the lowest level that keeps it closed. Lanes above it are closed. */
  readonly openLevel: number | null
  readonly generation: number
  readonly firstCallBackAt: number
  readonly lastCallBackAt: number
  readonly finishedAt: number | null
  readonly purgedAt: number | null
  /** Partitions that were settled by handing them out, in at-most-once delivery. */
  readonly delivered: number
  readonly attemptsWasted: number
  /** Sums over the partitions whose worker reported its records: the declared and the reported number. */
  readonly reportedDeclared: number
  readonly reportedRecords: number
  readonly mismatched: number
  /** Names of the tokens that called back partitions of this task. */
  readonly owners: readonly string[]
  /** Who paused, cancelled, sealed or changed it, and when. */
  readonly stamps?: TaskStamps | null
  /** How its last attempts ended, while it may pause itself. */
  readonly failureWindow?: FailureWindow
}

export interface MutableTask extends Changing<Omit<TaskFacts, FixedFacts>>, Pick<TaskFacts, FixedFacts> {
  readonly id: number
  state: TaskState
  failures: readonly FailureGroup[] | null
}

type FixedFacts = 'taskId' | 'partitions' | 'records'

type Changing<Facts> = { -readonly [Fact in keyof Facts]: Facts[Fact] }

type Ending = Pick<TaskFacts, 'cancelled' | 'reruns' | 'partitions'>
type Deciding = Ending & Pick<TaskFacts, 'paused' | 'levelBarrier' | 'openLevel'>

/** `openLane` is the lane of the open level, or null if `decidingLevel` does not need it. */
export function taskState(task: Deciding, openLane: BarrierLane | null): TaskState {
  if (task.cancelled) return 'cancelled'
  if (isDone(task)) return 'done'
  if (task.paused) return 'paused'
  return isStalled(task, openLane) ? 'stalled' : 'open'
}

export function isDone({ cancelled, reruns, partitions }: Ending): boolean {
  return !cancelled && reruns.length === 0 && unfinishedOf(partitions) === 0
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
  const { reruns, partitions } = task
  if (unfinishedOf(partitions) === partitions.parked) return reruns.length === 0
  return mayWaitForParked(task) && openLane !== null && holdsBarrierForGood(openLane)
}

function mayWaitForParked({ reruns, levelBarrier, partitions }: Deciding): boolean {
  const { ready, held, parked } = partitions
  return (
    levelBarrier && reruns.length === 0 && parked > 0 && unfinishedOf(partitions) === parked + ready + held
  )
}

/** Updates what depends on the counters: the state of the task and when it finished. */
export function bringUpToDate(task: MutableTask, openLane: BarrierLane | null, at: number): void {
  task.state = taskState(task, openLane)
  if (task.state === 'done' || task.state === 'cancelled') task.finishedAt ??= at
  else task.finishedAt = null
}

export function reopen(task: MutableTask): void {
  task.generation += 1
  task.state = 'open'
  // Also reset if the task is done again within the same transaction: it gets a new finish time.
  task.finishedAt = null
  task.purgedAt = null
}

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

/** A done partition runs again: its task is open again, and how it ended is no longer counted. */
export function uncountDone(task: MutableTask, { outcome, recordCount, reportedRecords }: Finished): void {
  if (task.state === 'done') {
    task.generation += 1
    task.state = 'open'
  }
  if (outcome === 'delivered') task.delivered -= 1
  if (reportedRecords === null) return
  task.reportedDeclared -= recordCount
  task.reportedRecords = Math.max(0, task.reportedRecords - reportedRecords)
  if (reportedRecords !== recordCount) task.mismatched -= 1
}

/** Whether pulls may take from a lane. */
export function isLaneOpen(
  task: Pick<TaskFacts, 'paused' | 'cancelled' | 'levelBarrier' | 'openLevel'>,
  level: number,
): boolean {
  if (task.paused || task.cancelled) return false
  return !task.levelBarrier || (task.openLevel !== null && level <= task.openLevel)
}

/** Whether a lane may be served now: it is open, and its task is below its lease limit. */
export function mayServe(
  task: Parameters<typeof isLaneOpen>[0] & Parameters<typeof isAtLimit>[0],
  level: number,
): boolean {
  return isLaneOpen(task, level) && !isAtLimit(task)
}

export interface BarrierLane {
  readonly partitions: Tally
  readonly parkedSkipped: boolean
}

/** Whether the lane keeps the barrier from opening the next level. */
export function holdsBarrier({ partitions, parkedSkipped }: BarrierLane): boolean {
  return unfinishedOf(partitions) > (parkedSkipped ? partitions.parked : 0)
}

/** Whether the lane holds the barrier until an operator acts: only parked partitions are left. */
export function holdsBarrierForGood(lane: BarrierLane): boolean {
  return holdsBarrier(lane) && unfinishedOf(lane.partitions) === lane.partitions.parked
}
