import { MAX_LISTED_GAPS, MAX_LISTED_LEVELS, MAX_LISTED_MISMATCHES, MAX_LISTED_TABLES } from '@baton/protocol'
import type { Disk, DueBackoffs, LaneDetail, Lanes, TaskDetail, TaskSummary } from '../handoff/disk.ts'
import type { DeliveryQuery } from '../handoff/outbox.ts'
import { partitionStates } from '../handoff/rules/life-cycle.ts'
import type { StoredLane, StoredLaneTable } from '../handoff/stored.ts'
import { PACE_SECONDS_KEPT } from '../handoff/views/eta.ts'
import type { PaceSecond } from '../handoff/views/queries.ts'
import type { Table } from './table.ts'
import type { Tables } from './tables.ts'

// The reads that are the same on both disks, but for some conditions.

/** Rows of a table, each read from a list of values. */
interface Query<Row> {
  readonly table: Table<never>
  /** In SQL: the values. */
  readonly selected: string
  readonly read: (values: readonly unknown[]) => Row
}

/** A SELECT. Its parameters are question marks. */
export interface Select<Row> extends Query<Row> {
  /** In SQL: what follows the name of the table. */
  readonly rest: string
}

/** Finds a row by the values of columns. */
export interface LookUp<Row> extends Query<Row> {
  readonly by: readonly string[]
}

export type Value = number | string

/** How a disk runs them. */
export interface Reader {
  all<Row>(query: Select<Row>, ...values: readonly Value[]): Promise<Row[]>
  /** The rows that exist. SQLite runs one statement for each key, PostgreSQL one for all. */
  each<Row>(query: LookUp<Row>, keys: readonly (readonly Value[])[]): Promise<Row[]>
}

/** In SQL: how a WHERE clause begins, so that it uses an index of the disk. */
export interface Conditions {
  readonly openTasks: string
  readonly tasksWithParked: string
  readonly tasksWithReruns: string
  readonly tasksWithStagedRows: string
  readonly tasksToPurge: string
  /** Tasks in state ?1 with ids below ?2, newest first. */
  readonly tasksInState: string
  readonly openLanes: string
  readonly delayedPartitions: string
  readonly pendingDeliveries: string
  /** The compute tables of the task that is selected; they are ordered by position. */
  readonly tablesOfTask: string
  /** Partitions of the task that is selected, and their levels, in order. */
  readonly mismatchesOfTask: string
}

/**
 * For a bare parameter as LIMIT, SQLite prepares the statement again whenever the value changes. For a sum it
 * does not.
 */
export const LIMIT = 'LIMIT ? + 0'

export interface LaneWithTables {
  readonly lane: StoredLane
  readonly tables: readonly StoredLaneTable[]
}

/** In SQL: how many partitions are in one of these states. */
export const sumOf = (states: readonly string[]): string =>
  states.map((state) => `${state}_partitions`).join(' + ')

/** In SQL, of a lane: whether retention has left any rows of it. */
export const HAS_ROWS = `${sumOf(partitionStates)} - purged > 0`

/** In SQL, of a task: leases of a cancelled task run until they end, and need its rows until then. */
const HAS_ENDED = 'finished_at IS NOT NULL AND leased_partitions + delayed_partitions = 0'

const select = <Row>(query: Query<Row>, rest: string): Select<Row> => ({ ...query, rest })

const lookUp = <Row>(query: Query<Row>, ...by: readonly string[]): LookUp<Row> => ({ ...query, by })

const rowsOf = <Row extends object>(table: Table<Row>): Query<Row> => ({
  table: table as unknown as Table<never>,
  selected: table.selected(),
  read: table.read,
})

export function queriesIn(tables: Tables, where: Conditions) {
  const tasks = rowsOf(tables.tasks)
  const partitions = rowsOf(tables.partitions)
  const keys = rowsOf(tables.keys)
  const deliveries = rowsOf(tables.deliveries)
  const lanes = withTables(tables)
  const summaries = withSummary(tables)
  const lane = tables.lanes.path
  const lanesFrom = (condition: string) =>
    select(lanes, `WHERE task = ? AND level >= ? ${condition} ORDER BY level ${LIMIT}`)
  return {
    openTasks: select(tasks, `${where.openTasks} AND id > ? ORDER BY id ${LIMIT}`),
    openLanes: select(lanes, `${where.openLanes} AND id > ? ORDER BY id ${LIMIT}`),
    levels: select(rowsOf(tables.levels), ''),
    tableSettings: select(rowsOf(tables.tableSettings), ''),
    taskNamed: lookUp(tasks, 'task_id'),
    task: lookUp(tasks, 'id'),
    lane: lookUp(lanes, 'id'),
    laneOf: lookUp(lanes, 'task', 'level'),
    lanesFrom: {
      any: lanesFrom(''),
      parked: lanesFrom('AND parked_partitions > 0'),
      rows: lanesFrom(`AND ${HAS_ROWS}`),
    },
    partition: lookUp(partitions, 'id'),
    partitionNamed: lookUp(partitions, 'lane', 'idx'),
    checkpoint: lookUp(rowsOf(tables.checkpoints), 'partition'),
    key: lookUp(keys, 'key'),
    dueKeys: select(keys, `WHERE forget_at <= ? ORDER BY forget_at ${LIMIT}`),
    delayed: select(partitions, `${where.delayedPartitions} ${LIMIT}`),
    withReruns: select(tasks, `${where.tasksWithReruns} ORDER BY id ${LIMIT}`),
    withStagedRows: select(tasks, `${where.tasksWithStagedRows} ORDER BY id`),
    // Tasks are purged one at a time, so a task whose purge has begun is among the last ones marked.
    purgeBegun: select(
      tasks,
      `WHERE id IN (SELECT id FROM ${tables.tasks.path} WHERE purged_at IS NOT NULL ORDER BY purged_at DESC, id DESC LIMIT 100)
         AND ${HAS_ENDED} AND EXISTS (SELECT 1 FROM ${lane} WHERE lane.task = task.id AND ${HAS_ROWS}) LIMIT 1`,
    ),
    toPurge: select(
      tasks,
      `${where.tasksToPurge} AND ${HAS_ENDED} AND finished_at < ?
       ORDER BY finished_at, id LIMIT 1`,
    ),
    newest: select(summaries, `WHERE id < ? ORDER BY id DESC ${LIMIT}`),
    newestWithParked: select(summaries, `${where.tasksWithParked} AND id < ? ORDER BY id DESC ${LIMIT}`),
    newestInState: select(summaries, `${where.tasksInState} ${LIMIT}`),
    summary: lookUp(summaries, 'id'),
    detail: lookUp(withDetail(tables, where), 'task_id'),
    subscriptions: select(rowsOf(tables.subscriptions), 'ORDER BY id'),
    deliveries: select(deliveries, `WHERE subscription = ? AND event > ? ORDER BY event ${LIMIT}`),
    newestDeliveries: select(deliveries, `WHERE subscription = ? AND event < ? ORDER BY event DESC ${LIMIT}`),
    pending: select(
      deliveries,
      `${where.pendingDeliveries} AND subscription = ? AND event > ? ORDER BY event ${LIMIT}`,
    ),
    pendingOfTask: select(
      deliveries,
      `${where.pendingDeliveries} AND subscription = ? AND event > ? AND event <= ? AND task_id = ?
       ORDER BY event ${LIMIT}`,
    ),
  }
}

export type Queries = ReturnType<typeof queriesIn>

/** Lanes with what waits by table, of those that have several. */
function withTables({ lanes, laneTables, dialect }: Tables): Query<LaneWithTables> {
  const tables = `SELECT ${dialect.list}(${dialect.array}(${laneTables.selected()})) FROM ${laneTables.path}
    WHERE lane_table.lane = lane.id`
  return {
    ...rowsOf(lanes),
    selected: `${lanes.selected()}, CASE WHEN lane.several_after IS NOT NULL THEN (${tables}) END`,
    read: (values) => ({
      lane: lanes.read(values),
      tables: listIn<unknown[]>(dialect.parsed(values.at(-1))).map(laneTables.read),
    }),
  }
}

/** Tasks with the lane of their open level and the newest seconds of their pace. */
function withSummary({ tasks, lanes, pace, dialect }: Tables): Query<TaskSummary> {
  const { array, list, parsed } = dialect
  const openLane = `SELECT ${array}(${lanes.selected()}) FROM ${lanes.path}
    WHERE lane.task = task.id AND lane.level = task.open_level`
  const seconds = `SELECT ${list}(${array}(second, partitions, records)) FROM
    (SELECT second, partitions, records FROM ${pace.path} WHERE pace.task = task.id
     ORDER BY second DESC LIMIT ${PACE_SECONDS_KEPT}) listed`
  const at = tasks.columns.length
  return {
    ...rowsOf(tasks),
    selected: `${tasks.selected()}, (${openLane}), (${seconds})`,
    read(values) {
      const openLane = parsed(values[at])
      return {
        task: tasks.read(values),
        openLane: openLane === null ? null : lanes.read(openLane as unknown[]),
        pace: listIn<[number, number, number]>(parsed(values[at + 1])).map(
          ([second, partitions, records]): PaceSecond => ({ second, partitions, records }),
        ),
      }
    },
  }
}

/** Reads counters and short lists, never all partitions. */
function withDetail(tables: Tables, where: Conditions): Query<TaskDetail> {
  const { array, list, nested, parsed } = tables.dialect
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
    (SELECT name FROM ${where.tablesOfTask} ORDER BY position LIMIT ${MAX_LISTED_TABLES}) listed`
  const mismatches = `SELECT ${list}(${array}(level, idx, spelling, record_count, reported_records)) FROM
    (SELECT level, idx, spelling, record_count, reported_records FROM ${where.mismatchesOfTask}
     LIMIT ${MAX_LISTED_MISMATCHES}) listed`
  const at = tables.tasks.columns.length + 2
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

/** A list without elements may be null. */
const listIn = <Element>(value: unknown): readonly Element[] => (value ?? []) as readonly Element[]

/** The methods of a disk that run them. */
export function readsBy(reader: Reader, queries: Queries) {
  const inOneList = (found: readonly LaneWithTables[]): Lanes => ({
    lanes: found.map(({ lane }) => lane),
    tables: found.flatMap(({ tables }) => tables),
  })
  const alone = (key: Value) => [key]
  return {
    openTasks: (after, limit) => reader.all(queries.openTasks, after, limit),
    openLanes: async (after, limit) => inOneList(await reader.all(queries.openLanes, after, limit)),
    levels: () => reader.all(queries.levels),
    tableSettings: () => reader.all(queries.tableSettings),
    tasksNamed: (names) => reader.each(queries.taskNamed, names.map(alone)),
    tasksById: (ids) => reader.each(queries.task, ids.map(alone)),
    lanesById: async (ids) => inOneList(await reader.each(queries.lane, ids.map(alone))),
    lanesOf: async (task, levels) =>
      inOneList(
        await reader.each(
          queries.laneOf,
          levels.map((level) => [task, level]),
        ),
      ),
    lanesFrom: async ({ task, from, having, limit }) =>
      inOneList(await reader.all(queries.lanesFrom[having], task, from, limit)),
    partitionsById: (ids) => reader.each(queries.partition, ids.map(alone)),
    partitionsNamed: (asked) =>
      reader.each(
        queries.partitionNamed,
        asked.flatMap(({ lane, indexes }) => indexes.map((index) => [lane, index])),
      ),
    checkpoints: (partitions) => reader.each(queries.checkpoint, partitions.map(alone)),
    keys: (names) => reader.each(queries.key, names.map(alone)),
    dueKeys: (now, limit) => reader.all(queries.dueKeys, now, limit),
    /** Reads one row more than the limit, to know when the next one ends. */
    async dueBackoffs(now, limit): Promise<DueBackoffs> {
      const first = await reader.all(queries.delayed, limit + 1)
      const due = first.slice(0, limit).filter(({ dueAt }) => (dueAt ?? 0) <= now)
      return { due, nextAt: first[due.length]?.dueAt ?? null }
    },
    tasksWithReruns: (limit) => reader.all(queries.withReruns, limit),
    tasksWithStagedRows: () => reader.all(queries.withStagedRows),
    async purgeable(finishedBefore) {
      const [begun] = await reader.all(queries.purgeBegun)
      const [next] = begun === undefined ? await reader.all(queries.toPurge, finishedBefore) : [begun]
      return next ?? null
    },
    taskPage({ before, limit, which }) {
      if (which === 'all') return reader.all(queries.newest, before, limit)
      if (which === 'parked') return reader.all(queries.newestWithParked, before, limit)
      return reader.all(queries.newestInState, which.state, before, limit)
    },
    taskSummaries: (ids) => reader.each(queries.summary, ids.map(alone)),
    taskDetail: async (taskId) => (await reader.each(queries.detail, [[taskId]]))[0] ?? null,
  } satisfies Partial<Disk>
}

/** The reads of the outbox. */
export const outboxReadsBy = (reader: Reader, queries: Queries) => ({
  subscriptions: async () => (await reader.all(queries.subscriptions)).map(({ body }) => body),
  deliveries({ subscription, pending, ofTask, after, newestFirst, limit }: DeliveryQuery) {
    if (!pending)
      return reader.all(
        newestFirst ? queries.newestDeliveries : queries.deliveries,
        subscription,
        after,
        limit,
      )
    if (ofTask === null) return reader.all(queries.pending, subscription, after, limit)
    return reader.all(queries.pendingOfTask, subscription, after, ofTask.upTo, ofTask.taskId, limit)
  },
})
