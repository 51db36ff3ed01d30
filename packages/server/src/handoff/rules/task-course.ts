import { type CalledBackPartition, type OptionalField, optionalFields } from '@baton/protocol'
import type { ControlOrder, ControlResult } from './control.ts'
import { type BarrierLane, holdsBarrierForGood } from './lane-rules.ts'
import { addCapped, type TaskFacts, type TaskState, totalOf, unfinishedOf } from './task-facts.ts'

/** A task while a transaction changes it. */
export interface TaskEntry extends Changing<Omit<TaskFacts, FixedFacts>>, Pick<TaskFacts, FixedFacts> {
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
  return isStuck(task, openLane) ? 'stalled' : 'open'
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
function isStuck(task: Deciding, openLane: BarrierLane | null): boolean {
  const { rerunning, partitions } = task
  if (unfinishedOf(partitions) === partitions.parked) return !rerunning
  return mayWaitForParked(task) && openLane !== null && holdsBarrierForGood(openLane)
}

function mayWaitForParked({ rerunning, levelBarrier, partitions }: Deciding): boolean {
  const { ready, held, parked } = partitions
  return levelBarrier && !rerunning && parked > 0 && unfinishedOf(partitions) === parked + ready + held
}

/** Updates what depends on the counters: the state of the task and when it finished. */
export function bringUpToDate(task: TaskEntry, openLane: BarrierLane | null, at: number): void {
  task.state = taskState(task, openLane)
  if (task.state === 'done' || task.state === 'cancelled') task.finishedAt ??= at
  else task.finishedAt = null
}

/** Reopens a done task that gets new partitions. */
export function reopen(task: TaskEntry): void {
  task.generation += 1
  // Also reset if the task is done again within the same transaction: it gets a new finish time.
  task.finishedAt = null
  task.purgedAt = null
}

/** Counts the records that a worker reported for a partition. */
export function countReport(
  counts: Pick<TaskEntry, 'reportedDeclared' | 'reportedRecords' | 'mismatched'>,
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
export function takeBack(task: TaskEntry, partitions: readonly Finished[]): void {
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

export type CallBackRefusal =
  | { readonly kind: 'task_cancelled' | 'task_sealed' | 'record_total_too_large' }
  /** It would seal the task with fewer partitions than are known. */
  | { readonly kind: 'more_are_known'; readonly known: number }
  /** It has no new partitions, and would seal a task that other owners called back. */
  | { readonly kind: 'not_own' }

/**
 * Why a task refuses new partitions with this many records in total; undefined if it accepts them. Repeated
 * partitions are never refused.
 */
export function refusalOfNew(task: TaskEntry, records: number): CallBackRefusal | undefined {
  if (task.cancelled) return { kind: 'task_cancelled' }
  if (task.sealed) return { kind: 'task_sealed' }
  return Number.isSafeInteger(totalOf(task.records) + records)
    ? undefined
    : { kind: 'record_total_too_large' }
}

/** The fields of a call-back that also seals its task. */
interface SealingCallBack {
  readonly partitions: number | null
  readonly owner: string | null
  readonly accepted: number
}

/** Why a call-back may not seal its task; undefined if it may. */
export function refusalOfSeal(
  task: TaskEntry | undefined,
  { partitions, owner, accepted }: SealingCallBack,
): CallBackRefusal | undefined {
  if (task?.cancelled === true) return { kind: 'task_cancelled' }
  if (task !== undefined && accepted === 0 && owner !== null && !task.owners.includes(owner))
    return { kind: 'not_own' }
  const known = (task === undefined ? 0 : totalOf(task.partitions)) + accepted
  return (partitions ?? known) < known ? { kind: 'more_are_known', known } : undefined
}

/** The maximum number of owners kept per task. Later ones are not stored. */
const MOST_OWNERS = 16

/** A token that calls back new partitions becomes an owner of the task, in addition to the others. */
export function withOwner(owners: readonly string[], owner: string | null): readonly string[] {
  const isNew = owner !== null && owners.length < MOST_OWNERS && !owners.includes(owner)
  return isNew ? [...owners, owner] : owners
}

/** Whether a repeated partition has the same content as the first one. */
export function isSamePartition(a: CalledBackPartition, b: CalledBackPartition): boolean {
  return (
    a.recordCount === b.recordCount &&
    a.computeTableName === b.computeTableName &&
    a.spelling === b.spelling &&
    optionalFields.every((field) => isSameText(field, a[field] ?? null, b[field] ?? null))
  )
}

/** Extra fields are JSON, and the order of object members does not matter. */
export function isSameText(field: OptionalField, a: string | null, b: string | null): boolean {
  if (a === b || a === null || b === null) return a === b
  return field === 'extraFields' && inOrder(a) === inOrder(b)
}

function inOrder(text: string): string {
  const sorted = (_key: string, value: unknown) =>
    typeof value === 'object' && value !== null && !Array.isArray(value)
      ? Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1))
      : value
  return JSON.stringify(JSON.parse(text), sorted)
}

/** Why an order is refused; undefined if it is carried out. */
export function refusalOf(task: TaskEntry, order: ControlOrder): ControlResult | undefined {
  if (task.cancelled && order.verb !== 'cancel') return { kind: 'task_cancelled' }
  switch (order.verb) {
    case 'pause':
    case 'cancel':
    case 'skip-parked':
      return isDone(task) ? { kind: 'task_finished' } : undefined
    case 'seal': {
      const known = totalOf(task.partitions)
      return (order.expectedPartitions ?? known) < known ? { kind: 'more_are_known', known } : undefined
    }
    case 'retry':
      if (order.done && task.sealed && isDone(task)) return { kind: 'task_sealed' }
      return order.done && task.purgedAt !== null ? { kind: 'task_purged' } : undefined
    case 'resume':
    case 'level-barrier':
    case 'settings':
      return undefined
  }
}
