import { compiled, type Fields, type Kind, pick } from '../../handoff/fields.ts'
import {
  comparedFields,
  descriptorFields,
  type KnownPartition,
  type PartitionDescriptor,
  type PartitionStatus,
  partitionFields,
  type StoredPartition,
  statusFields,
  untouched,
} from '../../handoff/partition.ts'
import {
  keyFields,
  laneFields,
  laneTableFields,
  levelFields,
  paceFields,
  type StoredKey,
  type StoredLane,
  type StoredLaneTable,
  type StoredLevel,
  type StoredPace,
  type StoredTableSettings,
  type StoredTask,
  tableSettingsFields,
  taskFields,
} from '../../handoff/stored.ts'
import { type Column, columnsOf, rowOf, type TableOptions, valueIn } from '../sql-columns.ts'

/** A tag may exceed a safe integer, and is sent as text in the JSON arrays in which rows are read. */
const sqlTypes: Readonly<Record<Kind, string>> = {
  key: 'bigint',
  integer: 'bigint',
  'integer?': 'bigint',
  small: 'integer',
  tag: 'bigint',
  'tag?': 'bigint',
  'time?': 'bigint',
  text: 'text',
  'text?': 'text',
  'filled?': 'text',
  flag: 'boolean',
  json: 'json',
  'json?': 'json',
  list: 'json',
  'kept?': 'json',
}

/** The columns of a table. Builds the SQL that writes and reads its rows, and converts the values. */
export class Columns<Stored extends object> {
  /** Reads an array made by `asJson`. */
  readonly read: (values: readonly unknown[]) => Stored
  readonly #columns: readonly Column[]
  /** The value of each column in a row. */
  readonly #values: readonly ((row: Stored) => unknown)[]

  constructor(fields: Fields<Stored>, options: TableOptions<Stored> = {}) {
    this.#columns = columnsOf(fields, options)
    this.#values = this.#columns.map((column) => compiled('row', valueIn(column)))
    const read = rowOf(this.#columns, ({ kind }, at) =>
      isTag(kind) ? `readTag(values[${at}])` : `values[${at}]`,
    )
    this.read = compiled('values', read, { readTag })
  }

  /**
   * In SQL: the columns in a declaration of the table, without counts. Those of a fixed width come first, and
   * those that may be null last: then fewer values must be read to find another.
   */
  get declarations(): string {
    const text = ({ name, kind, declared }: Column) => {
      const collation = sqlTypes[kind] === 'text' ? ' COLLATE "C"' : ''
      const rule = kind === 'key' ? ' PRIMARY KEY' : kind.endsWith('?') ? '' : ' NOT NULL'
      return `${name} ${sqlTypes[kind]}${collation}${rule} ${declared}`.trimEnd()
    }
    const plain = this.#columns.filter(({ state }) => state === null)
    const inOrder = plain.toSorted((a, b) => positionOf(a.kind) - positionOf(b.kind))
    return inOrder.map(text).join(',\n  ')
  }

  get names(): string[] {
    return this.#columns.map(({ name }) => name)
  }

  /** The fields of a row that was read. */
  get fields(): string[] {
    return [...new Set(this.#columns.map(({ field }) => field))]
  }

  /** In SQL: the SET list of an upsert. */
  changes(table: string, key: string): string {
    const changed = this.#columns.filter(({ name }) => name !== key)
    return changed
      .map(({ name, kind }) =>
        kind === 'kept?'
          ? `${name} = coalesce(excluded.${name}, ${table}.${name})`
          : `${name} = excluded.${name}`,
      )
      .join(', ')
  }

  /** In SQL: the columns of a row as one JSON array. */
  asJson(alias: string): string {
    const values = this.#columns.map(({ name, kind }) => `${alias}.${name}${isTag(kind) ? '::text' : ''}`)
    return `json_build_array(${values.join(', ')})`
  }

  /** In SQL: one array parameter per column, starting with parameter `first`. */
  arrayParameters(first: number): string {
    return this.#columns.map(({ kind }, at) => `$${first + at}::${sqlTypes[kind]}[]`).join(', ')
  }

  /** In SQL: the rows of these array parameters. */
  unnest(alias: string, firstParameter = 1): string {
    return `unnest(${this.arrayParameters(firstParameter)}) AS ${alias} (${this.names.join(', ')})`
  }

  /**
   * In SQL: the values of such a row. Null is sent as an empty text if the field is never empty, because NULL
   * in an array depends on array_nulls.
   */
  from(alias: string): string {
    return this.#columns
      .map(({ name, kind }) => (kind === 'filled?' ? `nullif(${alias}.${name}, '')` : `${alias}.${name}`))
      .join(', ')
  }

  /** The values of the array parameters. */
  arrays(rows: readonly Stored[]): string[] {
    return this.#columns.map(({ kind }, at) => {
      const values = rows.map((row) => this.#values[at]?.(row))
      if (sqlTypes[kind] === 'json') return textArray(values.map(asJson))
      if (kind === 'filled?') return filledArray(values as (string | null)[])
      return sqlTypes[kind] === 'text'
        ? textArray(values as (string | null)[])
        : plainArray(values as Plain[])
    })
  }
}

type Plain = number | bigint | boolean | null

/** A PostgreSQL array literal of elements that need no quotes. */
export function plainArray(elements: readonly Plain[]): string {
  let text = '{'
  for (let at = 0; at < elements.length; at += 1) text += `${at === 0 ? '' : ','}${elements[at] ?? 'NULL'}`
  return `${text}}`
}

const NEEDS_ESCAPE = /["\\]/

export function textArray(elements: readonly (string | null)[]): string {
  let text = '{'
  for (let at = 0; at < elements.length; at += 1) {
    const element = elements[at] ?? null
    const quoted =
      element === null
        ? 'NULL'
        : `"${NEEDS_ESCAPE.test(element) ? element.replaceAll(/["\\]/g, '\\$&') : element}"`
    text += at === 0 ? quoted : `,${quoted}`
  }
  return `${text}}`
}

/** An array without any value is sent empty: unnest pads shorter arrays with NULL. */
function filledArray(elements: readonly (string | null)[]): string {
  const hasNone = elements.every((element) => element === null)
  return hasNone ? '{}' : textArray(elements.map((element) => element ?? ''))
}

const isTag = (kind: Kind): boolean => kind.startsWith('tag')

const readTag = (value: string | null): bigint | null => (value === null ? null : BigInt(value))

const typesInOrder = ['bigint', 'integer', 'boolean', 'text', 'json']

const positionOf = (kind: Kind): number =>
  2 * typesInOrder.indexOf(sqlTypes[kind]) + (kind.endsWith('?') ? 1 : 0)

const asJson = (value: unknown): string | null => (value === null ? null : JSON.stringify(value))

// The columns of each table. The tables are created in schema.ts.

export const taskColumns = new Columns<StoredTask>(taskFields, {
  tallied: true,
  declared: { taskId: 'UNIQUE', durations: "DEFAULT '[]'" },
})

export const laneColumns = new Columns<StoredLane>(laneFields, {
  tallied: true,
  defaults: { busyMillis: 0, attemptsDone: 0 },
})

export const levelColumns = new Columns<StoredLevel>(levelFields)
export const laneTableColumns = new Columns<StoredLaneTable>(laneTableFields)

/** New rows are inserted with the descriptor only. */
export const partitionColumns = new Columns<StoredPartition>(partitionFields, {
  defaults: untouched(),
  declared: { ofSeveral: 'DEFAULT false' },
})

// Groups of columns of the same table.
export const descriptorColumns = new Columns<PartitionDescriptor>(descriptorFields)
export const knownColumns = new Columns<KnownPartition>(pick(descriptorFields, comparedFields))
export const statusColumns = new Columns<PartitionStatus>(statusFields)

export const tableSettingsColumns = new Columns<StoredTableSettings>(tableSettingsFields, {
  declared: { table: 'PRIMARY KEY' },
})

export const keyColumns = new Columns<StoredKey>(keyFields, { declared: { key: 'PRIMARY KEY' } })
export const paceColumns = new Columns<StoredPace>(paceFields)

/** Larger statements are not faster per row, and they delay other statements for longer. */
const CHUNK = 250

export function* inChunks<One>(all: Iterable<One>): Iterable<One[]> {
  let chunk: One[] = []
  for (const one of all) {
    chunk.push(one)
    if (chunk.length < CHUNK) continue
    yield chunk
    chunk = []
  }
  if (chunk.length > 0) yield chunk
}
