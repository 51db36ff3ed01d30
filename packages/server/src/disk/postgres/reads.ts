import type {
  DueBackoffs,
  DuePosition,
  Lanes,
  LanesFrom,
  NamedPartitions,
  RowsOfLane,
  WaitingOfLane,
} from '../../handoff/disk.ts'
import type { StoredPartition } from '../../handoff/partition.ts'
import { partitionStates } from '../../handoff/rules/life-cycle.ts'
import type { StoredKey, StoredLevel, StoredTableSettings, StoredTask } from '../../handoff/stored.ts'
import type { Row, Statement } from './session/connection.ts'
import {
  asJson,
  keys,
  lanes,
  laneTables,
  levels,
  partitions,
  plainArray,
  tableSettings,
  tasks,
  textArray,
} from './tables.ts'

// The rows that the engine does not have in memory. Rows are read as JSON arrays. `OFFSET 0` keeps each
// look-up apart, so that PostgreSQL uses the index for each.

const TASK = `${asJson(tasks)} AS row`
const PARTITION = `${asJson(partitions)} AS row`
const LANE = `${asJson(lanes)} AS row, CASE WHEN lane.several_after IS NOT NULL THEN
  (SELECT json_agg(${asJson(laneTables)}) FROM baton.lane_table WHERE lane_table.lane = lane.id) END AS tables`

const valuesIn = (row: Row): unknown[] => row['row'] as unknown[]

export const readTask = (row: Row): StoredTask => tasks.read(valuesIn(row))
export const readLevel = (row: Row): StoredLevel => levels.read(valuesIn(row))
export const readTableSettings = (row: Row): StoredTableSettings => tableSettings.read(valuesIn(row))
export const readKey = (row: Row): StoredKey => keys.read(valuesIn(row))
export const readPartition = (row: Row): StoredPartition => partitions.read(valuesIn(row))

export const readLanes = (rows: readonly Row[]): Lanes => ({
  lanes: rows.map((row) => lanes.read(valuesIn(row))),
  tables: rows.flatMap(({ tables }) =>
    ((tables ?? []) as unknown[][]).map((values) => laneTables.read(values)),
  ),
})

export const openTasksStatement = (after: number, limit: number): Statement => ({
  text: `SELECT ${TASK} FROM baton.task WHERE is_open AND id > $1 ORDER BY id LIMIT $2`,
  values: [after, limit],
})

export const openLanesStatement = (after: number, limit: number): Statement => ({
  text: `SELECT ${LANE} FROM baton.lane WHERE is_open AND id > $1 ORDER BY id LIMIT $2`,
  values: [after, limit],
})

export const leasesStatement = ({ dueAt, id }: DuePosition, limit: number): Statement => ({
  text: `SELECT ${PARTITION} FROM baton.partition
    WHERE lease_ends_at IS NOT NULL AND (lease_ends_at, id) > ($1, $2)
    ORDER BY lease_ends_at, id LIMIT $3`,
  values: [dueAt, id, limit],
})

export const levelsStatement: Statement = {
  text: `SELECT ${asJson(levels)} AS row FROM baton.level`,
}

export const tableSettingsStatement: Statement = {
  text: `SELECT ${asJson(tableSettings)} AS row FROM baton.table_settings`,
}

export const tasksNamedStatement = (names: readonly string[]): Statement => ({
  text: `SELECT ${TASK} FROM unnest($1::text[]) AS w (name) CROSS JOIN LATERAL
    (SELECT * FROM baton.task WHERE task_id = w.name COLLATE "C" OFFSET 0) task`,
  values: [textArray(names)],
})

export const tasksByIdStatement = (ids: readonly number[]): Statement => ({
  text: `SELECT ${TASK} FROM unnest($1::bigint[]) AS w (id) CROSS JOIN LATERAL
    (SELECT * FROM baton.task WHERE id = w.id OFFSET 0) task`,
  values: [plainArray(ids)],
})

export const lanesByIdStatement = (ids: readonly number[]): Statement => ({
  text: `SELECT ${LANE} FROM unnest($1::bigint[]) AS w (id) CROSS JOIN LATERAL
    (SELECT * FROM baton.lane WHERE id = w.id OFFSET 0) lane`,
  values: [plainArray(ids)],
})

export const lanesOfStatement = (task: number, levels: readonly number[]): Statement => ({
  text: `SELECT ${LANE} FROM unnest($2::bigint[]) AS w (level) CROSS JOIN LATERAL
    (SELECT * FROM baton.lane WHERE task = $1::bigint AND level = w.level OFFSET 0) lane`,
  values: [task, plainArray(levels)],
})

/** In SQL: how many partitions are in one of these states. */
export function sumOf(states: readonly string[]): string {
  return states.map((state) => `${state}_partitions`).join(' + ')
}

/** In SQL: whether retention has left any rows of a lane. */
export const HAS_ROWS = `${sumOf(partitionStates)} > purged`

const HAVING = { any: 'true', parked: 'parked_partitions > 0', rows: HAS_ROWS } as const

export const lanesFromStatement = ({ task, from, having, limit }: LanesFrom): Statement => ({
  text: `SELECT ${LANE} FROM
    (SELECT * FROM baton.lane WHERE task = $1 AND level >= $2 AND ${HAVING[having]} ORDER BY level LIMIT $3) lane
    ORDER BY lane.level`,
  values: [task, from, limit],
})

export const partitionsByIdStatement = (ids: readonly number[]): Statement => ({
  text: `SELECT ${PARTITION} FROM unnest($1::bigint[]) AS w (id) CROSS JOIN LATERAL
    (SELECT * FROM baton.partition WHERE id = w.id OFFSET 0) partition`,
  values: [plainArray(ids)],
})

export function partitionsNamedStatement(asked: readonly NamedPartitions[]): Statement {
  const pairs = asked.flatMap(({ lane, indexes }) => indexes.map((index) => [lane, index] as const))
  return {
    text: `SELECT ${PARTITION} FROM unnest($1::bigint[], $2::bigint[]) AS w (lane, idx) CROSS JOIN LATERAL
      (SELECT * FROM baton.partition WHERE lane = w.lane AND idx = w.idx OFFSET 0) partition`,
    values: [plainArray(pairs.map(([lane]) => lane)), plainArray(pairs.map(([, index]) => index))],
  }
}

export const keysStatement = (names: readonly string[]): Statement => ({
  text: `SELECT ${asJson(keys)} AS row FROM unnest($1::text[]) AS w (key) CROSS JOIN LATERAL
    (SELECT * FROM baton.pull_key WHERE key = w.key COLLATE "C" OFFSET 0) pull_key`,
  values: [textArray(names)],
})

/** One list of rows per query, from rows that have the position of their query. */
export function readLists(rows: readonly Row[], queries: number): StoredPartition[][] {
  const lists = Array.from({ length: queries }, (): StoredPartition[] => [])
  for (const row of rows) lists[(row['n'] as number) - 1]?.push(readPartition(row))
  return lists
}

/**
 * Parked partitions are few and have a partial index; other states are filtered. `id + 0` keeps the planner
 * from using the index on id: rows are to be read in order of their index.
 */
export function rowsStatement(queries: readonly RowsOfLane[]): Statement {
  const condition = {
    all: 'true',
    parked: 'is_parked',
    other: 'state = w.state COLLATE "C"',
  }
  const states = new Set(queries.map(({ state }) => state))
  const [state = null] = states
  const kind = states.size > 1 ? 'mixed' : state === null ? 'all' : state === 'parked' ? 'parked' : 'other'
  const numbers = (field: 'lane' | 'tail' | 'afterIndex' | 'limit') =>
    plainArray(queries.map((query) => query[field]))
  return {
    text: `SELECT w.n, ${PARTITION}
      FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::text[])
        WITH ORDINALITY AS w (lane, tail, after, most, state, n) CROSS JOIN LATERAL
      (SELECT * FROM baton.partition WHERE lane = w.lane AND idx > w.after AND id + 0 <= w.tail
         AND ${kind === 'mixed' ? '(w.state IS NULL OR state = w.state COLLATE "C")' : condition[kind]}
       ORDER BY idx LIMIT w.most) partition
      ORDER BY w.n, partition.idx`,
    values: [
      numbers('lane'),
      numbers('tail'),
      numbers('afterIndex'),
      numbers('limit'),
      textArray(queries.map((query) => query.state)),
    ],
  }
}

/** The next ready partitions of lanes: one branch for each kind of query that there is. */
export function waitingStatement(queries: readonly WaitingOfLane[]): Statement {
  const branches = WAITING.filter(({ isFor }) => queries.some(isFor)).map(
    ({ kind, rows }) =>
      `SELECT w.n, r.at, r.id, r.row FROM w CROSS JOIN LATERAL (${rows}) r WHERE w.kind = ${kind}`,
  )
  const numbers = (values: readonly number[]) => plainArray(values)
  return {
    text: `WITH w AS MATERIALIZED (
        SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::text[])
          WITH ORDINALITY AS w (kind, lane, due_at, id, up_to, most, name, n))
      SELECT n, row FROM (${branches.join(' UNION ALL ')}) f ORDER BY n, at, id`,
    values: [
      numbers(queries.map((query) => WAITING.find(({ isFor }) => isFor(query))?.kind ?? 0)),
      numbers(queries.map(({ lane }) => lane)),
      numbers(queries.map(({ after }) => after.dueAt)),
      numbers(queries.map(({ after }) => after.id)),
      numbers(queries.map(({ upTo }) => upTo)),
      numbers(queries.map(({ limit }) => limit)),
      textArray(queries.map(({ table }) => table ?? '')),
    ],
  }
}

const RETURNED = `SELECT partition.returned_at AS at, partition.id, ${PARTITION} FROM baton.partition
  WHERE partition.lane = w.lane AND partition.returned_at IS NOT NULL AND (partition.returned_at, partition.id) > (w.due_at, w.id)`
/** Those that a pull by table took before the others are filtered by the engine. */
const FRESH = `SELECT 0::bigint AS at, partition.id, ${PARTITION} FROM baton.partition
  WHERE partition.lane = w.lane AND partition.id > w.id AND partition.id <= w.up_to`

const WAITING: readonly {
  readonly kind: number
  readonly isFor: (query: WaitingOfLane) => boolean
  readonly rows: string
}[] = [
  {
    kind: 0,
    isFor: ({ returned, table }) => !returned && table === undefined,
    rows: `${FRESH} ORDER BY partition.id LIMIT w.most`,
  },
  {
    kind: 1,
    isFor: ({ returned, table }) => returned && table === undefined,
    rows: `${RETURNED} ORDER BY partition.returned_at, partition.id LIMIT w.most`,
  },
  {
    kind: 2,
    isFor: ({ returned, table }) => !returned && table !== undefined,
    rows: `${FRESH} AND partition.of_several AND partition.compute_table = w.name COLLATE "C" ORDER BY partition.id LIMIT w.most`,
  },
  {
    kind: 3,
    isFor: ({ returned, table }) => returned && table !== undefined,
    rows: `${RETURNED} AND partition.compute_table = w.name COLLATE "C" ORDER BY partition.returned_at, partition.id LIMIT w.most`,
  },
]

/** Reads one row more than the limit, to know when the next one ends. */
export const dueBackoffsStatement = (limit: number): Statement => ({
  text: `SELECT ${PARTITION} FROM
    (SELECT * FROM baton.partition WHERE delayed_until IS NOT NULL ORDER BY delayed_until, id LIMIT $1) partition
    ORDER BY partition.delayed_until, partition.id`,
  values: [limit + 1],
})

export function readDueBackoffs(rows: readonly Row[], now: number, limit: number): DueBackoffs {
  const first = rows.map(readPartition)
  const due = first.slice(0, limit).filter(({ dueAt }) => (dueAt ?? 0) <= now)
  return { due, nextAt: first[due.length]?.dueAt ?? null }
}
