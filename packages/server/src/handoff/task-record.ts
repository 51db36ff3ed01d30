import type { TaskState } from '@baton/protocol'
import type { IndexRange } from './index-runs.ts'
import type { Tally } from './tally.ts'

export type { TaskState }

/** What a store keeps of a task in one row. */
export interface TaskFacts {
  readonly taskId: string
  readonly paused: boolean
  readonly cancelled: boolean
  readonly sealed: boolean
  /** What was done is to run again, and not all of it has been made to yet. */
  readonly rerunning: boolean
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

export interface LaneFacts {
  readonly level: number
  readonly parkedSkipped: boolean
  readonly partitions: Tally
  readonly records: Tally
  readonly firstIndex: number
  readonly lastIndex: number
  readonly gaps: readonly IndexRange[]
}

/** One second in which partitions of a task were finished. */
export interface PaceSecond {
  readonly second: number
  readonly partitions: number
  readonly records: number
}

export interface TaskRow {
  readonly facts: TaskFacts
  /** The one level that a barrier keeps open; see shown-state.ts and task-course.ts. */
  readonly openLane: Pick<LaneFacts, 'parkedSkipped' | 'partitions' | 'records'> | null
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
  /** Only tasks that are shown with parked partitions; a cancelled one has none. */
  readonly parked: boolean
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
