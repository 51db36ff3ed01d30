import type { PartitionState } from '../../../handoff/life-cycle.ts'
import { storedStates } from '../../../handoff/stored-states.ts'
import type { TaskEntry } from '../../../handoff/task-entry.ts'
import {
  isLaneOpen,
  type PartitionPage,
  type PartitionQuery,
  type PartitionRecord,
} from '../../../handoff/task-record.ts'
import { ROWS_AT_A_TIME, ROWS_READ } from '../../../handoff/view-limits.ts'
import { laneColumns, readTallies, readTask } from '../rows/entries.ts'
import { statement } from '../session/statement.ts'
import type { Transaction } from '../session/transaction.ts'

type Position = NonNullable<PartitionQuery['after']>

const task = statement('task-of-page', 'SELECT * FROM baton.task WHERE task_id = $1')
const laneFrom = statement(
  'lane-of-page',
  `SELECT ${laneColumns} FROM baton.lane WHERE task = $1 AND level >= $2 ORDER BY level LIMIT 1`,
)
const columns = `p.level, p.idx AS index, p.spelling, t.name AS "computeTableName", p.record_count AS "recordCount",
  p.state, p.attempts, i.instance_id AS holder, CASE WHEN p.state IN ('leased', 'delayed') THEN p.due_at END AS "dueAt", p.reason, p.reported_records AS "reportedRecords",
  p.called_back_at AS "calledBackAt", p.settled_at AS "settledAt"`
const joins =
  'JOIN baton.compute_table t ON t.id = p.compute_table LEFT JOIN baton.instance i ON i.id = p.holder'
const rowsOfLane = statement(
  'rows-of-page',
  `SELECT ${columns} FROM baton.partition p ${joins} WHERE p.lane = $1 AND p.idx > $2 ORDER BY p.idx LIMIT $3`,
)
const parkedOfLane = statement(
  'parked-of-page',
  `SELECT ${columns} FROM baton.partition p ${joins}
   WHERE p.lane = $1 AND p.parked AND p.idx > $2 ORDER BY p.idx LIMIT $3`,
)

/** Pages through the partitions of a task by level and index, at the same cost for any size. */
export async function partitionPage(tx: Transaction, query: PartitionQuery): Promise<PartitionPage | null> {
  const [row] = await tx.run(task, [query.taskId])
  if (row === undefined) return null
  const facts = readTask(row)
  const partitions: PartitionRecord[] = []
  let at: Position | null = query.after
  let budget = ROWS_READ
  while (partitions.length < query.limit && budget > 0) {
    const lane = await nextLane(tx, facts, query.level, at)
    if (lane === undefined) return { facts, partitions, next: null }
    const after = lane.level === at?.level ? at.index : -1
    const wanted = storedStates(facts, lane.level, query.state)
    if (wanted.every((state) => lane.partitions[state] === 0)) {
      budget -= 1
      at = { level: lane.level, index: Number.MAX_SAFE_INTEGER }
      continue
    }
    const limit = Math.min(budget, query.state === null ? query.limit - partitions.length : ROWS_AT_A_TIME)
    const rows = await readRows(tx, lane.id, wanted, after, limit)
    budget -= rows.length + 1
    const last = rows.at(-1)?.index ?? Number.MAX_SAFE_INTEGER
    let stop: Position = { level: lane.level, index: rows.length < limit ? Number.MAX_SAFE_INTEGER : last }
    const isOpen = isLaneOpen(facts, lane.level)
    for (const record of rows) {
      if (!wanted.includes(record.state)) continue
      // The row of one that waits does not say whether it is in the window; nor is anybody shown that.
      partitions.push(record.state === 'held' && isOpen ? { ...record, state: 'ready' } : record)
      if (partitions.length < query.limit) continue
      stop = { level: lane.level, index: record.index }
      break
    }
    at = stop
  }
  return { facts, partitions, next: at }
}

async function nextLane(tx: Transaction, facts: TaskEntry, onlyLevel: number | null, at: Position | null) {
  const from = Math.max(
    onlyLevel ?? 0,
    at === null ? 0 : at.index === Number.MAX_SAFE_INTEGER ? at.level + 1 : at.level,
  )
  const [row] = await tx.run(laneFrom, [facts.id, from])
  if (row === undefined || (onlyLevel !== null && row['level'] !== onlyLevel)) return undefined
  return { id: row['id'] as number, level: row['level'] as number, ...readTallies(row) }
}

async function readRows(
  tx: Transaction,
  lane: number,
  wanted: readonly PartitionState[],
  after: number,
  limit: number,
): Promise<PartitionRecord[]> {
  const isParked = wanted.length === 1 && wanted[0] === 'parked'
  return (await tx.run(isParked ? parkedOfLane : rowsOfLane, [
    lane,
    after,
    limit,
  ])) as unknown as PartitionRecord[]
}
