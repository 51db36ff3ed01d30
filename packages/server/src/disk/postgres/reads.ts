import { MAX_LISTED_MISMATCHES } from '@baton/protocol'
import type { DuePosition, RowsOfLane, WaitingOfLane } from '../../handoff/disk.ts'
import type { StoredPartition } from '../../handoff/partition.ts'
import { type Conditions, type LookUp, queriesIn, type Select, type Value } from '../reads.ts'
import type { Row, Statement } from './session/connection.ts'
import { arrayOf, asJson, isText, parameters, partitions, plainArray, postgres, textArray } from './tables.ts'

// The rows that the engine does not have in memory. Rows are read as JSON arrays. `OFFSET 0` keeps each
// look-up apart, so that PostgreSQL uses the index for each.

const conditions: Conditions = {
  openTasks: 'WHERE is_open',
  tasksWithParked: 'WHERE has_parked',
  tasksWithReruns: "WHERE has_work AND reruns::text <> '[]'",
  tasksWithStagedRows: 'WHERE has_work AND staging IS NOT NULL',
  tasksToPurge: 'WHERE purged_at IS NULL AND has_work IS NULL',
  // Written as a range so that the planner uses the index by state. With an equality it may read the index by
  // id instead: if nearly all tasks are in one state, it misjudges how many are in another.
  tasksInState: `WHERE state >= ?1::text COLLATE "C" AND (state, id) < (?1::text COLLATE "C", ?2)
    ORDER BY state DESC, id DESC`,
  openLanes: 'WHERE is_open',
  delayedPartitions: 'WHERE delayed_until IS NOT NULL ORDER BY delayed_until, id',
  pendingDeliveries: 'WHERE pending',
  tablesOfTask: 'baton.task_table WHERE task_table.task = task.id',
  mismatchesOfTask: `(SELECT id, level FROM baton.lane WHERE lane.task = task.id AND task.mismatched > 0
      ORDER BY level) lane CROSS JOIN LATERAL
    (SELECT * FROM baton.partition WHERE partition.lane = lane.id AND is_mismatch ORDER BY idx
     LIMIT ${MAX_LISTED_MISMATCHES}) partition ORDER BY lane.level, partition.idx`,
}

export const queries = queriesIn(postgres, conditions)

export const selectStatement = <Found>(
  { table, selected, rest }: Select<Found>,
  values: readonly Value[],
): Statement => ({
  text: `SELECT json_build_array(${selected}) AS row FROM ${table.path} ${numbered(rest)}`,
  values,
})

/** Numbers parameters as SQLite does: one without a number is the next one. */
function numbered(text: string): string {
  let last = 0
  return text.replaceAll(/\?(\d*)/g, (_, number: string) => {
    const at = number === '' ? last + 1 : Number(number)
    last = Math.max(last, at)
    return `$${at}`
  })
}

export function lookUpStatement<Found>(
  { table, selected, by }: LookUp<Found>,
  keys: readonly (readonly Value[])[],
): Statement {
  const columns = by.map((name) => table.column(name))
  const rules = columns.map(({ name, kind }) => `${name} = w.${name}${isText(kind) ? ' COLLATE "C"' : ''}`)
  return {
    text: `SELECT json_build_array(${selected}) AS row FROM unnest(${parameters(columns)}) AS w (${by.join(', ')})
      CROSS JOIN LATERAL (SELECT * FROM ${table.path} WHERE ${rules.join(' AND ')} OFFSET 0) ${table.name}`,
    values: columns.map((column, at) =>
      arrayOf(
        column,
        keys.map((key) => key[at]),
      ),
    ),
  }
}

export const valuesIn = (row: Row): unknown[] => row['row'] as unknown[]

export const readPartition = (row: Row): StoredPartition => partitions.read(valuesIn(row))

const PARTITION = `${asJson(partitions)} AS row`

export const leasesStatement = ({ dueAt, id }: DuePosition, limit: number): Statement => ({
  text: `SELECT ${PARTITION} FROM baton.partition
    WHERE lease_ends_at IS NOT NULL AND (lease_ends_at, id) > ($1, $2)
    ORDER BY lease_ends_at, id LIMIT $3`,
  values: [dueAt, id, limit],
})

/** One list of rows per query, from rows that have the position of their query. */
export function readLists(rows: readonly Row[], queries: number): StoredPartition[][] {
  const lists = Array.from({ length: queries }, (): StoredPartition[] => [])
  for (const row of rows) lists[(row['n'] as number) - 1]?.push(readPartition(row))
  return lists
}

/**
/**
 * Parked and begun partitions and those that failed are few and have partial indexes; other states are filtered.
 * `id + 0` keeps the planner from using the index on id: rows are to be read in order of their index.
 */
export function rowsStatement(queries: readonly RowsOfLane[]): Statement {
  const conditions = new Set(queries.map(conditionOfRows))
  const [condition = ALL_ROWS] = conditions
  const numbers = (field: 'lane' | 'tail' | 'afterIndex' | 'lastIndex' | 'limit') =>
    plainArray(queries.map((query) => query[field] ?? Number.MAX_SAFE_INTEGER))
  return {
    text: `SELECT w.n, ${PARTITION}
      FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::text[], $7::text[])
        WITH ORDINALITY AS w (lane, tail, after, last, most, state, failure, n) CROSS JOIN LATERAL
      (SELECT * FROM baton.partition WHERE lane = w.lane AND idx > w.after AND idx <= w.last AND id + 0 <= w.tail
         AND ${conditions.size > 1 ? MIXED_ROWS : condition}
       ORDER BY idx LIMIT w.most) partition
      ORDER BY w.n, partition.idx`,
    values: [
      numbers('lane'),
      numbers('tail'),
      numbers('afterIndex'),
      numbers('lastIndex'),
      numbers('limit'),
      textArray(queries.map((query) => query.state)),
      textArray(queries.map(({ failure }) => failure ?? null)),
    ],
  }
}

const ALL_ROWS = 'true'
const MIXED_ROWS = `CASE w.state WHEN 'begun' THEN is_begun ELSE w.state IS NULL OR state = w.state COLLATE "C" END
  AND (w.failure IS NULL OR failure = w.failure COLLATE "C")`

function conditionOfRows({ state, failure }: RowsOfLane): string {
  if (failure === undefined) {
    if (state === null) return ALL_ROWS
    if (state === 'begun') return 'is_begun'
    return state === 'parked' ? 'is_parked' : 'state = w.state COLLATE "C"'
  }
  if (state === 'parked') return 'parked_as = w.failure COLLATE "C"'
  return `failure = w.failure COLLATE "C"${state === null ? '' : ' AND state = w.state COLLATE "C"'}`
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
