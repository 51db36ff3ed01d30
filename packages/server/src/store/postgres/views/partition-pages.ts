import { isLaneOpen } from '../../../handoff/rules/lane-rules.ts'
import type { PartitionPage, PartitionQuery } from '../../../handoff/shown/partition-record.ts'
import { PartitionWalk, type RowOfLane } from '../../../handoff/shown/partition-walk.ts'
import { laneColumns, readTallies, readTask, taskColumns } from '../rows/entries.ts'
import { statement } from '../session/statement.ts'
import type { Transaction } from '../session/transaction.ts'

const task = statement('task-of-page', `SELECT ${taskColumns('t')} FROM baton.task t WHERE task_id = $1`)
const laneFrom = statement(
  'lane-of-page',
  `SELECT ${laneColumns} FROM baton.lane WHERE task = $1 AND level >= $2 ORDER BY level LIMIT 1`,
)
const columns = `p.idx AS index, p.spelling, t.name AS "computeTableName", p.record_count AS "recordCount",
  p.state, p.attempts, i.instance_id AS holder, CASE WHEN p.state IN ('leased', 'delayed') THEN p.due_at END AS "dueAt", p.reason, p.reported_records AS "reportedRecords",
  p.called_back_at AS "calledBackAt", p.settled_at AS "settledAt"`
const joins =
  'JOIN baton.compute_table t ON t.id = p.compute_table LEFT JOIN baton.instance i ON i.id = p.holder'
const rowsOfLane = statement<RowOfLane>(
  'rows-of-page',
  `SELECT ${columns} FROM baton.partition p ${joins} WHERE p.lane = $1 AND p.idx > $2 ORDER BY p.idx LIMIT $3`,
)
const parkedOfLane = statement<RowOfLane>(
  'parked-of-page',
  `SELECT ${columns} FROM baton.partition p ${joins}
   WHERE p.lane = $1 AND p.parked AND p.idx > $2 ORDER BY p.idx LIMIT $3`,
)

export async function partitionPage(tx: Transaction, query: PartitionQuery): Promise<PartitionPage | null> {
  const [row] = await tx.run(task, [query.taskId])
  if (row === undefined) return null
  const facts = readTask(row)
  // Others may have committed something that is not folded into the tallies yet.
  const walk = new PartitionWalk(facts, query, false)
  for (let level = walk.nextLevel; level !== null; level = walk.nextLevel) {
    const [lane] = await tx.run(laneFrom, [facts.id, level])
    const at = lane && { level: lane['level'] as number, ...readTallies(lane) }
    const read = walk.enter(at)
    if (lane === undefined || at === undefined || read === null) continue
    const { after, limit, onlyParked } = read
    const rows = await tx.run(onlyParked ? parkedOfLane : rowsOfLane, [lane['id'], after, limit])
    walk.take(isLaneOpen(facts, at.level) ? rows.map(asReady) : rows)
  }
  return walk.page
}

/** The row of one that waits does not say whether it is in the window; nor is anybody shown that. */
const asReady = (row: RowOfLane): RowOfLane => (row.state === 'held' ? { ...row, state: 'ready' } : row)
