import { type Row, statement } from '../session/statement.ts'
import type { Transaction } from '../session/transaction.ts'
import { unfoldedSums } from './count-deltas.ts'

/**
 * Takes all rows out and adds them up. Seconds stay apart: they are what the pace is made of. Who was parked is told as text,
 * because arrays of different lengths cannot be gathered into one; looking through all rows for those of each lane took
 * 5 s after a call-back with 5,000 levels.
 */
const take = statement(
  'take-deltas',
  `WITH taken AS (DELETE FROM baton.count_delta WHERE task = ANY($1::bigint[]) RETURNING *)
   SELECT task, lane, level, second, ${unfoldedSums},
     sum(finished_partitions)::bigint AS finished_partitions, least(coalesce(sum(finished_records), 0), ${Number.MAX_SAFE_INTEGER})::bigint AS finished_records,
     max(at) AS at, max(virtual)::text AS virtual_text, max(served)::text AS served_text,
     string_agg(array_to_string(parked, ','), ',') AS parked
   FROM taken GROUP BY task, lane, level, second`,
)

export interface UnfoldedSum {
  readonly task: number
  readonly row: Row
}

export async function takeDeltas(tx: Transaction, tasks: readonly number[]): Promise<UnfoldedSum[]> {
  const rows = await tx.write(take, [tasks])
  return rows.map((row) => ({ task: row['task'] as number, row }))
}

export const anyUnfolded = statement(
  'any-unfolded',
  'SELECT EXISTS (SELECT FROM baton.count_delta) AS unfolded',
)
