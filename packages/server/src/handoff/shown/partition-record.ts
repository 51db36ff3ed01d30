import type { EndedAttempt } from '../rules/attempt-history.ts'
import type { PartitionState } from '../rules/life-cycle.ts'
import type { LeaseOutcome } from '../rules/settlement.ts'
import type { TaskFacts } from '../rules/task-facts.ts'

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
  /** When its latest lease began. */
  readonly leasedAt: number | null
  readonly outcome: LeaseOutcome | null
  readonly history: readonly EndedAttempt[] | null
  readonly extraFields?: string | null
  readonly traceparent?: string | null
}

export interface PartitionPage {
  readonly facts: TaskFacts
  readonly partitions: readonly PartitionRecord[]
  /** Set while there may be more, also when this page came out short: a page reads a bounded number of rows. */
  readonly next: { readonly level: number; readonly index: number } | null
}
