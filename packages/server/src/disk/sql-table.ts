import { compiled, type Fields, type Kind } from '../handoff/fields.ts'
import { type PartitionState, partitionStates } from '../handoff/rules/life-cycle.ts'

// The SQL and the conversions that follow from the fields of a table; test/disk/statements.test.ts shows
// them. A dialect has what differs between SQLite and PostgreSQL.

export interface Dialect {
  /** Precedes the names of tables. */
  readonly schema: '' | 'baton.'
  readonly codecs: Readonly<Record<Kind, Codec>>
  /** The names of the functions for the smaller and the larger of two values. */
  readonly least: 'min' | 'least'
  readonly greatest: 'max' | 'greatest'
  /** The names of the functions for a JSON array of values, and for one of all rows. */
  readonly array: 'json_array' | 'json_build_array'
  readonly list: 'json_group_array' | 'json_agg'
  /** In SQL: JSON from a subquery as an element of an array. */
  nested(subquery: string): string
  /** The value of JSON that was selected. */
  parsed(json: unknown): unknown
  inOrder(columns: readonly Column[]): readonly Column[]
  /** In SQL, after the name of a table: SQLite must use this index. */
  indexed(index: string): string
}

/**
 * What differs between the disks in the queries that they share, so that each query uses an index. In SQL: what
 * follows the name of a table, WHERE with a condition, before it possibly the index.
 */
export interface Conditions {
  readonly openTasks: string
  readonly tasksWithParked: string
  readonly tasksToPurge: string
  /** Tasks in state ?1 with ids below ?2. They are read by descending state and id. */
  readonly tasksInState: string
  readonly lanesWithWork: string
  readonly leasesByEnd: string
  readonly delayedPartitions: string
  readonly returnedPartitions: string
  readonly parkedPartitions: string
  readonly begunPartitions: string
  /** Of the compute table ?1. */
  readonly partitionsInMixedLanes: string
  /** Whose last failure is of the group ?1. */
  readonly partitionsParkedAs: string
  readonly pendingDeliveries: string
  readonly endedInstances: string
  /** Of task ?1 and step ?2, from ?3 to before ?4. */
  readonly throughputOfTask: string
  /** In a subquery for the task that is selected: its partitions with a mismatch, and their levels, in order. */
  readonly mismatchesOfTask: string
  /** Columns. */
  readonly leaseEndsAt: string
  readonly delayedUntil: string
  readonly returnedAt: string
}

export interface Codec {
  /** The declaration of a column. */
  readonly type: string
  /** Converts a value that was read. Absent: it is that of the field. */
  readonly read?: (value: unknown) => unknown
  readonly write?: (value: never) => unknown
}

export interface TableOptions<Row> {
  readonly name: string
  readonly key: readonly (keyof Row & string)[]
  /** Whether the rows have counts by state. */
  readonly tallied?: boolean
  /** Fields that never change. An update leaves them out, so that indexes on them are not touched. */
  readonly fixed?: readonly (keyof Row & string)[]
  /** Values of columns that are not given when a row is inserted. */
  readonly defaults?: Partial<Row>
  /** The column by which an export orders the rows; the key, if absent. */
  readonly order?: string
}

export interface Column {
  readonly name: string
  readonly field: string
  /** Of a count: the state that it counts. */
  readonly state: PartitionState | null
  readonly kind: Kind
  /** In SQL. */
  readonly byDefault: string
}

/** A table, or some columns of one. */
export class SqlTable<Row extends object> {
  readonly name: string
  /** The name with the schema. */
  readonly path: string
  readonly columns: readonly Column[]
  readonly key: readonly string[]
  readonly order: string
  readonly read: (values: readonly unknown[]) => Row
  /** The values of a row, in the order of `columns`. */
  readonly values: (row: Row) => unknown[]
  readonly #dialect: Dialect
  readonly #fields: Fields<Row>
  readonly #options: TableOptions<Row>
  readonly #fixed: ReadonlySet<string>

  constructor(dialect: Dialect, fields: Fields<Row>, options: TableOptions<Row>) {
    this.#dialect = dialect
    this.#fields = fields
    this.#options = options
    this.name = options.name
    this.path = `${dialect.schema}${options.name}`
    this.columns = columnsOf(fields, options)
    this.key = options.key.map(columnOf)
    this.order = options.order ?? this.key.join(', ')
    this.#fixed = new Set([...this.key, ...(options.fixed ?? []).map(columnOf)])
    const { codecs } = dialect
    const written = this.columns.map((column) =>
      codecs[column.kind].write === undefined
        ? valueIn(column)
        : `codecs['${column.kind}'].write(${valueIn(column)})`,
    )
    this.values = compiled('row', `[${written.join(', ')}]`, { codecs })
    const read = rowOf(this.columns, ({ kind }, at) =>
      codecs[kind].read === undefined ? `values[${at}]` : `codecs['${kind}'].read(values[${at}])`,
    )
    this.read = compiled('values', read, { codecs })
  }

  /** The same table with some of its fields. */
  only<Field extends keyof Row & keyof Fields<Row> & string>(
    ...fields: readonly Field[]
  ): SqlTable<Pick<Row, Field>> {
    const picked = Object.fromEntries(fields.map((field) => [field, this.#fields[field]]))
    const key = this.#options.key.filter((field) => fields.includes(field as Field)) as Field[]
    return new SqlTable(this.#dialect, picked as unknown as Fields<Pick<Row, Field>>, {
      name: this.name,
      key,
    })
  }

  /** CREATE TABLE, with further columns and constraints. They may name another primary key than `key`. */
  create(...further: readonly string[]): string {
    const columns = this.#dialect
      .inOrder(this.columns)
      .map(({ name, kind, byDefault }) => `${name} ${this.#dialect.codecs[kind].type} ${byDefault}`.trimEnd())
    const declared = [...columns, ...further]
    if (!declared.some((one) => one.includes('PRIMARY KEY')))
      declared.push(`PRIMARY KEY (${this.key.join(', ')})`)
    return `CREATE TABLE ${this.path} (\n  ${declared.join(',\n  ')}\n)`
  }

  get names(): string[] {
    return this.columns.map(({ name }) => name)
  }

  /** In SQL, in the order that `read` expects. Tags are read as text: they do not fit a number. */
  selected(alias = this.name): string {
    return this.columns
      .map(({ name, kind }) => (kind === 'tag' ? `CAST(${alias}.${name} AS text)` : `${alias}.${name}`))
      .join(', ')
  }

  /** In SQL: an INSERT replaces the row that has the same key. */
  get replacing(): string {
    const changed = this.columns.filter(({ name }) => !this.#fixed.has(name))
    const assignments = changed.map(({ name, kind }) =>
      kind === 'kept?'
        ? `${name} = coalesce(excluded.${name}, ${this.name}.${name})`
        : `${name} = excluded.${name}`,
    )
    return `ON CONFLICT (${this.key.join(', ')}) DO UPDATE SET ${assignments.join(', ')}`
  }
}

function columnsOf<Row>(fields: Fields<Row>, { tallied, defaults }: TableOptions<Row>): Column[] {
  const values: Readonly<Record<string, unknown>> = defaults ?? {}
  const columns = Object.entries<Kind>(fields).map(
    ([field, kind]): Column => ({
      name: columnOf(field),
      field,
      state: null,
      kind,
      byDefault: defaultOf(values[field] ?? null),
    }),
  )
  return tallied === true ? [...columns, ...tallies] : columns
}

const tallies = partitionStates.flatMap((state) =>
  ['partitions', 'records'].map(
    (field): Column => ({ name: `${state}_${field}`, field, state, kind: 'integer', byDefault: '' }),
  ),
)

/** Fields whose names SQL reserves. */
const reserved: Readonly<Record<string, string>> = { index: 'idx', table: 'name' }

const columnOf = (field: string): string =>
  reserved[field] ?? field.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)

function defaultOf(value: unknown): string {
  if (value === null) return ''
  return `DEFAULT ${typeof value === 'string' ? `'${value}'` : value}`
}

// Expressions for `compiled`.

const valueIn = ({ field, state }: Column): string =>
  state === null ? `row.${field}` : `row.${field}.${state}`

/** A row; `valueAt` is the expression for the value of a column. */
function rowOf(columns: readonly Column[], valueAt: (column: Column, at: number) => string): string {
  const values = columns.map((column, at) => ({ ...column, value: valueAt(column, at) }))
  const members = [...Map.groupBy(values, ({ field }) => field)].map(([field, found]) => {
    const counts = found.filter(({ state }) => state !== null).map(({ state, value }) => `${state}: ${value}`)
    return `${field}: ${counts.length > 0 ? `{ ${counts.join(', ')} }` : found[0]?.value}`
  })
  return `({ ${members.join(', ')} })`
}

export const readTag = (value: unknown): bigint => BigInt(value as string)
