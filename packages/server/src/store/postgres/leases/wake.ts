import { changeQueued } from '../queues/queues.ts'
import { besideId } from '../rows/beside-ids.ts'
import { statement } from '../session/statement.ts'
import type { Transaction } from '../session/transaction.ts'
import type { LockedLane } from '../windows/lanes.ts'
import type { PartitionEntry } from './partitions.ts'

/** Tasks before lanes, as everyone who waits for a lane does. */
const lockTasks = statement(
  'lock-tasks-to-wake',
  'SELECT id FROM baton.task WHERE id = ANY($1::bigint[]) ORDER BY id FOR NO KEY UPDATE',
)
const lockLanes = statement(
  'lock-lanes-to-wake',
  `SELECT id, task, level, finish::text AS finish, retry_finish::text AS retry_finish FROM baton.lane
   WHERE id = ANY($1::bigint[]) ORDER BY id FOR NO KEY UPDATE`,
)
const wake = statement(
  'wake',
  `UPDATE baton.partition p SET state = 'held', stay = p.stay + 1, rank = ${besideId('$2::bigint[]')}, due_at = NULL
   WHERE p.id = ANY ($1::bigint[])`,
)

export async function lockLanesToWake(
  tx: Transaction,
  partitions: readonly PartitionEntry[],
): Promise<Map<number, LockedLane>> {
  const tasks = [...new Set(partitions.map(({ lane }) => lane.task))]
  const lanes = [...new Set(partitions.map(({ lane }) => lane.id))]
  const [, rows] = await Promise.all([tx.run(lockTasks, [tasks]), tx.run(lockLanes, [lanes])])
  return new Map(
    rows.map((row) => [
      row['id'] as number,
      {
        id: row['id'] as number,
        task: row['task'] as number,
        level: row['level'] as number,
        finish: BigInt(row['finish'] as string),
        retryFinish: BigInt(row['retry_finish'] as string),
      },
    ]),
  )
}

/** Those without a rank are held. */
export function wakePartitions(
  tx: Transaction,
  woken: readonly { readonly id: number; readonly rank: bigint | null }[],
): void {
  const rows = woken.toSorted((a, b) => a.id - b.id)
  const ids = rows.map(({ id }) => id)
  changeQueued(tx, ids, () =>
    tx.post(wake, [ids, rows.map(({ rank }) => (rank === null ? null : String(rank)))]),
  )
}
