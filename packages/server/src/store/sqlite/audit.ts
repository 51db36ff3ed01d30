import type { DatabaseSync } from 'node:sqlite'
import { auditCounters } from '../../handoff/rules/counter-audit.ts'
import type { PartitionState } from '../../handoff/rules/life-cycle.ts'
import { noTallies } from '../../handoff/rules/tally.ts'
import { auditOrder } from './audit-order.ts'
import { laneColumns, readTallies, readTask, taskColumns } from './entries.ts'

/** Recounts every partition and says where a counter, a state or an index disagrees with the rows. */
export function audit(db: DatabaseSync): string[] {
  const lanes = db
    .prepare(
      `SELECT ${laneColumns}, (SELECT task_id FROM task WHERE task.id = lane.task) AS task_id FROM lane`,
    )
    .all()
  const recount = db.prepare(
    'SELECT state, count(*) AS n, sum(record_count) AS records FROM partition WHERE lane = ? GROUP BY state',
  )
  const audited = lanes.map((lane) => {
    const counted = noTallies()
    for (const row of recount.all(lane['id'] as number)) {
      counted.partitions[row['state'] as PartitionState] = row['n'] as number
      counted.records[row['state'] as PartitionState] = row['records'] as number
    }
    return {
      name: `lane ${lane['level']} of ${lane['task_id']}`,
      task: lane['task'] as number,
      level: lane['level'] as number,
      parkedSkipped: lane['parked_skipped'] === 1,
      kept: readTallies(lane),
      counted,
      purged: lane['purged'] as number,
      purgedRecords: lane['purged_records'] as number,
    }
  })
  const tasks = db.prepare(`SELECT ${taskColumns} FROM task`).all().map(readTask)
  return [...integrityFindings(db), ...auditOrder(db), ...auditCounters(audited, tasks)]
}

function integrityFindings(db: DatabaseSync): string[] {
  const rows = db.prepare('PRAGMA integrity_check').all()
  return rows.map((row) => String(row['integrity_check'])).filter((finding) => finding !== 'ok')
}
