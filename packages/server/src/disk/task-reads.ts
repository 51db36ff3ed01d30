import type { Disk, Lanes } from '../handoff/disk.ts'
import { partitionStates } from '../handoff/rules/life-cycle.ts'
import type { StoredLane, StoredLaneTable } from '../handoff/stored.ts'
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

interface LaneWithTables {
  readonly lane: StoredLane
  readonly tables: readonly StoredLaneTable[]
}

/** In SQL: how many partitions are in any state. */
export const ALL_PARTITIONS = partitionStates.map((state) => `${state}_partitions`).join(' + ')

/** In SQL, of a lane: whether retention has left any rows of it. */
export const HAS_ROWS = `${ALL_PARTITIONS} - purged > 0`

/**
 * In SQL, of a task: leases of a cancelled task run until they end, and need its rows until then. A call-back that
 * is not complete may reopen a task.
 */
const HAS_ENDED = 'finished_at IS NOT NULL AND leased_partitions + delayed_partitions = 0 AND staging IS NULL'

export function taskReadsBy(session: Session, tables: SqlTables) {
  const { where } = tables
  const tasks = rowsOf(tables.tasks)
  const keys = rowsOf(tables.keys)
  const lanes = withTables(tables)
  const levels = rowsOf(tables.levels)
  const tableSettings = rowsOf(tables.tableSettings)
  const openTasks = select(tasks, `${where.openTasks} AND id > ? ORDER BY id ${LIMIT}`)
  const lanesWithWork = select(lanes, `${where.lanesWithWork} AND id > ? ORDER BY id ${LIMIT}`)
  const taskNamed = lookUp(tasks, 'task_id')
  const task = lookUp(tasks, 'id')
  const lane = lookUp(lanes, 'id')
  const laneOf = lookUp(lanes, 'task', 'level')
  const from = (condition: string) =>
    select(lanes, `WHERE task = ? AND level >= ? ${condition} ORDER BY level ${LIMIT}`)
  const lanesFrom = {
    any: from(''),
    parked: from('AND parked_partitions > 0'),
    rows: from(`AND ${HAS_ROWS}`),
  }
  const key = lookUp(keys, 'key')
  const dueKeys = select(keys, `WHERE forget_at <= ? ORDER BY forget_at ${LIMIT}`)
  // Tasks are purged one at a time, so a task whose purge has begun is among the last ones marked.
  const purgeBegun = select(
    tasks,
    `WHERE id IN (SELECT id FROM ${tasks.from} WHERE purged_at IS NOT NULL ORDER BY purged_at DESC, id DESC LIMIT 100)
       AND ${HAS_ENDED} AND EXISTS (SELECT 1 FROM ${lanes.from} WHERE lane.task = task.id AND ${HAS_ROWS}) LIMIT 1`,
  )
  const toPurge = select(
    tasks,
    `${where.tasksToPurge} AND ${HAS_ENDED} AND finished_at < ? ORDER BY finished_at, id LIMIT 1`,
  )
  const doneRows: Query<number> = {
    selected: `sum(${tables.dialect.greatest}(0, done_partitions - purged))`,
    from: `${lanes.from} WHERE task = ?`,
    read: ([done]) => (done ?? 0) as number,
  }
  return {
    openTasks: (after, limit) => session.all(openTasks, after, limit),
    lanesWithWork: async (after, limit) => inOneList(await session.all(lanesWithWork, after, limit)),
    levels: () => session.all(levels),
    tableSettings: () => session.all(tableSettings),
    tasksNamed: (names) => eachOf(session, taskNamed, names),
    tasksById: (ids) => eachOf(session, task, ids),
    lanesById: async (ids) => inOneList(await eachOf(session, lane, ids)),
    async lanesOf(ofTask, ofLevels) {
      const named = ofLevels.map((level) => [ofTask, level])
      return inOneList(await each(session, laneOf, named))
    },
    lanesFrom: async ({ task, from, having, limit }) =>
      inOneList(await session.all(lanesFrom[having], task, from, limit)),
    keys: (names) => eachOf(session, key, names),
    dueKeys: (now, limit) => session.all(dueKeys, now, limit),
    async purgeable(finishedBefore) {
      const [begun] = await session.all(purgeBegun)
      return begun ?? (await session.all(toPurge, finishedBefore))[0] ?? null
    },
    doneRows: async (ofTask) => (await session.all(doneRows, ofTask))[0] ?? 0,
  } satisfies Partial<Disk>
}

const inOneList = (found: readonly LaneWithTables[]): Lanes => ({
  lanes: found.map(({ lane }) => lane),
  tables: found.flatMap(({ tables }) => tables),
})

/** Lanes with what waits by table, of those that have several. */
function withTables({ lanes, laneTables, dialect }: SqlTables): Query<LaneWithTables> {
  const tables = `SELECT ${dialect.list}(${dialect.array}(${laneTables.selected()})) FROM ${laneTables.path}
    WHERE lane_table.lane = lane.id`
  return {
    ...rowsOf(lanes),
    selected: `${lanes.selected()}, CASE WHEN lane.mixed_after IS NOT NULL THEN (${tables}) END`,
    read: (values) => ({
      lane: lanes.read(values),
      tables: listIn<unknown[]>(dialect.parsed(values.at(-1))).map(laneTables.read),
    }),
  }
}
