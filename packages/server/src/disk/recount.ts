import type { Disk, ParkedByFailure, Recount, WaitingCount } from '../handoff/disk.ts'
import type { PartitionState } from '../handoff/rules/life-cycle.ts'
import { noTallies } from '../handoff/rules/task.ts'
import type { SqlTables } from './sql-tables.ts'
import { type Query, rowsOf, type Session, select } from './statements.ts'

interface Group {
  readonly lane: number
  readonly state: PartitionState
  readonly kind: keyof WaitingCount
  /** Of those that are parked. */
  readonly failure: string | null
  readonly rows: number
  readonly records: number
}

interface OfTable {
  readonly lane: number
  readonly table: string
  readonly kind: keyof WaitingCount
  readonly rows: number
}

/** In SQL: whether a ready partition came back. */
const KIND = "CASE WHEN due_at IS NULL THEN 'fresh' ELSE 'returned' END"

/** Counts all rows, to compare them with the counters. */
export function recountBy(session: Session, tables: SqlTables) {
  const lanes = select(rowsOf(tables.lanes), 'ORDER BY id')
  const tasks = rowsOf(tables.tasks)
  const laneTables = rowsOf(tables.laneTables)
  const counted = `${tables.lanes.path} JOIN ${tables.partitions.path}
    ON partition.lane = lane.id AND partition.id <= lane.tail`
  const groups: Query<Group> = {
    selected: `lane.id, state, ${KIND}, failure, count(*), sum(record_count)`,
    from: `${counted} GROUP BY lane.id, state, ${KIND}, failure`,
    read: ([lane, state, kind, failure, rows, records]) =>
      ({ lane, state, kind, failure, rows, records }) as Group,
  }
  const ofTables: Query<OfTable> = {
    selected: `lane.id, compute_table, ${KIND}, count(*)`,
    from: `${counted} AND state = 'ready' JOIN ${laneTables.from}
      ON lane_table.lane = lane.id AND lane_table.name = compute_table GROUP BY lane.id, compute_table, ${KIND}`,
    read: ([lane, table, kind, rows]) => ({ lane, table, kind, rows }) as OfTable,
  }
  return {
    async recount() {
      const owners = new Map((await session.all(tasks)).map((task) => [task.id, task]))
      const groupsOf = Map.groupBy(await session.all(groups), ({ lane }) => lane)
      const waitingOf = Map.groupBy(await session.all(ofTables), ({ lane }) => lane)
      const tablesOf = Map.groupBy(await session.all(laneTables), ({ lane }) => lane)
      const found = await session.all(lanes)
      return found.flatMap((lane): Recount[] => {
        const task = owners.get(lane.task)
        if (task === undefined) return []
        const tables = (tablesOf.get(lane.id) ?? []).map((row) => {
          const waiting: WaitingCount = { fresh: 0, returned: 0 }
          for (const { table, kind, rows } of waitingOf.get(lane.id) ?? [])
            if (table === row.table) waiting[kind] += rows
          return { row, waiting }
        })
        return [{ lane, task, ...talliesOf(groupsOf.get(lane.id) ?? []), tables }]
      })
    },
  } satisfies Partial<Disk>
}

function talliesOf(groups: readonly Group[]) {
  const tallies = noTallies()
  const waiting: WaitingCount = { fresh: 0, returned: 0 }
  const parked: ParkedByFailure = new Map()
  for (const { state, kind, failure, rows, records } of groups) {
    tallies.partitions[state] += rows
    tallies.records[state] += records
    if (state === 'ready') waiting[kind] += rows
    if (state !== 'parked') continue
    const known = parked.get(failure) ?? { partitions: 0, records: 0 }
    parked.set(failure, { partitions: known.partitions + rows, records: known.records + records })
  }
  return { ...tallies, waiting, parked }
}
