import { MAX_PRODUCER_TASKS } from '@baton/protocol'
import type { ForgetInstances, InstanceRowsQuery } from '../../handoff/disk.ts'
import type { Heartbeat } from '../../handoff/heartbeats.ts'
import { partitionStates } from '../../handoff/rules/life-cycle.ts'
import type { InstanceRecord } from '../../handoff/views/queries.ts'
import { insert } from '../flush.ts'
import { heartbeatRows, instanceRecord, producedTask, recordHeartbeat } from '../instances.ts'
import { sumOf } from '../reads.ts'
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

const SHOWN = `${asJson(instances, 'i')} AS row`

/**
 * Uses the index of a producer's newest tasks. A task whose first call-back is not complete has no counted
 * partition, and is not visible yet.
 */
const PRODUCED = `ARRAY(SELECT json_build_array(p.at, ${asJson(tasks, 't')}) FROM
     (SELECT * FROM baton.produced_task WHERE instance = i.instance_id
      ORDER BY at DESC LIMIT ${MAX_PRODUCER_TASKS}) p
     CROSS JOIN LATERAL (SELECT * FROM baton.task WHERE id = p.task OFFSET 0) t
     WHERE ${sumOf(partitionStates)} > 0 ORDER BY p.at DESC) AS tasks`

export const instanceStatement = (instanceId: string): Statement => ({
  text: `SELECT ${SHOWN}, ${PRODUCED} FROM baton.instance i WHERE i.instance_id = $1::text COLLATE "C"`,
  values: [instanceId],
})

export function instancesStatement(query: InstanceRowsQuery): Statement {
  const select = `SELECT ${SHOWN} FROM baton.instance i`
  if ('names' in query)
    return { text: `${select} WHERE instance_id = ANY ($1::text[])`, values: [textArray(query.names)] }
  const { sort, after, limit } = query
  if (sort === 'name')
    return {
      text: `${select} WHERE instance_id > $1::text COLLATE "C" ORDER BY instance_id LIMIT $2`,
      values: [after?.name ?? '', limit],
    }
  // Without an index: it would have to be written with every heartbeat.
  return {
    text: `${select} WHERE (last_seen_at, instance_id) < ($1::bigint, $2::text COLLATE "C")
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
export const forgetStatement = ({ unseenSince, endedSince, most, limit }: ForgetInstances): Statement => ({
  text: `WITH beyond AS MATERIALIZED (
      SELECT last_seen_at FROM baton.instance ORDER BY last_seen_at DESC LIMIT 1 OFFSET $4
    ), gone AS MATERIALIZED (
      SELECT instance_id FROM baton.instance i
      WHERE (last_seen_at < $1 OR last_seen_at <= (SELECT last_seen_at FROM beyond) OR draining AND last_seen_at < $2)
        AND paused_at IS NULL AND NOT EXISTS (SELECT FROM baton.partition p WHERE p.leased_by = i.instance_id)
      ORDER BY instance_id LIMIT $3 FOR UPDATE SKIP LOCKED
    ), produced AS (
      DELETE FROM baton.produced_task p USING gone g WHERE p.instance = g.instance_id
    ), forgotten AS (
      DELETE FROM baton.instance i USING gone g WHERE i.instance_id = g.instance_id RETURNING 1
    )
    SELECT count(*) AS forgotten FROM forgotten`,
  values: [unseenSince, endedSince, limit, most],
})

export function readInstance(row: Row): InstanceRecord {
  const record = instanceRecord(instances.read(row['row'] as unknown[]))
  const produced = row['tasks'] as [number, unknown[]][] | undefined
  if (produced === undefined) return record
  return { ...record, tasks: produced.map(([at, values]) => producedTask(tasks.read(values), at)) }
}
