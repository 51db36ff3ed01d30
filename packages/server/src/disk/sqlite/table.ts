import type { DatabaseSync, SQLInputValue } from 'node:sqlite'
import { partitionStates } from '../../handoff/rules/life-cycle.ts'
import { noTallies, type Tallies, type Tally } from '../../handoff/rules/task-facts.ts'
import { arrayQuery } from './query.ts'

/**
 * How a field is stored. Kinds with a question mark may be null. An empty list is stored as null. Writing
 * null to `kept?` keeps the stored value.
 */
export type Kind =
  | 'key'
  | 'integer'
  | 'integer?'
  | 'text'
  | 'text?'
  | 'flag'
  | 'tag'
  | 'tag?'
  | 'json'
  | 'json?'
  | 'list?'
  | 'kept?'

/** The name of a column, its kind, and further SQL of its declaration. */
export type Column = readonly [name: string, kind: Kind, more?: string]

/** One column per field; a missing one is a compile error. */
export type Columns<Row> = {
  readonly [Field in keyof Row as Row[Field] extends Tally ? never : Field]-?: Column
}

interface Codec {
  readonly type: string
  readonly read: (value: unknown) => unknown
  readonly write: (value: unknown) => SQLInputValue
}

const same = (value: unknown) => value
const plain = (type: string): Codec => ({ type, read: same, write: same as Codec['write'] })

/**
 * The driver writes 64-bit integers, but refuses to read values that do not fit a number, so they are read as
 * text.
 */
const tag = (type: string): Codec => ({
  type,
  read: (value) => (value === null ? null : BigInt(value as string)),
  write: same as Codec['write'],
})

const jsonOrNull: Codec = {
  type: 'TEXT',
  read: (value) => (value === null ? null : (JSON.parse(value as string) as unknown)),
  write: (value) => (value === null ? null : JSON.stringify(value)),
}

const codecs: Readonly<Record<Kind, Codec>> = {
  key: plain('INTEGER PRIMARY KEY'),
  integer: plain('INTEGER NOT NULL'),
  'integer?': plain('INTEGER'),
  text: plain('TEXT NOT NULL'),
  'text?': plain('TEXT'),
  flag: {
    type: 'INTEGER NOT NULL',
    read: (value) => value === 1,
    write: (value) => (value === true ? 1 : 0),
  },
  tag: tag('INTEGER NOT NULL'),
  'tag?': tag('INTEGER'),
  json: {
    type: 'TEXT NOT NULL',
    read: (value) => JSON.parse(value as string) as unknown,
    write: (value) => JSON.stringify(value),
  },
  'json?': jsonOrNull,
  'kept?': jsonOrNull,
  'list?': {
    type: 'TEXT',
    read: (value) => (value === null ? [] : (JSON.parse(value as string) as unknown)),
    write: (value) => ((value as readonly unknown[]).length === 0 ? null : JSON.stringify(value)),
  },
}

const tallyColumns = partitionStates.flatMap((state) => [`${state}_partitions`, `${state}_records`])

interface Field extends Codec {
  readonly field: string
  readonly name: string
  readonly kind: Kind
  readonly declaration: string
}

/** A table with one record type. Its SQL and conversions are generated from its list of columns. */
export class Table<Row extends object> {
  readonly name: string
  readonly #fields: readonly Field[]
  readonly #tallied: boolean

  constructor(name: string, columns: Columns<Row>, tallied = false) {
    this.name = name
    this.#tallied = tallied
    this.#fields = Object.entries(columns as Record<string, Column>).map(([field, [column, kind, more]]) => ({
      ...codecs[kind],
      field,
      name: column,
      kind,
      declaration: `${column} ${codecs[kind].type}${more === undefined ? '' : ` ${more}`}`,
    }))
  }

  /** The column list for CREATE TABLE. */
  get declarations(): string {
    const tallies = this.#tallied ? tallyColumns.map((column) => `${column} INTEGER NOT NULL`) : []
    return [...this.#fields.map(({ declaration }) => declaration), ...tallies].join(',\n  ')
  }

  get names(): string[] {
    return [...this.#fields.map(({ name }) => name), ...(this.#tallied ? tallyColumns : [])]
  }

  /** The fields of a row that was read. */
  get fields(): string[] {
    return [...this.#fields.map(({ field }) => field), ...(this.#tallied ? ['partitions', 'records'] : [])]
  }

  /** The column list for SELECT, in the order that `read` expects. */
  get columns(): string {
    const text = ({ name, kind }: Field) =>
      kind.startsWith('tag') ? `CAST(${this.name}.${name} AS TEXT)` : `${this.name}.${name}`
    const tallies = this.#tallied ? tallyColumns.map((column) => `${this.name}.${column}`) : []
    return [...this.#fields.map(text), ...tallies].join(', ')
  }

  read(values: readonly unknown[]): Row {
    const row: Record<string, unknown> = {}
    let at = 0
    for (const { field, read } of this.#fields) row[field] = read(values[at++])
    if (this.#tallied) {
      const { partitions, records } = noTallies()
      for (const state of partitionStates) {
        partitions[state] = values[at++] as number
        records[state] = values[at++] as number
      }
      row['partitions'] = partitions
      row['records'] = records
    }
    return row as Row
  }

  /** In the order of `names`. */
  values(row: Row): SQLInputValue[] {
    const fields = row as Record<string, unknown>
    const values = this.#fields.map(({ field, write }) => write(fields[field]))
    if (this.#tallied) {
      const { partitions, records } = row as unknown as Tallies
      for (const state of partitionStates) values.push(partitions[state], records[state])
    }
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
    const kept = new Set(this.#fields.filter(({ kind }) => kind === 'kept?').map(({ name }) => name))
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
