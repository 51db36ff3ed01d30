import type { Images } from '../../handoff/disk.ts'
import { plainArray } from './columns.ts'
import type { Statement } from './session/connection.ts'

/**
 * Adds ranges that were called back to the stored ranges, and merges overlapping and adjacent ones. Stored
 * ranges of a lane have gaps between them. An added range can therefore only meet ranges that start within it
 * and the one before it.
 *
 * A row is either removed or written, never both: the order of the two within one statement is undefined.
 */
const ADD = `
WITH added AS MATERIALIZED (
  SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS n (lane, first, last)
), met AS MATERIALIZED (
  SELECT DISTINCT a.lane, r.first, r.last FROM added a CROSS JOIN LATERAL (
    (SELECT first, last FROM baton.lane_range
     WHERE lane = a.lane AND first < a.first ORDER BY first DESC LIMIT 1)
    UNION ALL
    SELECT first, last FROM baton.lane_range WHERE lane = a.lane AND first BETWEEN a.first AND a.last + 1
  ) r WHERE r.last >= a.first - 1
), every AS (
  SELECT lane, first, last,
    first > 1 + max(last) OVER (PARTITION BY lane ORDER BY first, last ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS is_apart
  FROM (SELECT * FROM added UNION ALL SELECT * FROM met) u
), islands AS (
  SELECT lane, first, last, count(*) FILTER (WHERE is_apart) OVER (PARTITION BY lane ORDER BY first, last) AS island FROM every
), united AS MATERIALIZED (
  SELECT lane, min(first) AS first, max(last) AS last FROM islands GROUP BY lane, island
), removed AS (
  DELETE FROM baton.lane_range r USING met m WHERE r.lane = m.lane AND r.first = m.first
    AND NOT EXISTS (SELECT FROM united u WHERE u.lane = m.lane AND u.first = m.first)
)
INSERT INTO baton.lane_range (lane, first, last) SELECT lane, first, last FROM united
ON CONFLICT (lane, first) DO UPDATE SET last = excluded.last`

const CHUNK = 250

/**
 * Merges adjacent ranges before they are sent, since a task that is called back in many arrays adds many of
 * them.
 */
export function* rangesStatement(ranges: Images['ranges']): Iterable<Statement> {
  const sorted = ranges.toSorted((a, b) => a.lane - b.lane || a.first - b.first)
  const united: { lane: number; first: number; last: number }[] = []
  for (const { lane, first, last } of sorted) {
    const before = united.at(-1)
    if (before !== undefined && before.lane === lane && first <= before.last + 1)
      before.last = Math.max(before.last, last)
    else united.push({ lane, first, last })
  }
  for (let at = 0; at < united.length; at += CHUNK) {
    const chunk = united.slice(at, at + CHUNK)
    yield {
      text: ADD,
      values: [
        plainArray(chunk.map(({ lane }) => lane)),
        plainArray(chunk.map(({ first }) => first)),
        plainArray(chunk.map(({ last }) => last)),
      ],
    }
  }
}
