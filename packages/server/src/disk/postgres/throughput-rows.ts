import type { ForgetThroughput, ThroughputRowsQuery } from '../../handoff/disk.ts'
import type { ThroughputRow } from '../../handoff/views/queries.ts'
import type { Row, Statement } from './session/connection.ts'

const MOST = Number.MAX_SAFE_INTEGER

export function throughputStatement(query: ThroughputRowsQuery): Statement {
  const { task, step, from, to, byLevel, limit } = query
  // Written as a range of the primary key. With equalities the planner would use the index by age.
  const stepGiven = '$2::text COLLATE "C"'
  const within = `FROM baton.throughput WHERE (task, step, at) >= ($1, ${stepGiven}, $3) AND (task, step, at) < ($1, ${stepGiven}, $4)`
  const newest = 'ORDER BY task DESC, step DESC, at DESC'
  const rows = byLevel
    ? `SELECT at, level, partitions, records ${within} ${newest}, level DESC LIMIT $5`
    : `SELECT at, NULL::bigint AS level, sum(partitions)::bigint AS partitions,
         least(sum(records), ${MOST})::bigint AS records ${within} GROUP BY task, step, at ${newest} LIMIT $5`
  return {
    text: `SELECT json_build_object('at', at, 'level', level, 'partitions', partitions, 'records', records) AS point
      FROM (${rows}) r`,
    values: [task, step, from, to, limit],
  }
}

export const readThroughput = (row: Row): ThroughputRow => row['point'] as ThroughputRow

/** Uses the index by age, which is read up to the newest row over the limit. */
export const forgetThroughputStatement = ({ before, most, limit }: ForgetThroughput): Statement => ({
  text: `WITH step (name, before) AS (VALUES ('minute', $1::bigint), ('hour', $2::bigint)),
    bound AS MATERIALIZED (
      SELECT name COLLATE "C" AS name, greatest(before, CASE WHEN $3::bigint IS NOT NULL THEN 1 + (
        SELECT at FROM baton.throughput WHERE step = name COLLATE "C" ORDER BY at DESC LIMIT 1 OFFSET $3::bigint) END) AS at
      FROM step),
    old AS MATERIALIZED (
      SELECT t.* FROM bound CROSS JOIN LATERAL (
        SELECT task, step, at, level FROM baton.throughput
        WHERE step = bound.name AND at < bound.at ORDER BY at LIMIT $4) t LIMIT $4),
    gone AS (
      DELETE FROM baton.throughput t USING old o
      WHERE t.task = o.task AND t.step = o.step AND t.at = o.at AND t.level = o.level RETURNING 1)
    SELECT count(*) AS gone FROM gone`,
  values: [before.minute, before.hour, most, limit],
})
