import { MAX_LISTED_GAPS, MAX_LISTED_LEVELS, MAX_LISTED_MISMATCHES, MAX_LISTED_TABLES } from '@baton/protocol'
import type { CellCount, Disk, LaneDetail, TaskDetail, TaskWithLane } from '../handoff/disk.ts'
import { WITHIN_TAIL } from './partition-reads.ts'
import type { SqlTables } from './sql-tables.ts'
import {
  each,
  eachOf,
  LIMIT,
  listIn,
  lookUp,
  type Query,
  rowsOf,
  type Session,
  select,
} from './statements.ts'

/** Views of tasks: they read counters and short lists, never all partitions. */
export function taskViewsBy(session: Session, tables: SqlTables) {
  const { where } = tables
  const summaries = withSummary(tables)
  const newest = select(summaries, `WHERE id < ? ORDER BY id DESC ${LIMIT}`)
  const newestWithParked = select(summaries, `${where.tasksWithParked} AND id < ? ORDER BY id DESC ${LIMIT}`)
  const newestInState = select(summaries, `${where.tasksInState} ORDER BY state DESC, id DESC ${LIMIT}`)
  const summary = lookUp(summaries, 'id')
  const detail = lookUp(withDetail(tables), 'task_id')
  const task: Query<number> = {
    selected: 'task',
    from: `${tables.tables.path} WHERE task = ?`,
    read: ([id]) => id as number,
  }
  const withTable = select(task, 'AND name = ?')
  const someTables = select(task, LIMIT)
  return {
    taskPage({ before, limit, which }) {
      if (which === 'all') return session.all(newest, before, limit)
      if (which === 'parked') return session.all(newestWithParked, before, limit)
      return session.all(newestInState, which.state, before, limit)
    },
    tasksWithLane: (ids) => eachOf(session, summary, ids),
    taskDetail: async (taskId) => (await session.all(detail, taskId))[0] ?? null,
    async tasksWithTables(ids, names) {
      const named = ids.flatMap((id) => names.map((name) => [id, name]))
      const found = Map.groupBy(await each(session, withTable, named), (id) => id)
      const having = ids.filter((id) => found.has(id))
      // Reading one more than were found shows whether there are others.
      const limits = having.map((id) => [id, (found.get(id)?.length ?? 0) + 1])
      const all = await session.lists(limits.map((values) => ({ query: someTables, values })))
      return having.map((id, at) => ({ task: id, hasOthers: (all[at]?.length ?? 0) === limits[at]?.[1] }))
    },
    ...cellsBy(session, tables),
  } satisfies Partial<Disk>
}

/** Tasks with the lane of their open level. */
function withSummary({ tasks, lanes, dialect }: SqlTables): Query<TaskWithLane> {
  const { array, parsed } = dialect
  const openLane = `SELECT ${array}(${lanes.selected()}) FROM ${lanes.path}
    WHERE lane.task = task.id AND lane.level = task.open_level`
  const at = tasks.columns.length
  return {
    ...rowsOf(tasks),
    selected: `${tasks.selected()}, (${openLane})`,
    read(values) {
      const openLane = parsed(values[at])
      return {
        task: tasks.read(values),
        openLane: openLane === null ? null : lanes.read(openLane as unknown[]),
      }
    },
  }
}

/** Reads counters and short lists, never all partitions. */
function withDetail(tables: SqlTables): Query<TaskDetail> {
  const { array, list, nested, parsed, indexed } = tables.dialect
  const { lanes, ranges } = tables
  const summary = withSummary(tables)
  const count = `SELECT count(*) FROM ${lanes.path} WHERE lane.task = task.id`
  const rangesOfLane = `SELECT ${list}(${array}(first, last)) FROM
    (SELECT first, last FROM ${ranges.path} WHERE lane_range.lane = listed.id
     ORDER BY first LIMIT ${MAX_LISTED_GAPS + 1}) listed_ranges`
  const lastIndex = `SELECT last FROM ${ranges.path} WHERE lane_range.lane = listed.id ORDER BY first DESC LIMIT 1`
  const levels = `SELECT ${list}(${array}(${lanes.selected('listed')}, ${nested(`(${rangesOfLane})`)}, (${lastIndex}))) FROM
    (SELECT * FROM ${lanes.path} WHERE lane.task = task.id ORDER BY level LIMIT ${MAX_LISTED_LEVELS}) listed`
  const names = `SELECT ${list}(name) FROM
    (SELECT name FROM ${tables.tables.path} ${indexed('task_table_order')} WHERE task_table.task = task.id
     ORDER BY position LIMIT ${MAX_LISTED_TABLES}) listed`
  const mismatches = `SELECT ${list}(${array}(level, idx, spelling, record_count, reported_records)) FROM
    (SELECT level, idx, spelling, record_count, reported_records FROM ${tables.where.mismatchesOfTask}
     LIMIT ${MAX_LISTED_MISMATCHES}) listed`
  const at = tables.tasks.columns.length + 1
  const ofLane = lanes.columns.length
  return {
    ...summary,
    selected: [summary.selected, ...[count, levels, names, mismatches].map((text) => `(${text})`)].join(', '),
    read: (values) => ({
      ...summary.read(values),
      laneCount: values[at] as number,
      lanes: listIn<unknown[]>(parsed(values[at + 1])).map(
        (row): LaneDetail => ({
          lane: lanes.read(row),
          ranges: listIn<[number, number]>(row[ofLane]).map(([first, last]) => ({ first, last })),
          lastIndex: (row[ofLane + 1] ?? 0) as number,
        }),
      ),
      computeTables: listIn<string>(parsed(values[at + 2])),
      mismatches: listIn<[number, number, string | null, number, number]>(parsed(values[at + 3])).map(
        ([level, index, spelling, declared, reported]) => ({ level, index, spelling, declared, reported }),
      ),
    }),
  }
}

interface Counted extends Pick<CellCount, 'state' | 'partitions'> {}

/** The states of partitions, counted by cell, for the grid of a level. */
function cellsBy(session: Session, { partitions, dialect, where }: SqlTables) {
  const any = `${dialect.indexed('partition_identity')} WHERE true`
  const inOrder = (from: string, and: string) =>
    `SELECT idx, state FROM ${partitions.path} ${from} AND lane = ? ${and} AND ${WITHIN_TAIL} ORDER BY idx ${LIMIT}`
  const ranked: Query<CellCount> = {
    selected: 'cell, state, count(*), min(idx), max(idx)',
    from: `(SELECT idx, state, (row_number() OVER (ORDER BY idx) - 1) / CAST(? AS bigint) AS cell FROM
        (${inOrder(any, '')}) listed) ranked GROUP BY cell, state ORDER BY cell`,
    read: ([cell, state, counted, first, last]) =>
      ({ cell, state, partitions: counted, first, last }) as CellCount,
  }
  const index: Query<number> = {
    selected: 'idx',
    from: `${partitions.path} WHERE lane = ?`,
    read: ([found]) => found as number,
  }
  const ends = [select(index, 'ORDER BY idx LIMIT 1'), select(index, 'ORDER BY idx DESC LIMIT 1')]
  const some = (rows: string, and: string): Query<Counted> => ({
    selected: 'state, count(*)',
    from: `(${rows}) listed ${and} GROUP BY state`,
    read: ([state, counted]) => ({ state, partitions: counted }) as Counted,
  })
  const within = 'AND idx BETWEEN ? AND ?'
  const anyOf = some(inOrder(any, within), "WHERE state <> 'parked'")
  const parkedOf = some(inOrder(where.parkedPartitions, within), '')
  return {
    async countCells({ lane, tail, by }) {
      if (by.kind === 'rank') return session.all(ranked, by.width, lane, tail, by.limit)
      const [lowest, highest] = (await session.lists(ends.map((query) => ({ query, values: [lane] })))).flat()
      if (lowest === undefined || highest === undefined) return []
      const width = Math.ceil((highest - lowest + 1) / by.cells)
      const cells = Array.from({ length: by.cells }, (_, cell) => {
        const first = lowest + cell * width
        return { cell, first, last: Math.min(first + width - 1, highest) }
      })
      const asked = [anyOf, parkedOf].flatMap((query) =>
        cells.map(({ first, last }) => ({ query, values: [lane, first, last, tail, by.each] })),
      )
      const found = await session.lists(asked)
      return cells.flatMap((cell, at) =>
        [...(found[at] ?? []), ...(found[at + by.cells] ?? [])].map((counted) => ({ ...cell, ...counted })),
      )
    },
  } satisfies Partial<Disk>
}
