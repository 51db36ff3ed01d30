import type { FailureGroups } from '../rules/attempt-history.ts'
import type { IndexRange } from '../rules/index-runs.ts'
import type { Tallies } from '../rules/tally.ts'
import type { TaskFacts, TaskState } from '../rules/task-facts.ts'
import type { Timing } from './time-left.ts'

export interface LaneFacts extends Tallies {
  readonly level: number
  readonly parkedSkipped: boolean
  readonly firstIndex: number
  readonly lastIndex: number
  readonly gaps: readonly IndexRange[]
  /** How long the attempts took that finished its partitions, in all, and how many they were. */
  readonly busyMillis?: number
  readonly attemptsDone?: number
}

/** One second in which partitions of a task were finished. */
export interface PaceSecond {
  readonly second: number
  readonly partitions: number
  readonly records: number
}

export interface TaskRow {
  readonly facts: TaskFacts
  /** The one level that a barrier keeps open; see shown-state.ts and rules/task-course.ts. */
  readonly openLane: Pick<LaneFacts, 'parkedSkipped' | 'partitions' | 'records'> | null
  readonly pace: readonly PaceSecond[]
  readonly timing?: Timing
  /** Where tables were asked for: it has others, too. */
  readonly hasOtherTables?: boolean
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
  readonly failures: FailureGroups | null
}

export interface TaskQuery {
  readonly state: TaskState | null
  /** Only tasks that are shown with parked partitions; a cancelled one has none. */
  readonly parked: boolean
  /** Cursor: the position of the last task seen; newest come first. */
  readonly before: number | null
  readonly limit: number
  readonly search: string | null
  /** Only these tasks, by their whole id; null or absent: any. */
  readonly tasks?: readonly string[] | null
  /** Only tasks that have partitions of one of these compute tables; null or absent: of any. */
  readonly tables?: readonly string[] | null
}

export interface TaskPage {
  readonly now: number
  readonly tasks: readonly TaskRow[]
  readonly next: number | null
}
