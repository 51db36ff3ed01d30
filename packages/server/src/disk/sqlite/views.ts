import type { DatabaseSync } from 'node:sqlite'
import { MAX_LISTED_GAPS, MAX_LISTED_LEVELS, MAX_LISTED_MISMATCHES, MAX_LISTED_TABLES } from '@baton/protocol'
import type {
  LaneDetail,
  LeasedOrDelayedRow,
  TaskDetail,
  TaskPageQuery,
  TaskSummary,
  TaskWithTables,
} from '../../handoff/disk.ts'
import type { IndexRange } from '../../handoff/rules/index-runs.ts'
import type { StoredLane, StoredTask } from '../../handoff/stored.ts'
import { PACE_SECONDS_KEPT } from '../../handoff/views/eta.ts'
import type { PaceSecond, TaskDetails } from '../../handoff/views/queries.ts'
import { partitionIs, taskHas } from './schema.ts'
import { arrayQuery, finder, LIMIT, lanes, query, tasks } from './tables.ts'

/** Task views: they read counters and short lists, never all partitions. */
export class Views {
  readonly #sql: ReturnType<typeof prepare>

  constructor(db: DatabaseSync) {
    this.#sql = prepare(db)
  }

  detail(taskId: string): TaskDetail | null {
    const task = this.#sql.taskNamed.get(taskId)
    if (task === undefined) return null
    const [laneCount] = this.#sql.laneCount.get(task.id) ?? [0]
    return {
      ...this.#summary(task),
      lanes: this.#sql.lanes.all(task.id, MAX_LISTED_LEVELS).map((lane) => this.#lane(lane)),
      laneCount,
      computeTables: this.#sql.tables.all(task.id, MAX_LISTED_TABLES).map(([name]) => name),
      mismatches:
        task.mismatched === 0 ? [] : plain(this.#sql.mismatches.all(task.id, MAX_LISTED_MISMATCHES)),
    }
  }

  page({ before, limit, which }: TaskPageQuery): TaskSummary[] {
    const found =
      which === 'all'
        ? this.#sql.newest.all(before, limit)
        : which === 'parked'
          ? this.#sql.newestWithParked.all(before, limit)
          : this.#sql.newestIn.all(which.state, before, limit)
    return found.map((task) => this.#summary(task))
  }

  summaries(ids: readonly number[]): TaskSummary[] {
    const found = ids.flatMap((id) => this.#sql.task.get(id) ?? [])
    return found.map((task) => this.#summary(task))
  }

  withTables(ids: readonly number[], tables: readonly string[]): TaskWithTables[] {
    return ids.flatMap((task) => {
      const found = tables.filter((name) => this.#sql.hasTable.get(task, name) !== undefined).length
      if (found === 0) return []
      // Reading one more name than were found shows whether there are others.
      return [{ task, hasOthers: this.#sql.tables.all(task, found + 1).length > found }]
    })
  }

  doneRows(task: number): number {
    return this.#sql.doneRows.get(task)?.[0] ?? 0
  }

  leasedOrDelayed(limit: number): LeasedOrDelayedRow[] {
    return plain([...this.#sql.leased.all(limit), ...this.#sql.delayed.all(limit)])
  }

  #summary(task: StoredTask): TaskSummary {
    const openLane = task.openLevel === null ? undefined : this.#sql.lane.get(task.id, task.openLevel)
    return {
      task,
      openLane: openLane ?? null,
      pace: plain(this.#sql.pace.all(task.id, PACE_SECONDS_KEPT)),
    }
  }

  #lane(lane: StoredLane): LaneDetail {
    const [lastIndex] = this.#sql.lastIndex.get(lane.id) ?? [0]
    return { lane, ranges: plain(this.#sql.ranges.all(lane.id, MAX_LISTED_GAPS + 1)), lastIndex }
  }
}

/** The driver's rows have no prototype and are slow to access. */
const plain = <Row extends object>(found: readonly Row[]): Row[] => found.map((row) => ({ ...row }))

function prepare(db: DatabaseSync) {
  // Reads in the order of a partial index, so the cost does not depend on the number of other rows.
  const endingFirst = (state: 'leased' | 'delayed') =>
    query<LeasedOrDelayedRow>(
      db,
      `SELECT lane.task AS task, lane.level AS level, idx AS "index", spelling, partition.state AS state, holder,
         ifnull(leased_at, 0) AS leasedAt, due_at AS dueAt, record_count AS recordCount
       FROM partition INDEXED BY partition_${state} CROSS JOIN lane ON lane.id = partition.lane
       WHERE partition.state = '${state}' AND due_at IS NOT NULL ORDER BY due_at, partition.id ${LIMIT}`,
    )
  return {
    leased: endingFirst('leased'),
    delayed: endingFirst('delayed'),
    task: finder(db, tasks, 'WHERE id = ?'),
    taskNamed: finder(db, tasks, 'WHERE task_id = ?'),
    newest: finder(db, tasks, `WHERE id < ? ORDER BY id DESC ${LIMIT}`),
    newestIn: finder(db, tasks, `WHERE state = ? AND id < ? ORDER BY id DESC ${LIMIT}`),
    newestWithParked: finder(
      db,
      tasks,
      `INDEXED BY task_with_parked WHERE ${taskHas.parked} AND id < ? ORDER BY id DESC ${LIMIT}`,
    ),
    lane: finder(db, lanes, 'WHERE task = ? AND level = ?'),
    lanes: finder(db, lanes, `WHERE task = ? ORDER BY level ${LIMIT}`),
    doneRows: arrayQuery<[number | null]>(
      db,
      'SELECT sum(max(0, done_partitions - purged)) FROM lane WHERE task = ?',
    ),
    laneCount: arrayQuery<[number]>(db, 'SELECT count(*) FROM lane WHERE task = ?'),
    ranges: query<IndexRange>(
      db,
      `SELECT first, last FROM lane_range WHERE lane = ? ORDER BY first ${LIMIT}`,
    ),
    lastIndex: arrayQuery<[number]>(
      db,
      'SELECT last FROM lane_range WHERE lane = ? ORDER BY first DESC LIMIT 1',
    ),
    tables: arrayQuery<[string]>(
      db,
      `SELECT name FROM task_table INDEXED BY task_table_order WHERE task = ? ORDER BY position ${LIMIT}`,
    ),
    hasTable: arrayQuery<[number]>(db, 'SELECT 1 FROM task_table WHERE task = ? AND name = ?'),
    mismatches: query<TaskDetails['mismatches'][number]>(
      db,
      `SELECT lane.level AS level, idx AS "index", spelling, record_count AS declared, reported_records AS reported
       FROM lane CROSS JOIN partition INDEXED BY partition_mismatch
         ON partition.lane = lane.id AND ${partitionIs.mismatch}
       WHERE lane.task = ? ORDER BY lane.level, partition.idx ${LIMIT}`,
    ),
    pace: query<PaceSecond>(
      db,
      `SELECT second, partitions, records FROM pace WHERE task = ? ORDER BY second DESC ${LIMIT}`,
    ),
  }
}
