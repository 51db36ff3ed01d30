import { auditCounters } from '../../../handoff/rules/counter-audit.ts'
import type { PartitionState } from '../../../handoff/rules/life-cycle.ts'
import { noTallies, type Tallies } from '../../../handoff/rules/tally.ts'
import { readTallies, readTask, taskColumns } from '../rows/entries.ts'
import { type Row, statement } from '../session/statement.ts'
import type { Transaction } from '../session/transaction.ts'

const lanes = statement(
  'audit-lanes',
  'SELECT l.*, t.task_id FROM baton.lane l JOIN baton.task t ON t.id = l.task ORDER BY l.id',
)
const recount = statement(
  'audit-partitions',
  `SELECT lane, state, count(*) AS partitions, sum(record_count)::bigint AS records FROM (
     SELECT lane, record_count, CASE WHEN state = 'held' AND EXISTS (
       SELECT FROM baton.ready r WHERE r.lane = p.lane AND r.id = p.id AND r.stay = p.stay
     ) THEN 'ready' ELSE state END AS state FROM baton.partition p
   ) p GROUP BY lane, state`,
)
const tasks = statement('audit-tasks', `SELECT ${taskColumns('t')} FROM baton.task t ORDER BY id`)
const misplaced = statement(
  'audit-order',
  `SELECT id, state FROM baton.partition
   WHERE state = 'ready' OR (state IN ('leased', 'delayed') AND (due_at IS NULL OR due_with IS NULL))
     OR parked <> (state = 'parked') LIMIT 10`,
)
/** Each queue against the rows of its state, both ways. */
const misqueued = statement(
  'audit-queues',
  `(SELECT coalesce(p.id, q.id) AS id, 'waiting' AS queue FROM
      (SELECT p.*, l.task FROM baton.partition p JOIN baton.lane l ON l.id = p.lane WHERE p.state = 'held') p
    FULL JOIN (
      SELECT level, id, lane, task, stay, NULL AS record_count FROM baton.ready
      UNION ALL SELECT NULL, id, lane, NULL, stay, record_count FROM baton.held
    ) q ON q.id = p.id AND q.lane = p.lane AND q.stay = p.stay AND coalesce(q.task, p.task) = p.task
      AND coalesce(q.level, p.level) = p.level AND coalesce(q.record_count, p.record_count) = p.record_count
    WHERE p.id IS NULL OR q.id IS NULL LIMIT 10)
   UNION ALL
   (SELECT id, 'waiting' FROM (SELECT id FROM baton.ready UNION ALL SELECT id FROM baton.held) q
    GROUP BY id HAVING count(*) > 1 LIMIT 10)
   UNION ALL
   (SELECT coalesce(p.id, q.id), 'due' FROM (SELECT * FROM baton.partition WHERE state IN ('leased', 'delayed')) p
    FULL JOIN (SELECT d.*, unnest(ids) AS id FROM baton.due d) q ON q.id = p.id AND q.number = p.due_with AND q.due_at = p.due_at
      AND q.delayed = (p.state = 'delayed') AND (p.holder IS NULL OR p.holder = ANY (q.holders))
    WHERE q.id IS NULL LIMIT 10)
   UNION ALL
   (SELECT ids[1], 'due' FROM baton.due d
    WHERE remaining < (SELECT count(*) FROM baton.partition p WHERE p.id = ANY (d.ids) AND p.due_with = d.number
      AND p.state = CASE WHEN d.delayed THEN 'delayed' ELSE 'leased' END) LIMIT 10)`,
)
const leftover = statement('audit-deltas', 'SELECT count(*) AS rows FROM baton.count_delta')

/** Recounts every partition and says where a counter, a state or a tag disagrees with the rows. */
export async function audit(tx: Transaction): Promise<string[]> {
  const [laneRows, counted, taskRows, wrong, strays, [unfolded]] = await Promise.all([
    tx.run(lanes),
    tx.run(recount),
    tx.run(tasks),
    tx.run(misplaced),
    tx.run(misqueued),
    tx.run(leftover),
  ])
  const findings = wrong.map(
    (row) => `partition row ${row['id']} is ${row['state']}, and its columns disagree`,
  )
  for (const row of strays)
    findings.push(`the queue of what is ${row['queue']} disagrees with partition row ${row['id']}`)
  if (unfolded?.['rows'] !== 0) findings.push(`${unfolded?.['rows']} counts are not folded in`)
  const countedOf = Map.groupBy(counted, (row) => row['lane'] as number)
  const audited = laneRows.map((lane) => ({
    name: `lane ${lane['level']} of ${lane['task_id']}`,
    task: lane['task'] as number,
    level: lane['level'] as number,
    parkedSkipped: lane['parked_skipped'] as boolean,
    kept: readTallies(lane),
    counted: tally(countedOf.get(lane['id'] as number) ?? []),
    purged: lane['purged'] as number,
    purgedRecords: lane['purged_records'] as number,
  }))
  return [...findings, ...auditCounters(audited, taskRows.map(readTask))]
}

function tally(rows: readonly Row[]): Tallies {
  const counted = noTallies()
  for (const row of rows) {
    counted.partitions[row['state'] as PartitionState] = row['partitions'] as number
    counted.records[row['state'] as PartitionState] = row['records'] as number
  }
  return counted
}
