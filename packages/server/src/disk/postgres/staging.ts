import type { IndexesOfLane, KnownOfLane, KnownPartition } from '../../handoff/disk.ts'
import type { PartitionDescriptor, StagedIds } from '../../handoff/stored.ts'
import { newRowArrays } from './append.ts'
import { plainArray } from './columns.ts'
import { descriptorColumns } from './rows.ts'
import type { Row, Statement } from './session/connection.ts'

const STAGE = `INSERT INTO baton.partition (${descriptorColumns.names.join(', ')})
  SELECT ${descriptorColumns.from('n')} FROM ${descriptorColumns.unnest('n')}`

export const stageStatement = (rows: readonly PartitionDescriptor[]): Statement => ({
  text: STAGE,
  values: newRowArrays(rows),
})

export const unstageStatement = ({ first, last }: StagedIds): Statement => ({
  text: 'DELETE FROM baton.partition WHERE id BETWEEN $1 AND $2',
  values: [first, last],
})

/** Ranges outlive the rows that retention removes. A sum is no condition of an index: rows are to be found by theirs. */
export function knownStatement(asked: readonly IndexesOfLane[]): Statement {
  const wanted = asked.flatMap(({ lane, tail, indexes }, at) =>
    indexes.map((index) => ({ at, lane, tail, index })),
  )
  return {
    text: `SELECT w.at, w.idx, p.record_count, p.compute_table, p.spelling, p.extra_fields
    FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[]) AS w (at, lane, tail, idx) LEFT JOIN LATERAL
      (SELECT record_count, compute_table, spelling, extra_fields FROM baton.partition
       WHERE lane = w.lane AND idx = w.idx AND id + 0 <= w.tail OFFSET 0) p ON true
    WHERE p.record_count IS NOT NULL
      OR (SELECT last FROM baton.lane_range WHERE lane = w.lane AND first <= w.idx ORDER BY first DESC LIMIT 1) >= w.idx`,
    values: [
      plainArray(wanted.map(({ at }) => at)),
      plainArray(wanted.map(({ lane }) => lane)),
      plainArray(wanted.map(({ tail }) => tail)),
      plainArray(wanted.map(({ index }) => index)),
    ],
  }
}

export function readKnown(rows: readonly Row[], lanes: number): KnownOfLane[] {
  const known = Array.from({ length: lanes }, () => new Map<number, KnownPartition | null>())
  for (const row of rows)
    known[row['at'] as number]?.set(
      row['idx'] as number,
      row['record_count'] === null
        ? null
        : {
            recordCount: row['record_count'] as number,
            computeTable: row['compute_table'] as string,
            spelling: row['spelling'] as string | null,
            extraFields: row['extra_fields'] as string | null,
          },
    )
  return known
}
