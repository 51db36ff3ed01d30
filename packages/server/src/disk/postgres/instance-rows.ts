import { MAX_PRODUCER_TASKS } from '@baton/protocol'
import type { Heartbeat } from '../../handoff/heartbeats.ts'
import { partitionStates } from '../../handoff/rules/life-cycle.ts'
import type { InstanceDetails, InstanceQuery } from '../../handoff/views/queries.ts'
import { insert } from '../flush.ts'
import { heartbeatRows, instanceDetails, producedTask, recordHeartbeat } from '../instances.ts'
import { sumOf } from './reads.ts'
import type { Row, Statement } from './session/connection.ts'
import { arraysOf, asJson, postgres, tasks, textArray, textOf } from './tables.ts'

const { instances } = postgres

const RECORD = textOf(
  insert(instances, recordHeartbeat(postgres, `$${instances.columns.length + 1}::bigint`)),
)

export const recordStatement = (heartbeats: readonly Heartbeat[], now: number): Statement => ({
  text: RECORD,
  values: [...arraysOf(instances, heartbeatRows(heartbeats, now)), now],
})

/** Uses the index of running leases by holder. */
const SHOWN = `${asJson(instances, 'i')} AS row,
  (SELECT json_build_array(count(*), min(p.lease_ends_at)) FROM baton.partition p WHERE p.leased_by = i.instance_id AND p.lease_ends_at > $1
     AND NOT EXISTS (SELECT FROM baton.lane l JOIN baton.task t ON t.id = l.task WHERE l.id = p.lane AND t.cancelled)
  ) AS leases`

/**
 * Uses the index of a producer's newest tasks. A task whose first call-back is not complete has no counted
 * partition, and is not visible yet.
 */
const PRODUCED = `ARRAY(SELECT json_build_array(p.at, ${asJson(tasks, 't')}) FROM
     (SELECT * FROM baton.produced_task WHERE instance = i.instance_id
      ORDER BY at DESC LIMIT ${MAX_PRODUCER_TASKS}) p
     CROSS JOIN LATERAL (SELECT * FROM baton.task WHERE id = p.task OFFSET 0) t
     WHERE ${sumOf(partitionStates)} > 0 ORDER BY p.at DESC) AS tasks`

export const instanceStatement = (instanceId: string, now: number): Statement => ({
  text: `SELECT ${SHOWN}, ${PRODUCED} FROM baton.instance i WHERE i.instance_id = $2::text COLLATE "C"`,
  values: [now, instanceId],
})

export function instancesStatement({ after, limit, names }: InstanceQuery, now: number): Statement {
  return {
    text: `SELECT ${SHOWN} FROM
    (SELECT * FROM baton.instance WHERE instance_id > $2::text COLLATE "C"
       ${names === undefined ? '' : 'AND instance_id = ANY ($4::text[])'}
     ORDER BY instance_id LIMIT $3) i
    ORDER BY i.instance_id`,
    values: [now, after ?? '', limit, ...(names === undefined ? [] : [textArray(names)])],
  }
}

export const activeInstancesStatement = (since: number, limit: number): Statement => ({
  text: `SELECT instance_id FROM baton.instance WHERE last_seen_at >= $1
      OR EXISTS (SELECT FROM baton.partition p WHERE p.leased_by = instance_id)
    ORDER BY instance_id LIMIT $2`,
  values: [since, limit],
})

/** A client that holds a lease is kept, however long it has been silent. */
export const forgetStatement = (unseenSince: number, endedSince: number, limit: number): Statement => ({
  text: `WITH gone AS MATERIALIZED (
      SELECT instance_id FROM baton.instance i
      WHERE (last_seen_at < $1 OR draining AND last_seen_at < $2)
        AND NOT EXISTS (SELECT FROM baton.partition p WHERE p.leased_by = i.instance_id)
      ORDER BY instance_id LIMIT $3 FOR UPDATE SKIP LOCKED
    ), produced AS (
      DELETE FROM baton.produced_task p USING gone g WHERE p.instance = g.instance_id
    ), forgotten AS (
      DELETE FROM baton.instance i USING gone g WHERE i.instance_id = g.instance_id RETURNING 1
    )
    SELECT count(*) AS forgotten FROM forgotten`,
  values: [unseenSince, endedSince, limit],
})

export function readInstance(row: Row, now: number): InstanceDetails {
  const [leases, leasesEndAt] = row['leases'] as [number, number | null]
  const details = instanceDetails(instances.read(row['row'] as unknown[]), { leases, leasesEndAt }, now)
  const produced = row['tasks'] as [number, unknown[]][] | undefined
  if (produced === undefined) return details
  return { ...details, tasks: produced.map(([at, values]) => producedTask(tasks.read(values), at)) }
}
