import type { HandedOut } from '../../../handoff/store.ts'
import type { Row } from '../session/statement.ts'

/** The names that the row of a partition refers to by number. */
export interface RowNames {
  readonly taskId: string
  readonly computeTableName: string
}

/** A row of a leased partition as whoever pulled gets it. `attempts` are those before. */
export function handedOutOf(
  row: Row,
  { taskId, computeTableName }: RowNames,
  leaseId: string,
  expiresAt: number,
  now: number,
): HandedOut {
  return {
    taskId,
    level: row['level'] as number,
    index: row['idx'] as number,
    spelling: row['spelling'] as string | null,
    computeTableName,
    recordCount: row['record_count'] as number,
    lease: {
      id: leaseId,
      attempt: (row['attempts'] as number) + 1,
      expiresAt,
      expiresInMillis: expiresAt - now,
    },
  }
}
