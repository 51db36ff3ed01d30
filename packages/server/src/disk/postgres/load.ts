import type { Due, Loaded, Needs } from '../../handoff/disk.ts'
import { partitionStates, unfinishedStates } from '../../handoff/rules/life-cycle.ts'
import { plainArray, textArray } from './columns.ts'
import { LoadAnswer, LoadStatement } from './load-statement.ts'
import type { Row, Statement } from './session/connection.ts'

type Requested<Part extends keyof Needs> = NonNullable<Needs[Part]>

const NOTHING: Loaded = {
  tasks: [],
  lanes: [],
  levels: [],
  laneTables: [],
  tableTimes: [],
  partitions: [],
  keys: [],
  order: [],
  nextLanes: [],
  rows: [],
  fresh: [],
  returned: [],
}

/** Null if nothing is needed. */
export function loadStatement(needs: Needs): Statement | null {
  const parts = new LoadStatement()
  const numbers = (values: readonly number[]) => parts.value(plainArray(values), 'bigint[]')
  const texts = (values: readonly string[]) => parts.value(textArray(values), 'text[]')
  if (isRequested(needs.tasks)) parts.tasks(`SELECT unnest(${numbers(needs.tasks)})`)
  if (isRequested(needs.taskNames))
    parts.tasks(`SELECT id FROM unnest(${texts(needs.taskNames)}) AS w (name) CROSS JOIN LATERAL
      (SELECT id FROM baton.task WHERE task_id = w.name COLLATE "C" OFFSET 0) t`)
  if (isRequested(needs.levels)) parts.levels(`SELECT unnest(${numbers(needs.levels)})`)
  if (isRequested(needs.tableTimes))
    parts.tableTimes(
      `SELECT * FROM unnest(${numbers(needs.tableTimes.map(({ level }) => level))}, ${texts(needs.tableTimes.map(({ table }) => table))})`,
    )
  if (isRequested(needs.keys))
    parts.keys(`SELECT r.* FROM unnest(${texts(needs.keys)}) AS w (key) CROSS JOIN LATERAL
      (SELECT * FROM baton.pull_key WHERE key = w.key COLLATE "C" OFFSET 0) r`)
  if (isRequested(needs.lanes))
    parts.lanes(
      'lanes',
      '0 AS n, w.at AS a, 0 AS b',
      `unnest(${numbers(needs.lanes)}) WITH ORDINALITY AS w (id, at) CROSS JOIN LATERAL
       (SELECT * FROM baton.lane WHERE id = w.id OFFSET 0) r`,
    )
  if (isRequested(needs.lanesOf)) {
    const pairs = needs.lanesOf.flatMap(({ task, levels }) => levels.map((level) => [task, level] as const))
    parts.lanes(
      'lanesOf',
      '0 AS n, w.at AS a, 0 AS b',
      `unnest(${numbers(pairs.map(([task]) => task))}, ${numbers(pairs.map(([, level]) => level))})
         WITH ORDINALITY AS w (task, level, at) CROSS JOIN LATERAL
       (SELECT * FROM baton.lane WHERE task = w.task AND level = w.level OFFSET 0) r`,
    )
  }
  if (isRequested(needs.nextLanes)) addNextLanes(parts, needs.nextLanes)
  if (needs.order !== undefined) addOrder(parts, needs.order)
  if (isRequested(needs.partitions))
    parts.partitions(
      'partitions',
      '0 AS n, w.at AS a, 0 AS b',
      `unnest(${numbers(needs.partitions)}) WITH ORDINALITY AS w (id, at) CROSS JOIN LATERAL
       (SELECT * FROM baton.partition WHERE id = w.id OFFSET 0) r`,
    )
  if (isRequested(needs.named)) {
    const pairs = needs.named.flatMap(({ lane, indexes }) => indexes.map((index) => [lane, index] as const))
    parts.partitions(
      'named',
      '0 AS n, w.at AS a, 0 AS b',
      `unnest(${numbers(pairs.map(([lane]) => lane))}, ${numbers(pairs.map(([, index]) => index))})
         WITH ORDINALITY AS w (lane, idx, at) CROSS JOIN LATERAL
       (SELECT * FROM baton.partition WHERE lane = w.lane AND idx = w.idx OFFSET 0) r`,
    )
  }
  if (isRequested(needs.rows)) addRows(parts, needs.rows)
  if (isRequested(needs.fresh)) addFresh(parts, needs.fresh)
  if (isRequested(needs.returned)) addReturned(parts, needs.returned)
  return parts.isEmpty ? null : parts.statement
}

export function readLoaded(needs: Needs, row: Row | null): Loaded {
  if (row === null) return NOTHING
  const found = new LoadAnswer(row)
  return {
    ...found.rows,
    keys: found.keys,
    order: found.ids('order', 1)[0] ?? [],
    nextLanes: found.ids('nextLanes', needs.nextLanes?.length ?? 0),
    rows: found.ids('rows', needs.rows?.length ?? 0),
    fresh: found.ids('fresh', needs.fresh?.length ?? 0),
    returned: found.ids('returned', needs.returned?.length ?? 0),
  }
}

const isRequested = <One>(part: readonly One[] | undefined): part is readonly One[] =>
  part !== undefined && part.length > 0

/** In SQL: how many partitions are in one of these states. */
export function sumOf(states: readonly string[]): string {
  return states.map((state) => `${state}_partitions`).join(' + ')
}

/** In SQL: whether retention has left any rows of a lane. */
export const HAS_ROWS = `${sumOf(partitionStates)} > purged`

const HAVING = {
  any: 'true',
  parked: 'parked_partitions > 0',
  waiting: 'turn IS NOT NULL',
  unfinished: `${sumOf(unfinishedStates)} > 0`,
  rows: HAS_ROWS,
} as const

/** One branch per request, because the condition on the lane is part of the SQL. */
function addNextLanes(parts: LoadStatement, asked: Requested<'nextLanes'>): void {
  for (const [at, { task, from, having, limit }] of asked.entries()) {
    parts.lanes(
      'nextLanes',
      `${at + 1} AS n, r.level AS a, 0 AS b`,
      `(SELECT * FROM baton.lane
        WHERE task = ${parts.value(task, 'bigint')} AND level >= ${parts.value(from, 'bigint')} AND ${HAVING[having]}
        ORDER BY level LIMIT ${parts.value(limit, 'bigint')}) r`,
    )
  }
}

function addOrder(parts: LoadStatement, { after, limit, table }: Requested<'order'>): void {
  const id = table === undefined ? 'id' : 'lane'
  const behind =
    after === null
      ? ''
      : `AND (level, turn, ${id}) > (${parts.value(after.level, 'bigint')}, ${parts.value(after.turn, 'bigint')}, ${parts.value(after.lane, 'bigint')})`
  if (table !== undefined) {
    parts.lanes(
      'order',
      '1 AS n, row_number() OVER (ORDER BY w.level, w.turn, w.lane) AS a, 0 AS b',
      `(SELECT level, turn, lane FROM baton.lane_table
        WHERE name = ${parts.value(table, 'text')} COLLATE "C" AND turn IS NOT NULL ${behind}
        ORDER BY level, turn, lane LIMIT ${parts.value(limit, 'bigint')}) w
       CROSS JOIN LATERAL (SELECT * FROM baton.lane WHERE id = w.lane OFFSET 0) r`,
    )
    return
  }
  parts.lanes(
    'order',
    '1 AS n, row_number() OVER (ORDER BY r.level, r.turn, r.id) AS a, 0 AS b',
    `(SELECT * FROM baton.lane WHERE turn IS NOT NULL ${behind}
      ORDER BY level, turn, id LIMIT ${parts.value(limit, 'bigint')}) r`,
  )
}

/**
 * Parked partitions are few and have a partial index; other states are filtered. `id + 0` keeps the planner
 * from using the index on id: rows are to be read in order of their index.
 */
function addRows(parts: LoadStatement, asked: Requested<'rows'>): void {
  for (const [at, { lane, tail, state, afterIndex, limit }] of asked.entries()) {
    const isState =
      state === null
        ? ''
        : state === 'parked'
          ? 'AND is_parked'
          : `AND state = ${parts.value(state, 'text')} COLLATE "C"`
    parts.partitions(
      'rows',
      `${at + 1} AS n, r.idx AS a, 0 AS b`,
      `(SELECT * FROM baton.partition WHERE lane = ${parts.value(lane, 'bigint')}
          AND idx > ${parts.value(afterIndex, 'bigint')} AND id + 0 <= ${parts.value(tail, 'bigint')} ${isState}
        ORDER BY idx LIMIT ${parts.value(limit, 'bigint')}) r`,
    )
  }
}

/**
 * If any request names a table, all get a branch each. Most lanes have one table and need no such condition.
 */
const areOfTables = (asked: readonly { readonly table?: string }[]): boolean =>
  asked.some(({ table }) => table !== undefined)

const isOfTable = (parts: LoadStatement, table: string | undefined): string =>
  table === undefined ? '' : `AND compute_table = ${parts.value(table, 'text')} COLLATE "C"`

function addFreshOfTables(parts: LoadStatement, asked: Requested<'fresh'>): void {
  for (const [at, { lane, table, after, tail, limit }] of asked.entries()) {
    parts.partitionsAlone(
      'fresh',
      `${at + 1} AS n, r.id AS a, 0 AS b`,
      `(SELECT * FROM baton.partition WHERE lane = ${parts.value(lane, 'bigint')}
          AND id > ${parts.value(after, 'bigint')} AND id <= ${parts.value(tail, 'bigint')} ${isOfTable(parts, table)}
        ORDER BY id LIMIT ${parts.value(limit, 'bigint')}) r`,
    )
  }
}

function addReturnedOfTables(parts: LoadStatement, asked: Requested<'returned'>): void {
  for (const [at, { lane, table, line, after, limit }] of asked.entries()) {
    parts.partitionsAlone(
      'returned',
      `${at + 1} AS n, r.returned_at AS a, r.id AS b`,
      `(SELECT * FROM baton.partition WHERE lane = ${parts.value(lane, 'bigint')}
          AND returned_line = ${parts.value(line, 'text')} COLLATE "C" ${isOfTable(parts, table)}
          AND (returned_at, id) > (${parts.value(after?.dueAt ?? -1, 'bigint')}, ${parts.value(after?.id ?? -1, 'bigint')})
        ORDER BY returned_at, id LIMIT ${parts.value(limit, 'bigint')}) r`,
    )
  }
}

function addFresh(parts: LoadStatement, asked: Requested<'fresh'>): void {
  if (areOfTables(asked)) {
    addFreshOfTables(parts, asked)
    return
  }
  const column = (field: 'lane' | 'after' | 'tail' | 'limit') =>
    parts.value(plainArray(asked.map((one) => one[field])), 'bigint[]')
  parts.partitionsAlone(
    'fresh',
    'w.n, r.id AS a, 0 AS b',
    `unnest(${column('lane')}, ${column('after')}, ${column('tail')}, ${column('limit')})
       WITH ORDINALITY AS w (lane, after, tail, most, n) CROSS JOIN LATERAL
     (SELECT * FROM baton.partition WHERE lane = w.lane AND id > w.after AND id <= w.tail
      ORDER BY id LIMIT w.most) r`,
  )
}

function addReturned(parts: LoadStatement, asked: Requested<'returned'>): void {
  if (areOfTables(asked)) {
    addReturnedOfTables(parts, asked)
    return
  }
  const numbers = (values: readonly number[]) => parts.value(plainArray(values), 'bigint[]')
  parts.partitionsAlone(
    'returned',
    'w.n, r.returned_at AS a, r.id AS b',
    `unnest(${numbers(asked.map(({ lane }) => lane))}, ${parts.value(textArray(asked.map(({ line }) => line)), 'text[]')},
       ${numbers(asked.map(({ after }) => after?.dueAt ?? -1))}, ${numbers(asked.map(({ after }) => after?.id ?? -1))},
       ${numbers(asked.map(({ limit }) => limit))})
       WITH ORDINALITY AS w (lane, line, due_at, id, most, n) CROSS JOIN LATERAL
     (SELECT * FROM baton.partition WHERE lane = w.lane AND returned_line = w.line COLLATE "C"
        AND (returned_at, id) > (w.due_at, w.id)
      ORDER BY returned_at, id LIMIT w.most) r`,
  )
}

/**
 * The first due partitions by a column that is null for all others, and the due time of the next one after
 * them.
 */
export function dueStatement(now: number, limit: number, leases: boolean): Statement {
  const parts = new LoadStatement()
  const kinds = [
    ...(leases ? [['leased', 'lease_ends_at'] as const] : []),
    ['delayed', 'delayed_until'] as const,
  ]
  for (const [part, column] of kinds) {
    parts.partitions(
      part,
      `1 AS n, r.${column} AS a, r.id AS b`,
      `(SELECT * FROM baton.partition WHERE ${column} <= ${parts.value(now, 'bigint')}
        ORDER BY ${column}, id LIMIT ${parts.value(limit, 'bigint')}) r`,
    )
  }
  const { text, values } = parts.statement
  const next = kinds.map(
    ([part, column]) => `(SELECT ${column} FROM baton.partition WHERE ${column} IS NOT NULL
       ORDER BY ${column}, id OFFSET (SELECT count(*) FROM partitions WHERE part = '${part}') LIMIT 1)`,
  )
  return { text: `${text}, least(${next.join(', ')}) AS next_due_at`, values: values ?? [] }
}

export function readDue(row: Row | undefined): Due {
  const found = new LoadAnswer(row)
  return {
    ...found.rows,
    leased: found.ids('leased', 1)[0] ?? [],
    delayed: found.ids('delayed', 1)[0] ?? [],
    nextDueAt: (row?.['next_due_at'] ?? null) as number | null,
  }
}
