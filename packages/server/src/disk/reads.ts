import type { Disk, DueBackoffs, DuePosition, Lanes, RowsOfLane, WaitingOfLane } from '../handoff/disk.ts'
import { type KnownPartition, newPartition, type StoredPartition } from '../handoff/partition.ts'
import { partitionStates } from '../handoff/rules/life-cycle.ts'
import type { StoredLane, StoredLaneTable } from '../handoff/stored.ts'
import {
  type Asked,
  type Conditions,
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
import type { Tables } from './tables.ts'

interface LaneWithTables {
  readonly lane: StoredLane
  readonly tables: readonly StoredLaneTable[]
}

/** In SQL: how many partitions are in any state. */
export const ALL_PARTITIONS = partitionStates.map((state) => `${state}_partitions`).join(' + ')

/** In SQL, of a lane: whether retention has left any rows of it. */
export const HAS_ROWS = `${ALL_PARTITIONS} - purged > 0`

/** In SQL, of a task: leases of a cancelled task run until they end, and need its rows until then. */
const HAS_ENDED = 'finished_at IS NOT NULL AND leased_partitions + delayed_partitions = 0'

/** What the engine reads of tasks, lanes, levels, tables and keys. */
export function readsBy(session: Session, tables: Tables, where: Conditions) {
  const tasks = rowsOf(tables.tasks)
  const keys = rowsOf(tables.keys)
  const lanes = withTables(tables)
  const levels = rowsOf(tables.levels)
  const tableSettings = rowsOf(tables.tableSettings)
  const openTasks = select(tasks, `${where.openTasks} AND id > ? ORDER BY id ${LIMIT}`)
  const openLanes = select(lanes, `${where.openLanes} AND id > ? ORDER BY id ${LIMIT}`)
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
  const withReruns = select(tasks, `${where.tasksWithReruns} ORDER BY id ${LIMIT}`)
  const withStagedRows = select(tasks, `${where.tasksWithStagedRows} ORDER BY id`)
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
    lanesWithWork: async (after, limit) => inOneList(await session.all(openLanes, after, limit)),
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
    tasksWithReruns: (limit) => session.all(withReruns, limit),
    tasksWithStagedRows: () => session.all(withStagedRows),
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

/**
 * In SQL: the planner of PostgreSQL must not use the index on id where rows are read in the order of their
 * index.
 */
export const COUNTS = 'id + 0 <= ?'

/** What the engine reads of partitions. */
export function partitionReadsBy(session: Session, tables: Tables, where: Conditions) {
  const { descriptors } = tables
  const partitions = rowsOf(tables.partitions)
  const checkpoint = lookUp(rowsOf(tables.checkpoints), 'partition')
  const partition = lookUp(partitions, 'id')
  const partitionNamed = lookUp(partitions, 'lane', 'idx')
  const delayed = select(partitions, `${where.delayedPartitions} ORDER BY ${where.delayedUntil}, id ${LIMIT}`)
  const leases = ordered(partitions, where.leasedPartitions, where.leaseEndsAt)
  const returned = ordered(partitions, `${where.returnedPartitions} AND lane = ?`, where.returnedAt)
  // Without an index by table: few partitions of a lane have come back.
  const returnedOfTable = ordered(
    partitions,
    `${where.returnedPartitions} AND lane = ? AND compute_table = ?`,
    where.returnedAt,
  )
  /** Untouched, so only the descriptor is read. Skips those that a pull by table took before the others. */
  const fresh = (condition: string): Query<StoredPartition> => ({
    selected: descriptors.selected(),
    from: `${descriptors.path} ${condition} AND id > ? AND id <= ?
      AND state = 'ready' AND due_at IS NULL ORDER BY id ${LIMIT}`,
    read: (values) => newPartition(descriptors.read(values)),
  })
  const arrived = fresh('WHERE lane = ?')
  const arrivedOfTable = fresh(`${where.partitionsOfSeveral} AND lane = ?`)
  const rows = rowQueries(partitions, where)

  const waiting = ({ lane, table, returned: cameBack, after, upTo, limit }: WaitingOfLane) => {
    const of = table === undefined ? [lane] : [table, lane]
    if (!cameBack)
      return [
        {
          query: table === undefined ? arrived : arrivedOfTable,
          values: [...of, after.id, upTo, limit],
        },
      ]
    const found = table === undefined ? returned : returnedOfTable
    return found(table === undefined ? [lane] : [lane, table], after, limit)
  }
  return {
    leases: async (after, limit) => (await session.lists(leases([], after, limit))).flat().slice(0, limit),
    partitionsById: (ids) => eachOf(session, partition, ids),
    partitionsNamed: (asked) =>
      each(
        session,
        partitionNamed,
        asked.flatMap(({ lane, indexes }) => indexes.map((index) => [lane, index])),
      ),
    rows: (asked) => session.lists(asked.map(rows)),
    async waiting(asked) {
      const parts = asked.map(waiting)
      const found = await session.lists(parts.flat())
      return parts.map(({ length }, at) => found.splice(0, length).flat().slice(0, asked[at]?.limit))
    },
    checkpoints: (ids) => eachOf(session, checkpoint, ids),
    /** Reads one row more than the limit, to know when the next one ends. */
    async dueBackoffs(now, limit): Promise<DueBackoffs> {
      const first = await session.all(delayed, limit + 1)
      const due = first.slice(0, limit).filter(({ dueAt }) => (dueAt ?? 0) <= now)
      return { due, nextAt: first[due.length]?.dueAt ?? null }
    },
  } satisfies Partial<Disk>
}

/**
 * Which indexes were called back before. Ranges outlive the rows that retention removes. Arrays that come out of
 * order lie in gaps: one look-up for each lane shows that.
 */
export function knownBy(session: Session, { knownPartitions, ranges }: Tables) {
  const partition = select(rowsOf(knownPartitions), `WHERE lane = ? AND idx = ? AND ${COUNTS}`)
  const lastBelow: Query<number> = {
    selected: 'last',
    from: `${ranges.path} WHERE lane = ? AND first <= ? ORDER BY first DESC LIMIT 1`,
    read: ([last]) => last as number,
  }
  return {
    async known(asked) {
      const named = asked.flatMap(({ lane, tail, indexes }, at) =>
        indexes.map((index) => ({ at, lane, tail, index })),
      )
      const rows = named.map(({ lane, index, tail }) => ({ query: partition, values: [lane, index, tail] }))
      const highest = asked.map(({ lane, indexes }) => ({
        query: lastBelow,
        values: [lane, Math.max(-1, ...indexes)],
      }))
      const found = await session.lists<KnownPartition | number>([...rows, ...highest])
      const ends = found.splice(named.length) as number[][]
      const missing = named.filter(
        ({ at, index }, place) => found[place]?.length === 0 && index <= (ends[at]?.[0] ?? -1),
      )
      const within = await session.lists(
        missing.map(({ lane, index }) => ({ query: lastBelow, values: [lane, index] })),
      )
      const known = asked.map(() => new Map<number, KnownPartition | null>())
      for (const [place, { at, index }] of named.entries()) {
        const [row] = found[place] as KnownPartition[]
        if (row !== undefined) known[at]?.set(index, row)
      }
      for (const [place, { at, index }] of missing.entries())
        if ((within[place]?.[0] ?? -1) >= index) known[at]?.set(index, null)
      return known
    },
  } satisfies Partial<Disk>
}

/**
 * Reads partitions in the order of a time and of their id, after a position. The two are compared one after the
 * other: for a row comparison, SQLite uses only the first column of the index, and reads again all rows with
 * the same time, which may be all rows. So some more rows than the limit may be found.
 */
function ordered(partitions: Query<StoredPartition>, condition: string, time: string) {
  const sameTime = select(partitions, `${condition} AND ${time} = ? AND id > ? ORDER BY id ${LIMIT}`)
  const later = select(partitions, `${condition} AND ${time} > ? ORDER BY ${time}, id ${LIMIT}`)
  return (
    given: readonly (number | string)[],
    after: DuePosition,
    limit: number,
  ): Asked<StoredPartition>[] => {
    // Ids begin at 1.
    if (after.id === 0) return [{ query: later, values: [...given, after.dueAt - 1, limit] }]
    return [
      { query: sameTime, values: [...given, after.dueAt, after.id, limit] },
      { query: later, values: [...given, after.dueAt, limit] },
    ]
  }
}

/** Parked and begun partitions and those that failed are few and have indexes; other states are filtered. */
function rowQueries(partitions: Query<StoredPartition>, where: Conditions) {
  const inOrder = (from: string, and = '') =>
    select(
      partitions,
      `${from} AND lane = ? AND idx > ? AND idx <= ? AND ${COUNTS} ${and} ORDER BY idx ${LIMIT}`,
    )
  const all = inOrder(where.partitionsByIndex)
  const begun = inOrder(where.begunPartitions)
  const parked = inOrder(where.parkedPartitions)
  const inState = inOrder(where.partitionsByIndex, 'AND state = ?')
  const failed = inOrder(where.failedPartitions)
  const failedInState = inOrder(where.failedPartitions, 'AND state = ?')
  const parkedAs = inOrder(where.partitionsParkedAs)
  return (query: RowsOfLane): Asked<StoredPartition> => {
    const { lane, tail, state, failure, afterIndex, lastIndex = Number.MAX_SAFE_INTEGER, limit } = query
    const within = [lane, afterIndex, lastIndex, tail]
    if (failure !== undefined) {
      if (state === null) return { query: failed, values: [failure, ...within, limit] }
      if (state === 'parked') return { query: parkedAs, values: [failure, ...within, limit] }
      return { query: failedInState, values: [failure, ...within, state, limit] }
    }
    if (state === null) return { query: all, values: [...within, limit] }
    if (state === 'begun') return { query: begun, values: [...within, limit] }
    if (state === 'parked') return { query: parked, values: [...within, limit] }
    return { query: inState, values: [...within, state, limit] }
  }
}
