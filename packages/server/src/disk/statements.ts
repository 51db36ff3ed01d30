import type { SqlTable } from './sql-table.ts'

// How the statements that both disks share are written, and what runs them.

/** A SELECT. Its parameters are question marks; with a number, one may stand in several places. */
export interface Query<Row> {
  /** In SQL: the values of a row. */
  readonly selected: string
  /** In SQL: what follows FROM. */
  readonly from: string
  readonly read: (values: readonly unknown[]) => Row
}

export type Value = number | string

/** A query with its values. */
export interface Asked<Row> {
  readonly query: Query<Row>
  readonly values: readonly Value[]
}

/** Runs statements on a disk. */
export interface Session {
  all<Row>(query: Query<Row>, ...values: readonly Value[]): Promise<Row[]>
  /** The rows of each of these, from one snapshot. PostgreSQL runs one statement for each query. */
  lists<Row>(asked: readonly Asked<Row>[]): Promise<Row[][]>
  /** Writes rows that build on the last entry, all or none. */
  write(...writes: readonly Write[]): Promise<void>
}

/** Writes rows. SQLite runs it for each row, PostgreSQL for many rows at once. */
export interface RowStatement<Row extends object> {
  /** An `update` finds the row by its key, a `remove` finds rows by all columns of `table`. */
  readonly verb: 'insert' | 'update' | 'remove'
  readonly table: SqlTable<Row>
  /** In SQL, of an `insert`: what happens if the row exists. */
  readonly onConflict: string
}

const statement =
  (verb: RowStatement<object>['verb']) =>
  <Row extends object>(table: SqlTable<Row>, onConflict = ''): RowStatement<Row> => ({
    verb,
    table,
    onConflict,
  })

export const insert = statement('insert')
export const update = statement('update')
export const remove = statement('remove')
/** Inserts rows, or replaces those with the same key. */
export const replace = <Row extends object>(table: SqlTable<Row>): RowStatement<Row> =>
  insert(table, table.replacing)

/** A statement with the rows that it writes. */
export interface Write {
  readonly statement: RowStatement<object>
  readonly rows: readonly object[]
}

export const writing = <Row extends object>(statement: RowStatement<Row>, rows: readonly Row[]): Write => ({
  statement: statement as unknown as RowStatement<object>,
  rows,
})

/** The rows of one query for each of these values. */
export const each = async <Row>(
  session: Session,
  query: Query<Row>,
  values: readonly (readonly Value[])[],
): Promise<Row[]> => (await session.lists(values.map((one) => ({ query, values: one })))).flat()

/** As `each`, for queries with one parameter. */
export const eachOf = <Row>(session: Session, query: Query<Row>, values: readonly Value[]): Promise<Row[]> =>
  each(
    session,
    query,
    values.map((value) => [value]),
  )

export const rowsOf = <Row extends object>(table: SqlTable<Row>): Query<Row> => ({
  selected: table.selected(),
  from: table.path,
  read: table.read,
})

/** The same rows, of which some are selected. */
export const select = <Row>(query: Query<Row>, rest: string): Query<Row> => ({
  ...query,
  from: `${query.from} ${rest}`,
})

export const lookUp = <Row>(query: Query<Row>, ...columns: readonly string[]): Query<Row> =>
  select(query, `WHERE ${columns.map((name) => `${name} = ?`).join(' AND ')}`)

/** Whenever a bare parameter changes, SQLite prepares the statement again. For a sum it does not. */
export const LIMIT = 'LIMIT ? + 0'

/** A list in JSON; one without elements may be null. */
export const listIn = <Element>(value: unknown): readonly Element[] => (value ?? []) as readonly Element[]
