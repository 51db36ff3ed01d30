import type { ThroughputStep } from '@baton/protocol'
import type { TaskFacts } from '../rules/task-facts.ts'

export interface ThroughputQuery {
  readonly taskId: string
  readonly step: ThroughputStep
  /** Null: the default range of the step. */
  readonly from: number | null
  /** Null: until now. */
  readonly to: number | null
  readonly byLevel: boolean
}

export interface ThroughputRow {
  readonly at: number
  /** Null: all levels together. */
  readonly level: number | null
  readonly partitions: number
  readonly records: number
}

export interface ThroughputRecord {
  readonly task: Pick<TaskFacts, 'taskId' | 'owners'>
  /** The start of the rows. Later than requested if there were too many. */
  readonly from: number
  readonly to: number
  /** Oldest first. */
  readonly rows: readonly ThroughputRow[]
}
