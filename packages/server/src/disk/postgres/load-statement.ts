import type { Loaded, LoadedRows } from '../../handoff/disk.ts'
import type { StoredPartition } from '../../handoff/partition.ts'
import {
  keyColumns,
  laneColumns,
  laneTableColumns,
  levelColumns,
  partitionColumns,
  tableTimeColumns,
  taskColumns,
} from './columns.ts'
import type { Row, Statement } from './session/connection.ts'

/** Ids found by a part, by the position of the request that they answer. */
type Found = ReadonlyMap<number, readonly number[]>

/**
 * Builds one statement that reads rows of several tables: partitions with their lanes, and lanes with their
 * tasks and levels. A single statement takes one round trip, and parent rows need no second query.
 *
 * A part selects rows by SQL that yields (n, a, b) and a row `r`: n is the position of the request, a and b
 * the sort order within it.
 */
export class LoadStatement {
  readonly #values: unknown[] = []
  readonly #partitions: string[] = []
  /** Parts of partitions whose lanes are read, too. */
  readonly #withLanes: string[] = []
  readonly #lanes: string[] = []
  readonly #tasks: string[] = []
  readonly #levels: string[] = []
  readonly #tableTimes: string[] = []
  #keys: string | undefined

  /** Adds a parameter and returns its SQL. */
  value(value: unknown, type: string): string {
    this.#values.push(value)
    return `$${this.#values.length}::${type}`
  }

  /** Partitions with their lanes. */
  partitions(part: string, order: string, from: string): void {
    this.#withLanes.push(`'${part}'`)
    this.partitionsAlone(part, order, from)
  }

  partitionsAlone(part: string, order: string, from: string): void {
    this.#partitions.push(
      `SELECT '${part}' AS part, ${order}, r.lane, ${partitionColumns.asJson('r')} AS row FROM ${from}`,
    )
  }

  lanes(part: string, order: string, from: string): void {
    this.#lanes.push(
      `SELECT '${part}' AS part, ${order}, r.id AS lane, r.task, r.level, ${laneColumns.asJson('r')} AS row FROM ${from}`,
    )
  }

  /** `ids` is SQL that yields ids of tasks. */
  tasks(ids: string): void {
    this.#tasks.push(ids)
  }

  levels(levels: string): void {
    this.#levels.push(levels)
  }

  /** `pairs` is SQL that yields pairs of level and name. */
  tableTimes(pairs: string): void {
    this.#tableTimes.push(pairs)
  }

  keys(from: string): void {
    this.#keys = from
  }

  get statement(): Statement {
    const found: string[] = []
    const columns: string[] = []
    // Rows become JSON where they are read, because listing their columns a second time costs planning time.
    const take = (name: string, rows: readonly string[]) => {
      found.push(`${name} AS MATERIALIZED (${rows.join('\nUNION ALL ')})`)
      columns.push(
        `(SELECT json_agg(json_build_array(part, n, row) ORDER BY part, n, a, b) FROM ${name}) AS ${name}`,
      )
    }
    const belonging = (name: string, table: string, key: string, ids: readonly string[], json: string) => {
      columns.push(`(SELECT json_agg(${json}) FROM (SELECT DISTINCT * FROM (${ids.join(' UNION ALL ')}) u) w (key)
        CROSS JOIN LATERAL (SELECT * FROM baton.${table} WHERE ${key} = w.key OFFSET 0) r) AS ${name}`)
    }
    const lanes = [...this.#lanes]
    const tasks = [...this.#tasks]
    const levels = [...this.#levels]
    const times = [...this.#tableTimes]
    if (this.#partitions.length > 0) take('partitions', this.#partitions)
    if (this.#withLanes.length > 0)
      lanes.push(
        `SELECT 'of' AS part, 0 AS n, 0 AS a, 0 AS b, r.id AS lane, r.task, r.level, ${laneColumns.asJson('r')} AS row
         FROM (SELECT DISTINCT lane FROM partitions WHERE part IN (${this.#withLanes.join(', ')})) p CROSS JOIN LATERAL
           (SELECT * FROM baton.lane WHERE id = p.lane OFFSET 0) r`,
      )
    if (lanes.length > 0) {
      take('lanes', lanes)
      tasks.push('SELECT task FROM lanes')
      levels.push('SELECT level FROM lanes')
      found.push(`lane_tables AS MATERIALIZED (
        SELECT r.level, r.name, ${laneTableColumns.asJson('r')} AS row FROM (SELECT DISTINCT lane FROM lanes) w
        CROSS JOIN LATERAL (SELECT * FROM baton.lane_table WHERE lane = w.lane OFFSET 0) r)`)
      columns.push('(SELECT json_agg(row) FROM lane_tables) AS lane_tables')
      times.push('SELECT level, name FROM lane_tables')
    }
    if (times.length > 0)
      columns.push(`(SELECT json_agg(${tableTimeColumns.asJson('r')})
        FROM (SELECT DISTINCT * FROM (${times.join(' UNION ALL ')}) u) w (level, name)
        CROSS JOIN LATERAL (SELECT * FROM baton.table_time WHERE level = w.level AND name = w.name OFFSET 0) r) AS table_times`)
    if (tasks.length > 0) belonging('tasks', 'task', 'id', tasks, taskColumns.asJson('r'))
    if (levels.length > 0) belonging('levels', 'level', 'level', levels, levelColumns.asJson('r'))
    if (this.#keys !== undefined)
      columns.push(`(SELECT json_agg(${keyColumns.asJson('r')}) FROM (${this.#keys}) r) AS keys`)
    const before = found.length === 0 ? '' : `WITH ${found.join(',\n')}\n`
    return { text: `${before}SELECT ${columns.join(',\n')}`, values: this.#values }
  }

  /** Whether the statement would read nothing. */
  get isEmpty(): boolean {
    const parts = [this.#partitions, this.#lanes, this.#tasks, this.#levels, this.#tableTimes]
    return this.#keys === undefined && parts.every(({ length }) => length === 0)
  }
}

type Values = readonly unknown[]

/** The rows that such a statement found. */
export class LoadAnswer {
  readonly rows: LoadedRows
  readonly keys: Loaded['keys']
  readonly #ids = new Map<string, Map<number, number[]>>()

  constructor(row: Row | undefined) {
    const read = (name: string) => (row?.[name] ?? []) as readonly Values[]
    const partitions = new Map<number, StoredPartition>()
    for (const [part, n, values] of read('partitions')) {
      const partition = partitionColumns.read(values as Values)
      partitions.set(partition.id, partition)
      this.#place(part as string, n as number, partition.id)
    }
    const lanes = new Map<number, Loaded['lanes'][number]>()
    for (const [part, n, values] of read('lanes')) {
      const lane = laneColumns.read(values as Values)
      lanes.set(lane.id, lane)
      this.#place(part as string, n as number, lane.id)
    }
    this.rows = {
      partitions: [...partitions.values()],
      lanes: [...lanes.values()],
      tasks: read('tasks').map((values) => taskColumns.read(values)),
      levels: read('levels').map((values) => levelColumns.read(values)),
      laneTables: read('lane_tables').map((values) => laneTableColumns.read(values)),
      tableTimes: read('table_times').map((values) => tableTimeColumns.read(values)),
    }
    this.keys = read('keys').map((values) => keyColumns.read(values))
  }

  /** The ids found by a part, one list per request. */
  ids(part: string, asked: number): number[][] {
    const found: Found = this.#ids.get(part) ?? new Map()
    return Array.from({ length: asked }, (_, at) => [...(found.get(at + 1) ?? [])])
  }

  #place(part: string, n: number, id: number): void {
    const found = this.#ids.get(part) ?? new Map<number, number[]>()
    this.#ids.set(part, found)
    const ids = found.get(n)
    if (ids === undefined) found.set(n, [id])
    else ids.push(id)
  }
}
