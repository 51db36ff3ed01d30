import type { DatabaseSync } from 'node:sqlite'
import { MAX_LISTED_GAPS, MAX_LISTED_LEVELS, MAX_LISTED_MISMATCHES, MAX_LISTED_TABLES } from '@baton/protocol'
import { gapsBetween, type IndexRange } from '../../handoff/rules/index-runs.ts'
import type { TaskEntry } from '../../handoff/rules/task-entry.ts'
import { PACE_SECONDS_KEPT } from '../../handoff/shown/eta.ts'
import type {
  LaneFacts,
  PaceSecond,
  TaskPage,
  TaskQuery,
  TaskRecord,
  TaskRow,
} from '../../handoff/shown/task-record.ts'
import { TASKS_SEARCHED, tasksReadAtATime } from '../../handoff/shown/view-limits.ts'
import { laneColumns, readTallies, readTask, taskColumns } from './entries.ts'
import { query } from './query.ts'

/** Tasks for those who look: counters and short lists, never a walk over partitions. */
export class TaskRows {
  readonly #sql: ReturnType<typeof prepare>

  constructor(db: DatabaseSync) {
    this.#sql = prepare(db)
  }

  get(taskId: string, now: number): TaskRecord | null {
    const row = this.#sql.task.get(taskId)
    if (row === undefined) return null
    const task = readTask(row)
    const lanes = this.#sql.lanes.all(task.id, MAX_LISTED_LEVELS).map((lane) => this.#lane(lane))
    return {
      ...this.#row(task),
      now,
      lanes,
      lanesOmitted: (this.#sql.laneCount.get(task.id)?.['lanes'] as number) - lanes.length,
      computeTables: this.#sql.tables.all(task.id, MAX_LISTED_TABLES).map(({ name }) => name as string),
      mismatches: task.mismatched === 0 ? [] : this.#sql.mismatches.all(task.id, MAX_LISTED_MISMATCHES),
    }
  }

  byId(id: number): TaskRow | undefined {
    const row = this.#sql.taskById.get(id)
    return row === undefined ? undefined : this.#row(readTask(row))
  }

  list(query: TaskQuery, now: number): TaskPage {
    const { state, parked, before, limit, search } = query
    const { newest, newestIn, newestWithParked } = this.#sql
    const tasks: TaskRow[] = []
    const atATime = tasksReadAtATime(query)
    let position = before ?? Number.MAX_SAFE_INTEGER
    let read = 0
    while (read < TASKS_SEARCHED) {
      const rows = parked
        ? newestWithParked.all(position, atATime)
        : state === null
          ? newest.all(position, atATime)
          : newestIn.all(state, position, atATime)
      for (const row of rows) {
        if (tasks.length === limit) return { now, tasks, next: position }
        position = row['id'] as number
        const isInState = state === null || row['state'] === state
        if (isInState && (search === null || (row['task_id'] as string).includes(search)))
          tasks.push(this.#row(readTask(row)))
      }
      if (rows.length < atATime) return { now, tasks, next: null }
      read += rows.length
    }
    return { now, tasks, next: position }
  }

  #row(task: TaskEntry): TaskRow {
    const openLane = task.openLevel === null ? undefined : this.#sql.lane.get(task.id, task.openLevel)
    return {
      facts: task,
      openLane:
        openLane === undefined
          ? null
          : { parkedSkipped: openLane['parked_skipped'] === 1, ...readTallies(openLane) },
      pace: this.#sql.pace.all(task.id, PACE_SECONDS_KEPT),
    }
  }

  #lane(row: Record<string, unknown>): LaneFacts {
    const id = row['id'] as number
    const ranges = this.#sql.ranges.all(id, MAX_LISTED_GAPS + 1)
    return {
      level: row['level'] as number,
      parkedSkipped: row['parked_skipped'] === 1,
      ...readTallies(row),
      firstIndex: ranges[0]?.first ?? 0,
      lastIndex: (this.#sql.lastRange.get(id)?.['last'] as number | undefined) ?? 0,
      gaps: gapsBetween(ranges),
    }
  }
}

function prepare(db: DatabaseSync) {
  return {
    task: db.prepare(`SELECT ${taskColumns} FROM task WHERE task_id = ?`),
    taskById: db.prepare(`SELECT ${taskColumns} FROM task WHERE id = ?`),
    newest: db.prepare(`SELECT ${taskColumns} FROM task WHERE id < ? ORDER BY id DESC LIMIT ?`),
    newestIn: db.prepare(
      `SELECT ${taskColumns} FROM task WHERE state = ? AND id < ? ORDER BY id DESC LIMIT ?`,
    ),
    newestWithParked: db.prepare(
      `SELECT ${taskColumns} FROM task INDEXED BY task_with_parked
       WHERE parked_partitions > 0 AND cancelled = 0 AND id < ? ORDER BY id DESC LIMIT ?`,
    ),
    lane: db.prepare(`SELECT ${laneColumns} FROM lane WHERE task = ? AND level = ?`),
    lanes: db.prepare(`SELECT ${laneColumns} FROM lane WHERE task = ? ORDER BY level LIMIT ?`),
    laneCount: db.prepare('SELECT count(*) AS lanes FROM lane WHERE task = ?'),
    ranges: query<IndexRange>(db, 'SELECT first, last FROM lane_range WHERE lane = ? ORDER BY first LIMIT ?'),
    lastRange: db.prepare('SELECT last FROM lane_range WHERE lane = ? ORDER BY first DESC LIMIT 1'),
    tables: db.prepare(
      `SELECT name FROM task_compute_table JOIN compute_table ON compute_table.id = task_compute_table.compute_table
       WHERE task_compute_table.task = ? ORDER BY task_compute_table.compute_table LIMIT ?`,
    ),
    mismatches: query<TaskRecord['mismatches'][number]>(
      db,
      `SELECT lane.level AS level, idx AS "index", spelling, record_count AS declared,
         partition.reported_records AS reported
       FROM lane CROSS JOIN partition INDEXED BY partition_mismatch ON partition.lane = lane.id
         AND partition.reported_records IS NOT NULL AND partition.reported_records <> partition.record_count
       WHERE lane.task = ? ORDER BY lane.level, partition.idx LIMIT ?`,
    ),
    pace: query<PaceSecond>(
      db,
      'SELECT second, partitions, records FROM pace WHERE task = ? ORDER BY second DESC LIMIT ?',
    ),
  }
}
