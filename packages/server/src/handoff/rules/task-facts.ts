import type { TaskState } from '@baton/protocol'
import { type PartitionState, partitionStates, unfinishedStates } from './life-cycle.ts'
import type { TaskSettings } from './task-settings.ts'

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

export const unfinishedOf = (tally: Tally): number =>
  unfinishedStates.reduce((sum, state) => sum + tally[state], 0)

/** The number of done partitions if all are done, otherwise null. */
export const finishedOf = (tally: Tally): number | null =>
  tally.done > 0 && tally.cancelled === 0 && unfinishedOf(tally) === 0 ? tally.done : null

/**
 * For sums of values that clients report, which are unbounded: capped at the largest integer that every
 * reader, including database drivers, can represent.
 */
export const addCapped = (a: number, b: number): number => Math.min(a + b, Number.MAX_SAFE_INTEGER)

export type { TaskState }

/** The fields of a task that a store keeps in one row. */
export interface TaskFacts extends Tallies {
  readonly taskId: string
  readonly paused: boolean
  readonly cancelled: boolean
  readonly sealed: boolean
  /** Done partitions are to run again, and not all of them have been reset yet. */
  readonly rerunning: boolean
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
}
