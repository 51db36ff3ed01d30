import type { DatabaseSync, SQLInputValue } from 'node:sqlite'
import { compiled, type Fields, type Kind, namesOf, pick } from '../../handoff/fields.ts'
import {
  comparedFields,
  descriptorFields,
  type KnownPartition,
  type PartitionDescriptor,
  type PartitionStatus,
  partitionFields,
  type RareFields,
  rareFields,
  type StoredPartition,
  statusFields,
  untouched,
} from '../../handoff/partition.ts'
import {
  keyFields,
  laneFields,
  laneTableFields,
  levelFields,
  type StoredKey,
  type StoredLane,
  type StoredLaneTable,
  type StoredLevel,
  type StoredTableSettings,
  type StoredTask,
  tableSettingsFields,
  taskFields,
} from '../../handoff/stored.ts'
import { type Column, columnsOf, rowOf, type TableOptions, valueIn } from '../sql-columns.ts'

/** A prepared SELECT with the type of its rows. */
interface Query<Found> {
  get(...values: SQLInputValue[]): Found | undefined
  all(...values: SQLInputValue[]): Found[]
}

/** `Found` must match the columns that `text` selects. */
export function query<Found>(db: DatabaseSync, text: string): Query<Found> {
  return db.prepare(text) as unknown as Query<Found>
}

/**
 * Returns rows as arrays, for queries that read many of them. The driver's row objects are dictionaries, so
 * each access to a field is a hash look-up.
 */
export function arrayQuery<Found extends readonly unknown[]>(db: DatabaseSync, text: string): Query<Found> {
  const statement = db.prepare(text)
  statement.setReturnArrays(true)
  return statement as unknown as Query<Found>
}

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

/** A table whose rows have one type. Its SQL and conversions are generated from its list of fields. */
export class Table<Row extends object> {
  readonly name: string
  /** Reads a row with the columns of `columns`. */
  readonly read: (values: readonly unknown[]) => Row
  /** Adds the values of a row to a list, in the order of `names`. */
  readonly addValues: (to: SQLInputValue[], row: Row) => void
  readonly #columns: readonly Column[]

  constructor(name: string, fields: Fields<Row>, options: TableOptions<Row> = {}) {
    this.name = name
    this.#columns = columnsOf(fields, options)
    const read = rowOf(this.#columns, ({ kind }, at) =>
      codecs[kind].read === undefined ? `values[${at}]` : `codecs['${kind}'].read(values[${at}])`,
    )
    const written = this.#columns.map((column) => {
      const { kind } = column
      return codecs[kind].write === undefined
        ? valueIn(column)
        : `codecs['${kind}'].write(${valueIn(column)})`
    })
    this.read = compiled('values', read, { codecs })
    this.addValues = compiled('to, row', `to.push(${written.join(', ')})`, { codecs })
  }

  /** The column list for CREATE TABLE. */
  get declarations(): string {
    const texts = this.#columns.map(({ name, kind, declared }) => `${name} ${codecs[kind].type} ${declared}`)
    return texts.map((text) => text.trimEnd()).join(',\n  ')
  }

  get names(): string[] {
    return this.#columns.map(({ name }) => name)
  }

  /** The fields of a row that was read. */
  get fields(): string[] {
    return [...new Set(this.#columns.map(({ field }) => field))]
  }

  /** The column list for SELECT, in the order that `read` expects. */
  get columns(): string {
    const texts = this.#columns.map(({ name, kind }) =>
      kind.startsWith('tag') ? `CAST(${this.name}.${name} AS TEXT)` : `${this.name}.${name}`,
    )
    return texts.join(', ')
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

/** Rows per INSERT. Several rows per statement are faster than one; see bench/scenarios/call-back.ts. */
const ROWS_AT_ONCE = 50

/** Inserts rows of a table. `rest` is the SQL after the values. */
export function inserter<Row extends object>(
  db: DatabaseSync,
  table: Table<Row>,
  rest = '',
): (rows: readonly Row[]) => void {
  const more = `, (${table.names.map(() => '?').join(', ')})`
  const one = db.prepare(`${table.insert} ${rest}`)
  const many = db.prepare(`${table.insert}${more.repeat(ROWS_AT_ONCE - 1)} ${rest}`)
  return (rows) => {
    const inFullStatements = rows.length - (rows.length % ROWS_AT_ONCE)
    for (let at = 0; at < inFullStatements; at += ROWS_AT_ONCE) {
      const values: SQLInputValue[] = []
      for (let next = at; next < at + ROWS_AT_ONCE; next += 1) table.addValues(values, rows[next] as Row)
      many.run(...values)
    }
    for (const row of rows.slice(inFullStatements)) one.run(...table.values(row))
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

export const tasks = new Table<StoredTask>('task', taskFields, {
  tallied: true,
  declared: { taskId: 'UNIQUE' },
})

export const lanes = new Table<StoredLane>('lane', laneFields, {
  tallied: true,
  defaults: { busyMillis: 0, attemptsDone: 0 },
})

/** New rows are inserted with the descriptor only. */
export const partitions = new Table<StoredPartition>('partition', partitionFields, {
  defaults: untouched(),
  declared: { ofSeveral: 'DEFAULT 0' },
})

const isRare: ReadonlySet<string> = new Set([...rareFields, 'ofSeveral'])
const plainFields = namesOf(descriptorFields).filter((field) => !isRare.has(field))
type PlainDescriptor = Omit<PartitionDescriptor, keyof RareFields | 'ofSeveral'>

// Groups of columns of the same table.
export const descriptors = new Table<PartitionDescriptor>('partition', descriptorFields)
export const plainDescriptors = new Table<PlainDescriptor>('partition', pick(descriptorFields, plainFields))
export const knownPartitions = new Table<KnownPartition>('partition', pick(descriptorFields, comparedFields))
export const statuses = new Table<PartitionStatus>('partition', statusFields)

export const levels = new Table<StoredLevel>('level', levelFields)

export const laneTables = new Table<StoredLaneTable>('lane_table', laneTableFields)

export const tableSettings = new Table<StoredTableSettings>('table_settings', tableSettingsFields, {
  declared: { table: 'PRIMARY KEY' },
})

export const keys = new Table<StoredKey>('pull_key', keyFields, { declared: { key: 'PRIMARY KEY' } })

/**
 * For a bare parameter as LIMIT, SQLite prepares the statement again whenever the value changes. For a sum it
 * does not.
 */
export const LIMIT = 'LIMIT ? + 0'
