import type { DatabaseSync, SQLInputValue } from 'node:sqlite'
import { type Codec, type Dialect, readTag, type SqlTable } from '../sql-table.ts'
import { tablesIn } from '../sql-tables.ts'
import { insert, type RowStatement } from '../statements.ts'
import { conditions } from './conditions.ts'

const integer: Codec = { type: 'INTEGER NOT NULL' }
const integerOrNull: Codec = { type: 'INTEGER' }
const textOrNull: Codec = { type: 'TEXT' }

const jsonOrNull: Codec = {
  type: 'TEXT',
  read: (value) => (value === null ? null : (JSON.parse(value as string) as unknown)),
  write: (value: unknown) => (value === null ? null : JSON.stringify(value)),
}

const dialect: Dialect = {
  schema: '',
  least: 'min',
  greatest: 'max',
  array: 'json_array',
  list: 'json_group_array',
  nested: (subquery) => `json(${subquery})`,
  parsed: (json) => (json === null ? null : (JSON.parse(json as string) as unknown)),
  inOrder: (columns) => columns,
  indexed: (index) => `INDEXED BY ${index}`,
  codecs: {
    key: { type: 'INTEGER PRIMARY KEY' },
    integer,
    'integer?': integerOrNull,
    small: integer,
    // The driver writes 64-bit integers, but does not read those that do not fit a number.
    tag: { ...integer, read: readTag },
    'time?': integerOrNull,
    text: { type: 'TEXT NOT NULL' },
    'text?': textOrNull,
    'filled?': textOrNull,
    flag: { ...integer, read: (value) => value === 1, write: (value: boolean) => (value ? 1 : 0) },
    json: { ...jsonOrNull, type: 'TEXT NOT NULL' },
    'json?': jsonOrNull,
    'kept?': jsonOrNull,
    // An empty list is null.
    list: {
      type: 'TEXT',
      read: (value) => (value === null ? [] : (JSON.parse(value as string) as unknown)),
      write: (value: readonly unknown[]) => (value.length === 0 ? null : JSON.stringify(value)),
    },
  },
}

export const sqlite = tablesIn(dialect, conditions)

/** A prepared SELECT. */
export interface ArrayQuery<Row> {
  get(...values: SQLInputValue[]): Row | undefined
  all(...values: SQLInputValue[]): Row[]
}

/** Rows as arrays: the driver's row objects are dictionaries, so each field is a hash look-up. */
export function arrayQuery<Found extends readonly unknown[]>(
  db: DatabaseSync,
  text: string,
): ArrayQuery<Found> {
  const statement = db.prepare(text)
  statement.setReturnArrays(true)
  return statement as unknown as ArrayQuery<Found>
}

/** In SQL. Parameters are numbered in the order of the columns of the table. */
export function textOf<Row extends object>({ verb, table, onConflict }: RowStatement<Row>): string {
  const { name, names, key } = table
  const given = (columns: readonly string[], separator: string) =>
    columns.map((column) => `${column} = ?${names.indexOf(column) + 1}`).join(separator)
  if (verb === 'insert')
    return `INSERT INTO ${name} (${names.join(', ')}) VALUES (${names.map(() => '?').join(', ')}) ${onConflict}`
  if (verb === 'remove') return `DELETE FROM ${name} WHERE ${given(names, ' AND ')}`
  const changed = names.filter((column) => !key.includes(column))
  return `UPDATE ${name} SET ${given(changed, ', ')} WHERE ${given(key, ' AND ')}`
}

export function writer<Row extends object>(
  db: DatabaseSync,
  statement: RowStatement<Row>,
): (rows: Iterable<Row>) => void {
  const { table } = statement
  const prepared = db.prepare(textOf(statement))
  return (rows) => {
    for (const row of rows) prepared.run(...(table.values(row) as SQLInputValue[]))
  }
}

/** Rows per INSERT. Several rows per statement are faster than one; see bench/scenarios/call-back.ts. */
const ROWS_AT_ONCE = 50

/** Inserts many rows that do not exist yet. */
export function inserter<Row extends object>(
  db: DatabaseSync,
  table: SqlTable<Row>,
): (rows: readonly Row[]) => void {
  const one = textOf(insert(table))
  const more = `, (${table.names.map(() => '?').join(', ')})`
  const single = db.prepare(one)
  const many = db.prepare(`${one}${more.repeat(ROWS_AT_ONCE - 1)}`)
  return (rows) => {
    const inFullStatements = rows.length - (rows.length % ROWS_AT_ONCE)
    for (let at = 0; at < inFullStatements; at += ROWS_AT_ONCE) {
      const values = rows.slice(at, at + ROWS_AT_ONCE).flatMap(table.values)
      many.run(...(values as SQLInputValue[]))
    }
    for (const row of rows.slice(inFullStatements)) single.run(...(table.values(row) as SQLInputValue[]))
  }
}
