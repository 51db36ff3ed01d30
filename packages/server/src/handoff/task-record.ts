import type { TaskState } from '@baton/protocol'
import { type PartitionState, partitionStates, unfinishedStates } from './life-cycle.ts'

/** So many of each state: counted in partitions, or added up in records. */
export type Tally = Record<PartitionState, number>

export const emptyTally = (): Tally => ({
  ready: 0,
  held: 0,
  leased: 0,
  delayed: 0,
  parked: 0,
  done: 0,
  cancelled: 0,
})

export const totalOf = (tally: Tally): number => partitionStates.reduce((sum, state) => sum + tally[state], 0)

export const unfinishedOf = (tally: Tally): number =>
  unfinishedStates.reduce((sum, state) => sum + tally[state], 0)

/**
 * For sums of what clients report, which nothing bounds: they stop at the largest number that every
 * reader, a database driver among them, can still take.
 */
export const addCapped = (a: number, b: number): number => Math.min(a + b, Number.MAX_SAFE_INTEGER)

export type { TaskState }

/** What a store keeps of a task in one row. */
export interface TaskFacts {
  readonly taskId: string
  readonly paused: boolean
  readonly cancelled: boolean
  readonly sealed: boolean
  readonly expectedPartitions: number | null
  readonly levelBarrier: boolean
  /** With a barrier: the lowest level that is not finished. Lanes above it are closed. */
  readonly openLevel: number | null
  readonly generation: number
  readonly firstCallBackAt: number
  readonly lastCallBackAt: number
  readonly finishedAt: number | null
  readonly purgedAt: number | null
  readonly partitions: Tally
  readonly records: Tally
  /** Partitions that at-most-once delivery settled by handing them out. */
  readonly delivered: number
  readonly attemptsWasted: number
  /** Of the partitions whose worker said how many records it processed: what was declared, and what was said. */
  readonly reportedDeclared: number
  readonly reportedRecords: number
  readonly mismatched: number
}

/** Indexes from the first to the last. */
export interface IndexRange {
  readonly first: number
  readonly last: number
}

export interface LaneFacts {
  readonly level: number
  readonly parkedSkipped: boolean
  readonly partitions: Tally
  readonly records: Tally
  readonly firstIndex: number
  readonly lastIndex: number
  readonly gaps: readonly IndexRange[]
}

/** The indexes that were never called back, between those that were. */
export function gapsBetween(ranges: readonly IndexRange[]): IndexRange[] {
  return ranges
    .slice(1)
    .map(({ first }, before) => ({ first: (ranges[before]?.last ?? 0) + 1, last: first - 1 }))
}

/** One second in which partitions of a task were finished. */
export interface PaceSecond {
  readonly second: number
  readonly partitions: number
  readonly records: number
}

export interface TaskRow {
  readonly facts: TaskFacts
  /** What waits on the one level that a barrier keeps open; see task-view.ts. */
  readonly openLane: { readonly partitions: Tally; readonly records: Tally } | null
  readonly pace: readonly PaceSecond[]
}

export interface TaskRecord extends TaskRow {
  readonly now: number
  readonly lanes: readonly LaneFacts[]
  readonly lanesOmitted: number
  readonly computeTables: readonly string[]
  readonly mismatches: readonly {
    readonly level: number
    readonly index: number
    readonly spelling: string | null
    readonly declared: number
    readonly reported: number
  }[]
}

export interface TaskQuery {
  readonly state: TaskState | null
  /** Cursor: the position of the last task seen; newest come first. */
  readonly before: number | null
  readonly limit: number
  readonly search: string | null
}

export interface TaskPage {
  readonly now: number
  readonly tasks: readonly TaskRow[]
  readonly next: number | null
}

export interface PartitionQuery {
  readonly taskId: string
  readonly state: PartitionState | null
  readonly level: number | null
  /** Cursor: the last row seen, in the order level, index. */
  readonly after: { readonly level: number; readonly index: number } | null
  readonly limit: number
}

export interface PartitionRecord {
  readonly level: number
  readonly index: number
  readonly spelling: string | null
  readonly computeTableName: string
  readonly recordCount: number
  readonly state: PartitionState
  readonly attempts: number
  readonly holder: string | null
  readonly dueAt: number | null
  readonly reason: string | null
  readonly reportedRecords: number | null
  readonly calledBackAt: number
  readonly settledAt: number | null
}

export interface PartitionPage {
  readonly facts: TaskFacts
  readonly partitions: readonly PartitionRecord[]
  /** Set while there may be more, also when this page came out short: a page reads a bounded number of rows. */
  readonly next: { readonly level: number; readonly index: number } | null
}

export function taskState(facts: Pick<TaskFacts, 'paused' | 'cancelled' | 'partitions'>): TaskState {
  if (facts.cancelled) return 'cancelled'
  const unfinished = unfinishedOf(facts.partitions)
  if (unfinished === 0) return 'done'
  if (facts.paused) return 'paused'
  return unfinished === facts.partitions.parked ? 'stalled' : 'open'
}

/** Whether pulls may take from a lane. */
export function isLaneOpen(
  task: Pick<TaskFacts, 'paused' | 'cancelled' | 'levelBarrier' | 'openLevel'>,
  level: number,
): boolean {
  if (task.paused || task.cancelled) return false
  return !task.levelBarrier || (task.openLevel !== null && level <= task.openLevel)
}

/** What keeps a barrier from opening the next level. */
export function holdsBarrier(lane: { partitions: Tally; parkedSkipped: boolean }): boolean {
  const unfinished = unfinishedOf(lane.partitions)
  return unfinished > (lane.parkedSkipped ? lane.partitions.parked : 0)
}
