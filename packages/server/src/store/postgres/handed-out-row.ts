import type { HandedOut } from '../../handoff/store.ts'
import type { Row } from './connection.ts'

/** A row of a leased partition, with the names it refers to, as whoever pulled gets it. `attempts` are those before. */
export function handedOutOf(row: Row, leaseId: string, expiresAt: number, now: number): HandedOut {
  return {
    taskId: row['task_id'] as string,
    level: row['level'] as number,
    index: row['idx'] as number,
    spelling: row['spelling'] as string | null,
    computeTableName: row['compute_table_name'] as string,
    recordCount: row['record_count'] as number,
    lease: {
      id: leaseId,
      attempt: (row['attempts'] as number) + 1,
      expiresAt,
      expiresInMillis: expiresAt - now,
    },
  }
}
