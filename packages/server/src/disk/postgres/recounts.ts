import type { ParkedByFailure, Recount, WaitingCount } from '../../handoff/disk.ts'
import type { PartitionState } from '../../handoff/rules/life-cycle.ts'
import { noTallies } from '../../handoff/rules/task.ts'
import type { Row, Statement } from './session/connection.ts'
import { asJson, lanes, laneTables, tasks } from './tables.ts'

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
      SELECT lane, json_agg(json_build_array(state, kind, partitions, records, parked_as)) AS counted FROM (
        SELECT p.lane, p.state, ${KIND} AS kind, p.parked_as, count(*) AS partitions, sum(p.record_count)::bigint AS records
        FROM baton.partition p JOIN baton.lane l ON l.id = p.lane WHERE p.id <= l.tail GROUP BY 1, 2, 3, 4) g
      GROUP BY lane) c ON c.lane = l.id
    ORDER BY l.id`,
}

export function readRecount(row: Row): Recount {
  const { partitions, records } = noTallies()
  const waiting: WaitingCount = { fresh: 0, returned: 0 }
  const parked: ParkedByFailure = new Map()
  const counted = (row['counted'] ?? []) as [
    PartitionState,
    keyof WaitingCount,
    number,
    number,
    string | null,
  ][]
  for (const [state, kind, count, sum, failure] of counted) {
    partitions[state] += count
    records[state] += sum
    if (state === 'ready') waiting[kind] += count
    if (state === 'parked') parked.set(failure, { partitions: count, records: sum })
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
    parked,
    tables,
  }
}
