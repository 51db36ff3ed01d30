import type { TaskState } from '@baton/protocol'
import { type PartitionState, partitionStates, unfinishedStates } from './life-cycle.ts'
import type { TaskSettings } from './task-settings.ts'

/** So many of each state: counted in partitions, or added up in records. */
export type Tally = Record<PartitionState, number>

/** The same partitions, counted both ways. */
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

export const unfinishedOf = (tally: Tally): number =>
  unfinishedStates.reduce((sum, state) => sum + tally[state], 0)

/** How many are done, if all of them are. */
export const finishedOf = (tally: Tally): number | null =>
  tally.done > 0 && tally.cancelled === 0 && unfinishedOf(tally) === 0 ? tally.done : null

/**
 * For sums of what clients report, which nothing bounds: they stop at the largest number that every
 * reader, a database driver among them, can still take.
 */
export const addCapped = (a: number, b: number): number => Math.min(a + b, Number.MAX_SAFE_INTEGER)

export type { TaskState }

/** What a store keeps of a task in one row. */
export interface TaskFacts extends Tallies {
  readonly taskId: string
  readonly paused: boolean
  readonly cancelled: boolean
  readonly sealed: boolean
  /** What was done is to run again, and not all of it has been made to yet. */
  readonly rerunning: boolean
  readonly expectedPartitions: number | null
  readonly levelBarrier: boolean
  readonly settings: TaskSettings | null
  /** With a barrier: the lowest level that is not finished. Lanes above it are closed. */
  readonly openLevel: number | null
  readonly generation: number
  readonly firstCallBackAt: number
  readonly lastCallBackAt: number
  readonly finishedAt: number | null
  readonly purgedAt: number | null
  /** Partitions that at-most-once delivery settled by handing them out. */
  readonly delivered: number
  readonly attemptsWasted: number
  /** Of the partitions whose worker said how many records it processed: what was declared, and what was said. */
  readonly reportedDeclared: number
  readonly reportedRecords: number
  readonly mismatched: number
  /** Names of the tokens that called partitions of it back. */
  readonly owners: readonly string[]
}
