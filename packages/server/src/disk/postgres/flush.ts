import type { RowChanges } from '../../handoff/disk.ts'
import { unitedRuns } from '../../handoff/rules/index-runs.ts'
import { flushedBy } from '../flush.ts'
import { postgres, sending, textOf, unnest } from './dialect.ts'
import type { Statement } from './session/connection.ts'

const flushed = flushedBy(postgres).map(({ statement, rowsOf }) => ({
  table: statement.table,
  text: textOf(statement),
  rowsOf,
}))

/** Entries are kept for a while after they are flushed, because an append checks the previous entry. */
const ENTRIES_KEPT = 1000

/** The last entry that a flush up to `upTo` deletes. Never the newest. */
export const deletableTo = (upTo: number): number => Math.max(0, upTo - ENTRIES_KEPT)

/** Entries up to `deletedTo` have been deleted. */
export function flushStatements(rowChanges: RowChanges, upTo: number, deletedTo: number): Statement[] {
  return [
    ...flushed.flatMap(({ table, text, rowsOf }) => [...sending(table, text, rowsOf(rowChanges))]),
    ...rangesStatement(rowChanges.ranges),
    {
      text: 'DELETE FROM baton.entry WHERE number > $1 AND number <= $2',
      values: [deletedTo, deletableTo(upTo)],
    },
  ]
}

/**
 * Adds ranges that were called back to the stored ranges, and merges overlapping and adjacent ones. Stored
 * ranges of a lane have gaps between them. An added range can therefore only meet ranges that start within it
 * and the one before it.
 *
 * A row is either removed or written, never both: the order of the two within one statement is undefined.
 */
const ADD = `
WITH added AS MATERIALIZED (
  SELECT * FROM ${unnest(postgres.ranges)}
), touched AS MATERIALIZED (
  SELECT DISTINCT a.lane, r.first, r.last FROM added a CROSS JOIN LATERAL (
    (SELECT first, last FROM baton.lane_range
     WHERE lane = a.lane AND first < a.first ORDER BY first DESC LIMIT 1)
    UNION ALL
    SELECT first, last FROM baton.lane_range WHERE lane = a.lane AND first BETWEEN a.first AND a.last + 1
  ) r WHERE r.last >= a.first - 1
), every AS (
  SELECT lane, first, last,
    first > 1 + max(last) OVER (PARTITION BY lane ORDER BY first, last ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS is_apart
  FROM (SELECT * FROM added UNION ALL SELECT * FROM touched) u
), islands AS (
  SELECT lane, first, last, count(*) FILTER (WHERE is_apart) OVER (PARTITION BY lane ORDER BY first, last) AS island FROM every
), united AS MATERIALIZED (
  SELECT lane, min(first) AS first, max(last) AS last FROM islands GROUP BY lane, island
), removed AS (
  DELETE FROM baton.lane_range r USING touched m WHERE r.lane = m.lane AND r.first = m.first
    AND NOT EXISTS (SELECT FROM united u WHERE u.lane = m.lane AND u.first = m.first)
)
INSERT INTO baton.lane_range (lane, first, last) SELECT lane, first, last FROM united
ON CONFLICT (lane, first) DO UPDATE SET last = excluded.last`

/** A task that is called back in many arrays adds many adjacent ranges. */
function* rangesStatement(ranges: RowChanges['ranges']): Iterable<Statement> {
  const united = [...Map.groupBy(ranges, ({ lane }) => lane)].flatMap(([lane, ofLane]) =>
    unitedRuns(ofLane).map((run) => ({ lane, ...run })),
  )
  yield* sending(postgres.ranges, ADD, united)
}
