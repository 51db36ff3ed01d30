import type { DatabaseSync } from 'node:sqlite'
import type { Recount, WaitingCount } from '../../handoff/disk.ts'
import type { StoredState } from '../../handoff/rules/life-cycle.ts'
import { noTallies } from '../../handoff/rules/task.ts'
import type { StoredKey, StoredTask } from '../../handoff/stored.ts'
import { laneHas, taskHas } from './schema.ts'
import { finder, keys, LIMIT, lanes, laneTables, query, tasks } from './tables.ts'

/**
 * Periodic queries: what can be forgotten or purged, and whether counters are right.
 */
export class DueRowReader {
  readonly #sql: ReturnType<typeof prepare>

  constructor(db: DatabaseSync) {
    this.#sql = prepare(db)
  }

  dueKeys(now: number, limit: number): StoredKey[] {
    return this.#sql.dueKeys.all(now, limit)
  }

  purgeable(finishedBefore: number): StoredTask | null {
    return this.#sql.purgeBegun.get() ?? this.#sql.oldestEnded.get(finishedBefore) ?? null
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
      const waiting: WaitingCount = { fresh: 0, returned: 0 }
      const tables = this.#sql.tablesOf.all(lane.id).map((row) => {
        const waitingHere: WaitingCount = { fresh: 0, returned: 0 }
        for (const { kind, rows } of this.#sql.countOfTable.all(lane.id, lane.tail, row.table))
          waitingHere[kind] += rows
        return { row, waiting: waitingHere }
      })
      for (const group of this.#sql.count.all(lane.id, lane.tail)) {
        counted[group.state] += group.rows
        records[group.state] += group.records
        if (group.state === 'ready') waiting[group.kind] += group.rows
      }
      return [{ lane, task, partitions: counted, records, waiting, tables }]
    })
  }
}

interface Group {
  readonly state: StoredState
  readonly kind: keyof WaitingCount
  readonly rows: number
  readonly records: number
}

/** In SQL: whether a ready partition came back. */
const KIND = `iif(due_at IS NULL, 'fresh', 'returned')`

function prepare(db: DatabaseSync) {
  return {
    dueKeys: finder(db, keys, `WHERE forget_at <= ? ORDER BY forget_at ${LIMIT}`),
    // Leases of a cancelled task run until they end. Its rows are needed until then, so other tasks go first.
    oldestEnded: finder(
      db,
      tasks,
      `WHERE ${taskHas.endedUnpurged} AND finished_at < ? AND leased_partitions + delayed_partitions = 0
         AND NOT ${taskHas.unfinishedWork} ORDER BY finished_at, id LIMIT 1`,
    ),
    // Tasks are purged one at a time, so a task whose purge has begun is among the last ones marked.
    purgeBegun: finder(
      db,
      tasks,
      `WHERE id IN (SELECT id FROM task WHERE purged_at IS NOT NULL ORDER BY purged_at DESC, id DESC LIMIT 100)
         AND finished_at IS NOT NULL AND leased_partitions + delayed_partitions = 0
         AND EXISTS (SELECT 1 FROM lane WHERE lane.task = task.id AND ${laneHas.rows}) LIMIT 1`,
    ),
    withReruns: finder(
      db,
      tasks,
      `WHERE ${taskHas.unfinishedWork} AND reruns IS NOT NULL ORDER BY id ${LIMIT}`,
    ),
    withStagedRows: finder(db, tasks, `WHERE ${taskHas.unfinishedWork} AND staging IS NOT NULL ORDER BY id`),
    lanes: finder(db, lanes, ''),
    tasks: finder(db, tasks, ''),
    tablesOf: finder(db, laneTables, 'WHERE lane = ?'),
    countOfTable: query<Pick<Group, 'kind' | 'rows'>>(
      db,
      `SELECT ${KIND} AS kind, count(*) AS rows FROM partition
       WHERE lane = ? AND id <= ? AND compute_table = ? AND state = 'ready' GROUP BY kind`,
    ),
    count: query<Group>(
      db,
      `SELECT state, ${KIND} AS kind, count(*) AS rows, sum(record_count) AS records
       FROM partition WHERE lane = ? AND id <= ? GROUP BY state, kind`,
    ),
  }
}
