import type { Kind } from '../../handoff/fields.ts'
import { type Codec, type Column, type Dialect, readTag, type SqlTable } from '../sql-table.ts'
import { tablesIn } from '../sql-tables.ts'
import type { RowStatement } from '../statements.ts'
import { conditions } from './conditions.ts'
import type { Statement } from './session/connection.ts'

// Rows are written as one array for each column, and read as JSON arrays.

const sqlTypes: Readonly<Record<Kind, string>> = {
  key: 'bigint',
  integer: 'bigint',
  'integer?': 'bigint',
  small: 'integer',
  tag: 'bigint',
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

function codecOf(kind: Kind): Codec {
  const type = sqlTypes[kind]
  const collated = type === 'text' ? 'text COLLATE "C"' : type
  const declared = `${collated}${kind === 'key' ? ' PRIMARY KEY' : kind.endsWith('?') ? '' : ' NOT NULL'}`
  if (kind === 'tag') return { type: declared, read: readTag }
  if (type !== 'json') return { type: declared }
  return { type: declared, write: (value: unknown) => (value === null ? null : JSON.stringify(value)) }
}

const dialect: Dialect = {
  schema: 'baton.',
  least: 'least',
  greatest: 'greatest',
  array: 'json_build_array',
  list: 'json_agg',
  nested: (subquery) => subquery,
  parsed: (json) => json,
  codecs: Object.fromEntries(
    Object.keys(sqlTypes).map((kind) => [kind, codecOf(kind as Kind)]),
  ) as unknown as Dialect['codecs'],
  // Fixed widths first and those that may be null last: fewer values are read to find another.
  inOrder: (columns) => columns.toSorted((a, b) => positionOf(a.kind) - positionOf(b.kind)),
  indexed: () => '',
}

const isText = (kind: Kind): boolean => sqlTypes[kind] === 'text'

const typesInOrder = ['bigint', 'integer', 'boolean', 'text', 'json']

const positionOf = (kind: Kind): number =>
  2 * typesInOrder.indexOf(sqlTypes[kind]) + (kind.endsWith('?') ? 1 : 0)

export const postgres = tablesIn(dialect, conditions)

type Columns = Pick<SqlTable<object>, 'name' | 'path' | 'columns' | 'names' | 'selected'>

/** In SQL: the row as one JSON array, which `read` of the table expects. */
export const asJson = (table: Columns, alias = table.name): string =>
  `json_build_array(${table.selected(alias)})`

/** In SQL: one array parameter for each column, starting with parameter `first`. */
const parameters = (columns: readonly Column[], first = 1): string =>
  columns.map(({ kind }, at) => `$${first + at}::${sqlTypes[kind]}[]`).join(', ')

/** In SQL: the rows of the array parameters of a table. */
export const unnest = ({ columns, names }: Columns, first = 1): string =>
  `unnest(${parameters(columns, first)}) AS n (${names.join(', ')})`

/** Null is sent as an empty text if the field is never empty: NULL in an array depends on array_nulls. */
export function insertFrom({ path, names, columns }: Columns, rows: string): string {
  const values = columns.map(({ name, kind }) => (kind === 'filled?' ? `nullif(n.${name}, '')` : `n.${name}`))
  return `INSERT INTO ${path} (${names.join(', ')}) SELECT ${values.join(', ')} FROM ${rows}`
}

/** In SQL. The parameters are the arrays of its table. */
export function textOf<Row extends object>({ verb, table, onConflict }: RowStatement<Row>): string {
  const { name, path, names, key } = table
  const equal = (columns: readonly string[]) => columns.map((column) => `${name}.${column} = n.${column}`)
  if (verb === 'insert') return `${insertFrom(table, unnest(table))} ${onConflict}`
  if (verb === 'remove')
    return `DELETE FROM ${path} USING ${unnest(table)} WHERE ${equal(names).join(' AND ')}`
  const changed = names.filter((column) => !key.includes(column)).map((column) => `${column} = n.${column}`)
  return `UPDATE ${path} SET ${changed.join(', ')} FROM ${unnest(table)} WHERE ${equal(key).join(' AND ')}`
}

export function arraysOf<Row extends object>(table: SqlTable<Row>, rows: readonly Row[]): string[] {
  const values = rows.map((row) => table.values(row))
  return table.columns.map((column, at) =>
    arrayOf(
      column,
      values.map((row) => row[at]),
    ),
  )
}

function arrayOf({ kind }: Column, values: readonly unknown[]): string {
  if (kind === 'filled?') return filledArray(values as (string | null)[])
  const isQuoted = isText(kind) || sqlTypes[kind] === 'json'
  return isQuoted ? textArray(values as (string | null)[]) : plainArray(values as Plain[])
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

/** Larger statements are not faster per row, and they delay other statements for longer. */
const CHUNK = 250

/** Sends rows with a statement whose parameters are the arrays of a table, some hundred at a time. */
export function* sending<Row extends object>(
  table: SqlTable<Row>,
  text: string,
  rows: Iterable<Row>,
): Iterable<Statement> {
  for (const chunk of inChunks(rows)) yield { text, values: arraysOf(table, chunk) }
}

function* inChunks<One>(all: Iterable<One>): Iterable<One[]> {
  let chunk: One[] = []
  for (const one of all) {
    chunk.push(one)
    if (chunk.length < CHUNK) continue
    yield chunk
    chunk = []
  }
  if (chunk.length > 0) yield chunk
}
