import type { TaskState } from '@baton/protocol'
import type { Tallies } from './tally.ts'
import type { TaskSettings } from './task-settings.ts'

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
