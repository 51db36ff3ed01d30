import type { DatabaseSync } from 'node:sqlite'
import type { ParkedByFailure, Recount, WaitingCount } from '../../handoff/disk.ts'
import type { StoredState } from '../../handoff/rules/life-cycle.ts'
import { noTallies } from '../../handoff/rules/task.ts'
import { finder, lanes, laneTables, query, tasks } from './tables.ts'

/** Counts all rows, to compare them with the counters. */
export class Recounts {
  readonly #sql: ReturnType<typeof prepare>

  constructor(db: DatabaseSync) {
    this.#sql = prepare(db)
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
      const parked: ParkedByFailure = new Map()
      for (const group of this.#sql.count.all(lane.id, lane.tail)) {
        counted[group.state] += group.rows
        records[group.state] += group.records
        if (group.state === 'ready') waiting[group.kind] += group.rows
        if (group.state === 'parked')
          parked.set(group.parkedAs, { partitions: group.rows, records: group.records })
      }
      return [{ lane, task, partitions: counted, records, waiting, parked, tables }]
    })
  }
}

interface Group {
  readonly state: StoredState
  readonly kind: keyof WaitingCount
  /** Of those that are parked. */
  readonly parkedAs: string | null
  readonly rows: number
  readonly records: number
}

/** In SQL: whether a ready partition came back. */
const KIND = `iif(due_at IS NULL, 'fresh', 'returned')`
const PARKED_AS = `iif(state = 'parked', failure, NULL)`

function prepare(db: DatabaseSync) {
  return {
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
      `SELECT state, ${KIND} AS kind, ${PARKED_AS} AS parkedAs, count(*) AS rows, sum(record_count) AS records
       FROM partition WHERE lane = ? AND id <= ? GROUP BY state, kind, parkedAs`,
    ),
  }
}
