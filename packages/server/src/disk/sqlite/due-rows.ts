import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { earlier } from '../../handoff/clock.ts'
import type { Due, Recount } from '../../handoff/disk.ts'
import type { Line, StoredPartition } from '../../handoff/partition.ts'
import type { StoredState } from '../../handoff/rules/life-cycle.ts'
import { noTallies } from '../../handoff/rules/task.ts'
import type { StoredKey, StoredTask } from '../../handoff/stored.ts'
import type { Loader } from './load.ts'
import { laneHas, taskHas } from './schema.ts'
import { type Finder, finder, keys, LIMIT, lanes, laneTables, partitions, query, tasks } from './tables.ts'

/**
 * Periodic queries: what is due, what can be purged, and whether counters are right.
 */
export class DueRowReader {
  readonly #sql: ReturnType<typeof prepare>
  readonly #loader: Loader

  constructor(db: DatabaseSync, loader: Loader) {
    this.#sql = prepare(db)
    this.#loader = loader
  }

  due(now: number, limit: number, leases: boolean): Due {
    const leased = leases ? dueOf(this.#sql.leased, now, limit) : none
    const delayed = dueOf(this.#sql.delayed, now, limit)
    return {
      ...this.#loader.withParents([...leased.rows, ...delayed.rows]),
      leased: leased.rows.map(({ id }) => id),
      delayed: delayed.rows.map(({ id }) => id),
      nextDueAt: earlier(leased.nextDueAt, delayed.nextDueAt),
    }
  }

  dueKeys(now: number, limit: number): StoredKey[] {
    return this.#sql.dueKeys.all(now, limit)
  }

  purgeable(finishedBefore: number): StoredTask | null {
    for (;;) {
      const begun = this.#sql.purging.get()
      if (begun === undefined) return this.#sql.oldestEnded.get(finishedBefore) ?? null
      const task = this.#sql.withRowsToPurge.get(begun.task)
      if (task !== undefined) return task
      // All rows are gone, or a call-back has reopened the task.
      this.#sql.endPurge.run(begun.task)
    }
  }

  tasksWithReruns(limit: number): StoredTask[] {
    return this.#sql.withReruns.all(limit)
  }

  tasksWithStagedRows(): StoredTask[] {
    return this.#sql.withStagedRows.all()
  }

  recount(): Recount[] {
    const owners = new Map(this.#sql.tasks.all().map((task) => [task.id, task]))
    return this.#sql.lanes.all().flatMap((lane) => {
      const task = owners.get(lane.task)
      if (task === undefined) return []
      const { partitions: counted, records } = noTallies()
      const waiting: Record<Line, number> = { fresh: 0, released: 0, retry: 0 }
      const tables = this.#sql.tablesOf.all(lane.id).map((row) => {
        const waitingHere: Record<Line, number> = { fresh: 0, released: 0, retry: 0 }
        for (const { line, rows } of this.#sql.countOfTable.all(lane.id, lane.tail, row.table))
          waitingHere[line] += rows
        return { row, waiting: waitingHere }
      })
      for (const group of this.#sql.count.all(lane.id, lane.tail)) {
        counted[group.state] += group.rows
        records[group.state] += group.records
        if (group.state === 'ready') waiting[group.line] += group.rows
      }
      return [{ lane, task, partitions: counted, records, waiting, tables }]
    })
  }
}

interface DueStatements {
  readonly due: Finder<StoredPartition>
  readonly next: StatementSync
}

interface DueRows {
  readonly rows: StoredPartition[]
  readonly nextDueAt: number | null
}

const none: DueRows = { rows: [], nextDueAt: null }

/** Reads one row more than the limit, to know when the next one is due. */
function dueOf({ due, next }: DueStatements, now: number, limit: number): DueRows {
  const rows = due.all(now, limit + 1)
  const nextDueAt = rows[limit]?.dueAt ?? (next.get(now)?.['due_at'] as number | undefined) ?? null
  return { rows: rows.slice(0, limit), nextDueAt }
}

interface Group {
  readonly state: StoredState
  readonly line: Line
  readonly rows: number
  readonly records: number
}

function prepare(db: DatabaseSync) {
  const dueStatements = (state: string): DueStatements => ({
    due: finder(db, partitions, `WHERE state = '${state}' AND due_at <= ? ORDER BY due_at, id ${LIMIT}`),
    next: db.prepare(
      `SELECT due_at FROM partition WHERE state = '${state}' AND due_at > ? ORDER BY due_at LIMIT 1`,
    ),
  })
  return {
    leased: dueStatements('leased'),
    delayed: dueStatements('delayed'),
    dueKeys: finder(db, keys, `WHERE forget_at <= ? ORDER BY forget_at ${LIMIT}`),
    // Leases of a cancelled task run until they end. Its rows are needed until then, so other tasks go first.
    oldestEnded: finder(
      db,
      tasks,
      `WHERE ${taskHas.endedUnpurged} AND finished_at < ? AND leased_partitions + delayed_partitions = 0
         AND NOT ${taskHas.unfinishedWork} ORDER BY finished_at LIMIT 1`,
    ),
    purging: query<{ task: number }>(db, 'SELECT task FROM purging LIMIT 1'),
    withRowsToPurge: finder(
      db,
      tasks,
      `WHERE id = ? AND purged_at IS NOT NULL
         AND EXISTS (SELECT 1 FROM lane WHERE lane.task = task.id AND ${laneHas.rows})`,
    ),
    endPurge: db.prepare('DELETE FROM purging WHERE task = ?'),
    withReruns: finder(
      db,
      tasks,
      `WHERE ${taskHas.unfinishedWork} AND reruns IS NOT NULL ORDER BY id ${LIMIT}`,
    ),
    withStagedRows: finder(db, tasks, `WHERE ${taskHas.unfinishedWork} AND staging IS NOT NULL ORDER BY id`),
    lanes: finder(db, lanes, ''),
    tasks: finder(db, tasks, ''),
    tablesOf: finder(db, laneTables, 'WHERE lane = ?'),
    countOfTable: query<Pick<Group, 'line' | 'rows'>>(
      db,
      `SELECT line, count(*) AS rows FROM partition
       WHERE lane = ? AND id <= ? AND compute_table = ? AND state = 'ready' GROUP BY line`,
    ),
    count: query<Group>(
      db,
      `SELECT state, line, count(*) AS rows, sum(record_count) AS records
       FROM partition WHERE lane = ? AND id <= ? GROUP BY state, line`,
    ),
  }
}
