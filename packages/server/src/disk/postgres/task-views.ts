import type { Statement } from './session/connection.ts'
import { plainArray, textArray } from './tables.ts'

/** Each EXISTS stops at the first matching name, after at most as many others as `tables` has. */
export function tasksWithTablesStatement(ids: readonly number[], tables: readonly string[]): Statement {
  const has = (rule: string) =>
    `EXISTS (SELECT FROM baton.task_table c WHERE c.task = w.id AND c.name ${rule})`
  return {
    text: `SELECT w.id AS task, ${has('<> ALL ($2::text[])')} AS has_others
      FROM unnest($1::bigint[]) AS w (id) WHERE ${has('= ANY ($2::text[])')}`,
    values: [plainArray(ids), textArray(tables)],
  }
}

export const doneRowsStatement = (task: number): Statement => ({
  text: `SELECT sum(greatest(0, done_partitions - purged))::bigint AS done FROM baton.lane WHERE task = $1`,
  values: [task],
})

/** Uses the indexes by lease end and by end of delay, and the primary key of lanes. */
export const leasedOrDelayedStatement = (limit: number): Statement => {
  const part = (column: string) =>
    `(SELECT * FROM baton.partition WHERE ${column} IS NOT NULL ORDER BY ${column}, id LIMIT $1)`
  return {
    text: `SELECT json_build_object('id', p.id, 'task', l.task, 'level', l.level, 'index', p.idx, 'spelling', p.spelling,
        'state', p.state, 'holder', p.holder, 'leasedAt', coalesce(p.leased_at, 0), 'dueAt', p.due_at,
        'recordCount', p.record_count) AS found
      FROM (${part('lease_ends_at')} UNION ALL ${part('delayed_until')}) p JOIN baton.lane l ON l.id = p.lane`,
    values: [limit],
  }
}
