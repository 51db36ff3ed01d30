import type { DatabaseSync } from 'node:sqlite'
import type { PartitionPage, PartitionQuery } from '../../handoff/shown/partition-record.ts'
import { PartitionWalk, type RowOfLane, type RowsToRead } from '../../handoff/shown/partition-walk.ts'
import { laneColumns, readTallies, readTask, taskColumns } from './entries.ts'
import { query } from './query.ts'

export class PartitionPages {
  readonly #sql: ReturnType<typeof prepare>

  constructor(db: DatabaseSync) {
    this.#sql = prepare(db)
  }

  get(query: PartitionQuery): PartitionPage | null {
    const row = this.#sql.task.get(query.taskId)
    if (row === undefined) return null
    const task = readTask(row)
    const walk = new PartitionWalk(task, query, true)
    for (let level = walk.nextLevel; level !== null; level = walk.nextLevel) {
      const lane = this.#sql.laneFrom.get(task.id, level)
      const read = walk.enter(lane && { level: lane['level'] as number, ...readTallies(lane) })
      if (lane !== undefined && read !== null) walk.take(this.#rows(lane['id'] as number, read))
    }
    return walk.page
  }

  #rows(lane: number, { after, limit, onlyParked }: RowsToRead): RowOfLane[] {
    const sql = onlyParked ? this.#sql.parked : this.#sql.rows
    return sql.all(lane, after, limit)
  }
}

function prepare(db: DatabaseSync) {
  const columns = `p.idx AS "index", p.spelling, t.name AS computeTableName, p.record_count AS recordCount, p.state,
    p.attempts, i.instance_id AS holder, p.due_at AS dueAt, p.reason, p.reported_records AS reportedRecords,
    p.called_back_at AS calledBackAt, p.settled_at AS settledAt`
  const joins = 'JOIN compute_table t ON t.id = p.compute_table LEFT JOIN instance i ON i.id = p.holder'
  return {
    task: db.prepare(`SELECT ${taskColumns} FROM task WHERE task_id = ?`),
    laneFrom: db.prepare(
      `SELECT ${laneColumns} FROM lane WHERE task = ? AND level >= ? ORDER BY level LIMIT 1`,
    ),
    rows: query<RowOfLane>(
      db,
      `SELECT ${columns} FROM partition p ${joins} WHERE p.lane = ? AND p.idx > ? ORDER BY p.idx LIMIT ?`,
    ),
    parked: query<RowOfLane>(
      db,
      `SELECT ${columns} FROM partition p ${joins}
       WHERE p.lane = ? AND p.state = 'parked' AND p.idx > ? ORDER BY p.idx LIMIT ?`,
    ),
  }
}
