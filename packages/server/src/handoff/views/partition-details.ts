import type { PartitionDetails } from './queries.ts'

/** A stored partition: what views show of it, and by what it is found. */
export interface PartitionRow
  extends Omit<PartitionDetails, 'level' | 'computeTableName' | 'progress' | 'checkpoint'> {
  readonly id: number
  readonly computeTable: string
  readonly failure: string | null
  /** Null: it has no checkpoint. */
  readonly checkpointAt: number | null
  readonly extraFields: string | null
  readonly traceparent: string | null
}

/** A row as views show it: a waiting partition of a paused table is held. */
export function partitionDetails(
  row: PartitionRow,
  level: number,
  pausedTables: ReadonlySet<string>,
): PartitionDetails {
  const { index, spelling, computeTable, recordCount, attempts, holder, dueAt, reason } = row
  const { reportedRecords, calledBackAt, settledAt, leasedAt, outcome, history, extraFields, traceparent } =
    row
  const shown = {
    level,
    index,
    spelling,
    computeTableName: computeTable,
    recordCount,
    state: row.state === 'ready' && pausedTables.has(computeTable) ? ('held' as const) : row.state,
    attempts,
    holder,
    dueAt,
    reason,
    reportedRecords,
    calledBackAt,
    settledAt,
    leasedAt,
    outcome,
    history,
  }
  return extraFields === null && traceparent === null ? shown : { ...shown, extraFields, traceparent }
}
