import type { DatabaseSync, SQLInputValue } from 'node:sqlite'
import { compiled, type Fields, type Kind } from '../../handoff/fields.ts'
import { partitionStates } from '../../handoff/rules/life-cycle.ts'
import { type Column, columnsOf, type TableOptions } from '../sql-columns.ts'
import { arrayQuery } from './query.ts'

interface Codec {
  readonly type: string
  /** Absent: the driver's value is that of the field. */
  readonly read?: (value: unknown) => unknown
  readonly write?: (value: unknown) => SQLInputValue
}

const integer: Codec = { type: 'INTEGER NOT NULL' }
const integerOrNull: Codec = { type: 'INTEGER' }
const textOrNull: Codec = { type: 'TEXT' }

/**
 * The driver writes 64-bit integers, but refuses to read values that do not fit a number, so they are read as
 * text.
 */
const readTag = (value: unknown) => (value === null ? null : BigInt(value as string))

const jsonOrNull: Codec = {
  type: 'TEXT',
  read: (value) => (value === null ? null : (JSON.parse(value as string) as unknown)),
  write: (value) => (value === null ? null : JSON.stringify(value)),
}

const codecs: Readonly<Record<Kind, Codec>> = {
  key: { type: 'INTEGER PRIMARY KEY' },
  integer,
  'integer?': integerOrNull,
  small: integer,
  tag: { ...integer, read: readTag },
  'tag?': { ...integerOrNull, read: readTag },
  'time?': integerOrNull,
  text: { type: 'TEXT NOT NULL' },
  'text?': textOrNull,
  'filled?': textOrNull,
  flag: { ...integer, read: (value) => value === 1, write: (value) => (value === true ? 1 : 0) },
  json: { ...jsonOrNull, type: 'TEXT NOT NULL' },
  'json?': jsonOrNull,
  'kept?': jsonOrNull,
  // An empty list is null.
  list: {
    type: 'TEXT',
    read: (value) => (value === null ? [] : (JSON.parse(value as string) as unknown)),
    write: (value) => ((value as readonly unknown[]).length === 0 ? null : JSON.stringify(value)),
  },
}

const tallies = partitionStates.flatMap((state) =>
  (['partitions', 'records'] as const).map((field) => ({ field, state, name: `${state}_${field}` })),
)

/** A table with one record type. Its SQL and conversions are generated from its list of fields. */
export class Table<Row extends object> {
  readonly name: string
  /** Reads a row with the columns of `columns`. */
  readonly read: (values: readonly unknown[]) => Row
  /** Adds the values of a row to a list, in the order of `names`. */
  readonly addValues: (to: SQLInputValue[], row: Row) => void
  readonly #columns: readonly (Column & Codec)[]
  readonly #tallies: typeof tallies

  constructor(name: string, fields: Fields<Row>, options: TableOptions<Row> = {}) {
    this.name = name
    this.#tallies = options.tallied === true ? tallies : []
    this.#columns = columnsOf(fields, options).map((column) => ({ ...column, ...codecs[column.kind] }))
    this.read = compiled('values', `({ ${this.#readers().join(', ')} })`, { columns: this.#columns })
    this.addValues = compiled('to, row', `to.push(${this.#writers().join(', ')})`, { columns: this.#columns })
  }

  #readers(): string[] {
    const read = this.#columns.map(({ field, read }, at) =>
      read === undefined ? `${field}: values[${at}]` : `${field}: columns[${at}].read(values[${at}])`,
    )
    const counts = Map.groupBy(this.#tallies.entries(), ([, { field }]) => field)
    for (const [field, states] of counts) {
      const values = states.map(([at, { state }]) => `${state}: values[${this.#columns.length + at}]`)
      read.push(`${field}: { ${values.join(', ')} }`)
    }
    return read
  }

  #writers(): string[] {
    const values = this.#columns.map(({ field, write }, at) =>
      write === undefined ? `row.${field}` : `columns[${at}].write(row.${field})`,
    )
    return [...values, ...this.#tallies.map(({ field, state }) => `row.${field}.${state}`)]
  }

  /** The column list for CREATE TABLE. */
  get declarations(): string {
    const plain = this.#columns.map(({ name, type, declared }) => `${name} ${type} ${declared}`.trimEnd())
    return [...plain, ...this.#tallies.map(({ name }) => `${name} INTEGER NOT NULL`)].join(',\n  ')
  }

  get names(): string[] {
    return [...this.#columns, ...this.#tallies].map(({ name }) => name)
  }

  /** The fields of a row that was read. */
  get fields(): string[] {
    return [...new Set([...this.#columns, ...this.#tallies].map(({ field }) => field))]
  }

  /** The column list for SELECT, in the order that `read` expects. */
  get columns(): string {
    const plain = this.#columns.map(({ name, kind }) =>
      kind.startsWith('tag') ? `CAST(${this.name}.${name} AS TEXT)` : `${this.name}.${name}`,
    )
    return [...plain, ...this.#tallies.map(({ name }) => `${this.name}.${name}`)].join(', ')
  }

  /** In the order of `names`. */
  values(row: Row): SQLInputValue[] {
    const values: SQLInputValue[] = []
    this.addValues(values, row)
    return values
  }

  get insert(): string {
    const { names } = this
    return `INSERT INTO ${this.name} (${names.join(', ')}) VALUES (${names.map(() => '?').join(', ')})`
  }

  /**
   * Columns in `fixed` keep their inserted values, so indexes on them are not touched. The first of them is
   * the key.
   */
  upsert(...fixed: string[]): string {
    return this.upsertBy(fixed.slice(0, 1), fixed)
  }

  upsertBy(key: readonly string[], fixed: readonly string[] = key): string {
    const kept = new Set(this.#columns.filter(({ kind }) => kind === 'kept?').map(({ name }) => name))
    const changed = this.names.filter((name) => !fixed.includes(name))
    const assignments = changed.map((name) =>
      kept.has(name)
        ? `${name} = ifnull(excluded.${name}, ${this.name}.${name})`
        : `${name} = excluded.${name}`,
    )
    return `${this.insert} ON CONFLICT (${key.join(', ')}) DO UPDATE SET ${assignments.join(', ')}`
  }
}

export interface Finder<Row> {
  get(...values: SQLInputValue[]): Row | undefined
  all(...values: SQLInputValue[]): Row[]
}

/** A prepared statement that selects rows of a table. `rest` is the SQL after the table name. */
export function finder<Row extends object>(db: DatabaseSync, table: Table<Row>, rest: string): Finder<Row> {
  const statement = arrayQuery<unknown[]>(db, `SELECT ${table.columns} FROM ${table.name} ${rest}`)
  return {
    get(...values) {
      const found = statement.get(...values)
      return found && table.read(found)
    },
    all: (...values) => statement.all(...values).map((found) => table.read(found)),
  }
}
