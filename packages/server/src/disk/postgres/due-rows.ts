import type { Recount, WaitingCount } from '../../handoff/disk.ts'
import type { PartitionState } from '../../handoff/rules/life-cycle.ts'
import { noTallies } from '../../handoff/rules/task.ts'
import { HAS_ROWS } from './reads.ts'
import type { Row, Statement } from './session/connection.ts'
import { asJson, keys, lanes, laneTables, tasks } from './tables.ts'

/** Tasks are purged one at a time, so a task whose purge has started is among the last ones marked. */
const LATELY_PURGED = 100

export const dueKeysStatement = (now: number, limit: number): Statement => ({
  text: `SELECT ${asJson(keys, 'k')} AS key FROM
    (SELECT * FROM baton.pull_key WHERE forget_at <= $1 ORDER BY forget_at LIMIT $2) k ORDER BY k.forget_at`,
  values: [now, limit],
})

export const purgeableStatement = (finishedBefore: number): Statement => ({
  text: `SELECT ${asJson(tasks, 't')} AS task FROM (
      (SELECT 0 AS choice, p.* FROM
         (SELECT * FROM baton.task WHERE purged_at IS NOT NULL ORDER BY purged_at DESC, id DESC LIMIT ${LATELY_PURGED}) p
       WHERE p.finished_at IS NOT NULL AND p.leased_partitions + p.delayed_partitions = 0 AND EXISTS (
         SELECT FROM baton.lane WHERE task = p.id AND ${HAS_ROWS})
       LIMIT 1)
      UNION ALL
      (SELECT 1 AS choice, f.* FROM baton.task f
       WHERE finished_at IS NOT NULL AND purged_at IS NULL AND finished_at < $1 AND leased_partitions + delayed_partitions = 0
         AND has_work IS NULL
       ORDER BY finished_at, id LIMIT 1)
    ) t ORDER BY t.choice LIMIT 1`,
  values: [finishedBefore],
})

export const tasksWithRerunsStatement = (limit: number): Statement => ({
  text: `SELECT ${asJson(tasks, 't')} AS task FROM
    (SELECT * FROM baton.task WHERE has_work AND reruns::text <> '[]' ORDER BY id LIMIT $1) t ORDER BY t.id`,
  values: [limit],
})

export const tasksWithStagedRowsStatement: Statement = {
  text: `SELECT ${asJson(tasks, 't')} AS task FROM baton.task t
    WHERE t.has_work AND t.staging IS NOT NULL ORDER BY t.id`,
}

/** Changes no row, but fails on a server that does not accept writes. */
export const probeStatement: Statement = {
  text: 'UPDATE baton.level SET virtual = virtual WHERE level = -1',
}

/** In SQL: whether a ready partition came back. */
const KIND = `CASE WHEN due_at IS NULL THEN 'fresh' ELSE 'returned' END`

export const recountStatement: Statement = {
  text: `SELECT ${asJson(lanes, 'l')} AS lane, ${asJson(tasks, 't')} AS task, c.counted,
      (SELECT json_agg(json_build_array(${asJson(laneTables, 'r')}, (
         SELECT json_agg(json_build_array(kind, n)) FROM (
           SELECT ${KIND} AS kind, count(*) AS n FROM baton.partition
           WHERE lane = l.id AND id <= l.tail AND compute_table = r.name AND state = 'ready' GROUP BY 1) w)))
       FROM baton.lane_table r WHERE r.lane = l.id) AS tables
    FROM baton.lane l
    JOIN baton.task t ON t.id = l.task LEFT JOIN (
      SELECT lane, json_agg(json_build_array(state, kind, partitions, records)) AS counted FROM (
        SELECT p.lane, p.state, ${KIND} AS kind, count(*) AS partitions, sum(p.record_count)::bigint AS records
        FROM baton.partition p JOIN baton.lane l ON l.id = p.lane WHERE p.id <= l.tail GROUP BY 1, 2, 3) g
      GROUP BY lane) c ON c.lane = l.id
    ORDER BY l.id`,
}

export function readRecount(row: Row): Recount {
  const { partitions, records } = noTallies()
  const waiting: WaitingCount = { fresh: 0, returned: 0 }
  const counted = (row['counted'] ?? []) as [PartitionState, keyof WaitingCount, number, number][]
  for (const [state, kind, count, sum] of counted) {
    partitions[state] += count
    records[state] += sum
    if (state === 'ready') waiting[kind] += count
  }
  const tables = ((row['tables'] ?? []) as [unknown[], [keyof WaitingCount, number][] | null][]).map(
    ([values, counts]) => {
      const waitingHere: WaitingCount = { fresh: 0, returned: 0 }
      for (const [kind, count] of counts ?? []) waitingHere[kind] += count
      return { row: laneTables.read(values), waiting: waitingHere }
    },
  )
  return {
    lane: lanes.read(row['lane'] as unknown[]),
    task: tasks.read(row['task'] as unknown[]),
    partitions,
    records,
    waiting,
    tables,
  }
}
