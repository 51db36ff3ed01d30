import type { DatabaseSync } from 'node:sqlite'
import type { LeasedOrDelayedRow, TaskWithTables } from '../../handoff/disk.ts'
import { LIMIT } from '../reads.ts'
import { arrayQuery, query } from './tables.ts'

/** Task views: they read counters and short lists, never all partitions. */
export class Views {
  readonly #sql: ReturnType<typeof prepare>

  constructor(db: DatabaseSync) {
    this.#sql = prepare(db)
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
}

/** The driver's rows have no prototype and are slow to access. */
const plain = <Row extends object>(found: readonly Row[]): Row[] => found.map((row) => ({ ...row }))

function prepare(db: DatabaseSync) {
  // Reads in the order of a partial index, so the cost does not depend on the number of other rows.
  const endingFirst = (state: 'leased' | 'delayed') =>
    query<LeasedOrDelayedRow>(
      db,
      `SELECT partition.id AS id, lane.task AS task, lane.level AS level, idx AS "index", spelling, partition.state AS state, holder,
         ifnull(leased_at, 0) AS leasedAt, due_at AS dueAt, record_count AS recordCount
       FROM partition INDEXED BY partition_${state} CROSS JOIN lane ON lane.id = partition.lane
       WHERE partition.state = '${state}' AND due_at IS NOT NULL ORDER BY due_at, partition.id ${LIMIT}`,
    )
  return {
    leased: endingFirst('leased'),
    delayed: endingFirst('delayed'),
    doneRows: arrayQuery<[number | null]>(
      db,
      'SELECT sum(max(0, done_partitions - purged)) FROM lane WHERE task = ?',
    ),
    tables: arrayQuery<[string]>(
      db,
      `SELECT name FROM task_table INDEXED BY task_table_order WHERE task = ? ORDER BY position ${LIMIT}`,
    ),
    hasTable: arrayQuery<[number]>(db, 'SELECT 1 FROM task_table WHERE task = ? AND name = ?'),
  }
}
