import type { KnownPartition } from '../../handoff/disk.ts'
import type { PartitionDescriptor, StagedIds } from '../../handoff/stored.ts'
import { newRowArrays, newRowColumns } from './append.ts'
import { plainArray } from './columns.ts'
import { descriptorColumns } from './rows.ts'
import type { Row, Statement } from './session/connection.ts'

const STAGE = `INSERT INTO baton.partition (${descriptorColumns.names.join(', ')})
  SELECT ${newRowColumns('n')} FROM ${descriptorColumns.unnest('n')}`

export const stageStatement = (rows: readonly PartitionDescriptor[]): Statement => ({
  text: STAGE,
  values: newRowArrays(rows),
})

export const unstageStatement = ({ first, last }: StagedIds): Statement => ({
  text: 'DELETE FROM baton.partition WHERE id BETWEEN $1 AND $2',
  values: [first, last],
})

/** Ranges outlive the rows that retention removes. A sum is no condition of an index: rows are to be found by theirs. */
export const knownStatement = (lane: number, tail: number, indexes: readonly number[]): Statement => ({
  text: `SELECT w.idx, p.record_count, p.compute_table, p.spelling
    FROM unnest($3::bigint[]) AS w (idx) LEFT JOIN LATERAL
      (SELECT record_count, compute_table, spelling FROM baton.partition
       WHERE lane = $1 AND idx = w.idx AND id + 0 <= $2 OFFSET 0) p ON true
    WHERE p.record_count IS NOT NULL
      OR (SELECT last FROM baton.lane_range WHERE lane = $1 AND first <= w.idx ORDER BY first DESC LIMIT 1) >= w.idx`,
  values: [lane, tail, plainArray(indexes)],
})

export function readKnown(rows: readonly Row[]): Map<number, KnownPartition | null> {
  return new Map(
    rows.map((row) => [
      row['idx'] as number,
      row['record_count'] === null
        ? null
        : {
            recordCount: row['record_count'] as number,
            computeTable: row['compute_table'] as string,
            spelling: row['spelling'] as string | null,
          },
    ]),
  )
}
