import type { DatabaseSync } from 'node:sqlite'
import type { PartitionState } from '../../handoff/life-cycle.ts'
import { storedStates } from '../../handoff/stored-states.ts'
import type { TaskEntry } from '../../handoff/task-entry.ts'
import type { PartitionPage, PartitionQuery, PartitionRecord } from '../../handoff/task-record.ts'
import { ROWS_AT_A_TIME, ROWS_READ } from '../../handoff/view-limits.ts'
import { laneColumns, readTallies, readTask } from './entries.ts'

type Position = NonNullable<PartitionQuery['after']>

/** Pages through the partitions of a task by level and index, at the same cost for any size. */
export class PartitionPages {
  readonly #sql: ReturnType<typeof prepare>

  constructor(db: DatabaseSync) {
    this.#sql = prepare(db)
  }

  get(query: PartitionQuery): PartitionPage | null {
    const row = this.#sql.task.get(query.taskId)
    if (row === undefined) return null
    const facts = readTask(row)
    const partitions: PartitionRecord[] = []
    let at: Position | null = query.after
    let budget = ROWS_READ
    while (partitions.length < query.limit && budget > 0) {
      const lane = this.#nextLane(facts, query.level, at)
      if (lane === undefined) return { facts, partitions, next: null }
      const after = lane.level === at?.level ? at.index : -1
      const wanted = storedStates(facts, lane.level, query.state)
      if (wanted.every((state) => lane.partitions[state] === 0)) {
        budget -= 1
        at = { level: lane.level, index: Number.MAX_SAFE_INTEGER }
        continue
      }
      const limit = Math.min(budget, query.state === null ? query.limit - partitions.length : ROWS_AT_A_TIME)
      const rows = this.#rows(lane.id, wanted, after, limit)
      budget -= rows.length + 1
      let stop: Position = {
        level: lane.level,
        index: rows.length < limit ? Number.MAX_SAFE_INTEGER : lastIndex(rows),
      }
      for (const record of rows) {
        if (!wanted.includes(record.state)) continue
        partitions.push({ ...record, level: lane.level })
        if (partitions.length < query.limit) continue
        stop = { level: lane.level, index: record.index }
        break
      }
      at = stop
    }
    return { facts, partitions, next: at }
  }

  #nextLane(task: TaskEntry, onlyLevel: number | null, at: Position | null) {
    const from = Math.max(
      onlyLevel ?? 0,
      at === null ? 0 : at.index === Number.MAX_SAFE_INTEGER ? at.level + 1 : at.level,
    )
    const row = this.#sql.laneFrom.get(task.id, from)
    if (row === undefined || (onlyLevel !== null && row['level'] !== onlyLevel)) return undefined
    return { id: row['id'] as number, level: row['level'] as number, ...readTallies(row) }
  }

  #rows(lane: number, wanted: readonly PartitionState[], after: number, limit: number): PartitionRecord[] {
    const sql = wanted.length === 1 && wanted[0] === 'parked' ? this.#sql.parked : this.#sql.rows
    return sql.all(lane, after, limit) as unknown as PartitionRecord[]
  }
}

function lastIndex(rows: readonly PartitionRecord[]): number {
  return rows.at(-1)?.index ?? Number.MAX_SAFE_INTEGER
}

function prepare(db: DatabaseSync) {
  const columns = `p.idx AS "index", p.spelling, t.name AS computeTableName, p.record_count AS recordCount, p.state,
    p.attempts, i.instance_id AS holder, p.due_at AS dueAt, p.reason, p.reported_records AS reportedRecords,
    p.called_back_at AS calledBackAt, p.settled_at AS settledAt`
  const joins = 'JOIN compute_table t ON t.id = p.compute_table LEFT JOIN instance i ON i.id = p.holder'
  return {
    task: db.prepare('SELECT * FROM task WHERE task_id = ?'),
    laneFrom: db.prepare(
      `SELECT ${laneColumns} FROM lane WHERE task = ? AND level >= ? ORDER BY level LIMIT 1`,
    ),
    rows: db.prepare(
      `SELECT ${columns} FROM partition p ${joins} WHERE p.lane = ? AND p.idx > ? ORDER BY p.idx LIMIT ?`,
    ),
    parked: db.prepare(
      `SELECT ${columns} FROM partition p ${joins}
       WHERE p.lane = ? AND p.state = 'parked' AND p.idx > ? ORDER BY p.idx LIMIT ?`,
    ),
  }
}
