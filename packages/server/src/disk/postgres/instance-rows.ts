import { type InstanceTotals, MAX_PRODUCER_TASKS } from '@baton/protocol'
import type { InstanceRowsQuery } from '../../handoff/disk.ts'
import type { Heartbeat } from '../../handoff/heartbeats.ts'
import { partitionStates } from '../../handoff/rules/life-cycle.ts'
import { totalOf } from '../../handoff/rules/task.ts'
import {
  type InstanceRecord,
  noTotals,
  type ProducedTaskDetails,
  type TotalsAdded,
} from '../../handoff/views/queries.ts'
import { identityColumns, TAKES_A_NODES_NAME, totalColumns } from '../sql-columns.ts'
import { plainArray, taskColumns, textArray } from './columns.ts'
import { sumOf } from './reads.ts'
import type { Row, Statement } from './session/connection.ts'

const totals = Object.entries(totalColumns) as [keyof InstanceTotals, string][]
const columns = totals.map(([, column]) => column)

/**
 * Another node may have seen the instance later and written so earlier. A time in the future, from before the
 * clock was set back, does not count.
 */
const LAST_SEEN = 'greatest(excluded.last_seen_at, least(instance.last_seen_at, $2::bigint))'

/** In order of name, so that nodes that write the same clients do not deadlock. */
const RECORD = `INSERT INTO baton.instance
    (instance_id, role, first_seen_at, last_seen_at, version, started_at, draining, ${columns.join(', ')})
  SELECT instance_id, role, first_seen_at, last_seen_at, version, started_at, draining, ${columns.join(', ')}
  FROM json_populate_recordset(NULL::baton.instance, $1::json) ORDER BY instance_id
  ON CONFLICT (instance_id) DO UPDATE SET
    last_seen_at = CASE WHEN ${TAKES_A_NODES_NAME} THEN instance.last_seen_at ELSE ${LAST_SEEN} END,
    ${identityColumns.map((column) => `${column} = CASE WHEN ${TAKES_A_NODES_NAME} THEN instance.${column} ELSE excluded.${column} END`).join(', ')},
    ${columns.map((column) => `${column} = least(instance.${column} + excluded.${column}, ${Number.MAX_SAFE_INTEGER})`).join(', ')}`

/** Merges the heartbeats of each instance, because an upsert cannot write a row twice. */
export function recordStatement(heartbeats: readonly Heartbeat[], now: number): Statement {
  const rows = new Map<string, Record<string, unknown>>()
  for (const { instanceId, role, totals: added, seenMillisAgo, node } of heartbeats) {
    const before = rows.get(instanceId)
    const firstSeenAt = now - seenMillisAgo.first
    const lastSeenAt = now - seenMillisAgo.last
    rows.set(instanceId, {
      instance_id: instanceId,
      role,
      first_seen_at: Math.min(firstSeenAt, (before?.['first_seen_at'] as number | undefined) ?? firstSeenAt),
      last_seen_at: Math.max(lastSeenAt, (before?.['last_seen_at'] as number | undefined) ?? lastSeenAt),
      version: node?.version ?? null,
      started_at: node?.startedAt ?? null,
      draining: node?.draining ?? false,
      ...Object.fromEntries(
        totals.map(([name, column]) => [
          column,
          Math.min(added[name] + ((before?.[column] as number | undefined) ?? 0), Number.MAX_SAFE_INTEGER),
        ]),
      ),
    })
  }
  return { text: RECORD, values: [JSON.stringify([...rows.values()]), now] }
}

/** Adds to totals what entries say instances did. When an instance was last seen comes from heartbeats. */
export function addTotalsStatement(added: readonly TotalsAdded[]): Statement {
  const sums = columns.map(
    (column) => `${column} = least(instance.${column} + excluded.${column}, ${Number.MAX_SAFE_INTEGER})`,
  )
  const arrays = columns.map((_, at) => `$${at + 5}::bigint[]`)
  return {
    text: `INSERT INTO baton.instance (instance_id, role, first_seen_at, last_seen_at, expected_at, ${columns.join(', ')})
      SELECT instance_id, role, at, at, expected_at, ${columns.join(', ')}
      FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[], ${arrays.join(', ')})
        AS n (instance_id, role, at, expected_at, ${columns.join(', ')})
      ORDER BY instance_id COLLATE "C"
      ON CONFLICT (instance_id) DO UPDATE SET ${sums.join(', ')},
        expected_at = greatest(instance.expected_at, excluded.expected_at)`,
    values: [
      textArray(added.map(({ instanceId }) => instanceId)),
      textArray(added.map(({ role }) => role)),
      plainArray(added.map(({ at }) => at)),
      plainArray(added.map(({ expectedAt }) => expectedAt)),
      ...totals.map(([name]) => plainArray(added.map((one) => one.totals[name]))),
    ],
  }
}

/**
 * Uses the index of a producer's newest tasks. A task whose first call-back is not complete has no counted
 * partition, and is not visible yet.
 */
const PRODUCED = `ARRAY(SELECT json_build_array(p.last_call_back_at, ${taskColumns.asJson('t')}) FROM
     (SELECT * FROM baton.produced_task WHERE instance = i.instance_id
      ORDER BY last_call_back_at DESC LIMIT ${MAX_PRODUCER_TASKS}) p
     CROSS JOIN LATERAL (SELECT * FROM baton.task WHERE id = p.task OFFSET 0) t
     WHERE ${sumOf(partitionStates)} > 0 ORDER BY p.last_call_back_at DESC) AS tasks`

export const instanceStatement = (instanceId: string): Statement => ({
  text: `SELECT i.*, ${PRODUCED} FROM baton.instance i WHERE i.instance_id = $1::text COLLATE "C"`,
  values: [instanceId],
})

export function instancesStatement(query: InstanceRowsQuery): Statement {
  if ('names' in query)
    return {
      text: 'SELECT * FROM baton.instance WHERE instance_id = ANY ($1::text[])',
      values: [textArray(query.names)],
    }
  const { sort, after, limit } = query
  if (sort === 'name')
    return {
      text: 'SELECT * FROM baton.instance WHERE instance_id > $1::text COLLATE "C" ORDER BY instance_id LIMIT $2',
      values: [after?.name ?? '', limit],
    }
  // Without an index: it would have to be written with every heartbeat.
  return {
    text: `SELECT * FROM baton.instance WHERE (last_seen_at, instance_id) < ($1::bigint, $2::text COLLATE "C")
      ORDER BY last_seen_at DESC, instance_id DESC LIMIT $3`,
    values: [after?.value ?? Number.MAX_SAFE_INTEGER, after?.name ?? '', limit],
  }
}

export const pausedInstancesStatement: Statement = {
  text: 'SELECT instance_id, paused_at FROM baton.instance WHERE paused_at IS NOT NULL',
  values: [],
}

export const activeInstancesStatement = (since: number, limit: number): Statement => ({
  text: `SELECT instance_id FROM baton.instance WHERE last_seen_at >= $1 OR last_seen_at < expected_at
      OR EXISTS (SELECT FROM baton.partition p WHERE p.leased_by = instance_id)
    ORDER BY instance_id LIMIT $2`,
  values: [since, limit],
})

/** A client that holds a lease or is paused is kept, however long it has been silent. */
export const forgetStatement = (unseenSince: number, endedSince: number, limit: number): Statement => ({
  text: `WITH gone AS MATERIALIZED (
      SELECT instance_id FROM baton.instance i
      WHERE (last_seen_at < $1 OR draining AND last_seen_at < $2)
        AND paused_at IS NULL AND NOT EXISTS (SELECT FROM baton.partition p WHERE p.leased_by = i.instance_id)
      ORDER BY instance_id LIMIT $3 FOR UPDATE SKIP LOCKED
    ), produced AS (
      DELETE FROM baton.produced_task p USING gone g WHERE p.instance = g.instance_id
    ), forgotten AS (
      DELETE FROM baton.instance i USING gone g WHERE i.instance_id = g.instance_id RETURNING 1
    )
    SELECT count(*) AS forgotten FROM forgotten`,
  values: [unseenSince, endedSince, limit],
})

export function readInstance(row: Row): InstanceRecord {
  const sums = noTotals()
  for (const [name, column] of totals) sums[name] = row[column] as number
  return {
    instanceId: row['instance_id'] as string,
    role: row['role'] as InstanceRecord['role'],
    firstSeenAt: row['first_seen_at'] as number,
    lastSeenAt: row['last_seen_at'] as number,
    totals: sums,
    expectedAt: row['expected_at'] as number | null,
    pausedAt: row['paused_at'] as number | null,
    node:
      row['started_at'] === null
        ? null
        : {
            version: row['version'] as string,
            startedAt: row['started_at'] as number,
            draining: row['draining'] as boolean,
          },
    ...('tasks' in row ? { tasks: (row['tasks'] as [number, unknown[]][]).map(readProduced) } : {}),
  }
}

function readProduced([lastCallBackAt, values]: [number, unknown[]]): ProducedTaskDetails {
  const { taskId, state, partitions, records } = taskColumns.read(values)
  return {
    taskId,
    state,
    lastCallBackAt,
    partitions: { total: totalOf(partitions), done: partitions.done },
    records: { total: totalOf(records), done: records.done },
  }
}
