import type { Table } from './table.ts'

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
  readonly table: Table<Row>
  /** In SQL, of an `insert`: what happens if the row exists. */
  readonly onConflict: string
}

export const insert = <Row extends object>(table: Table<Row>, onConflict = ''): RowStatement<Row> => ({
  verb: 'insert',
  table,
  onConflict,
})

export const update = <Row extends object>(table: Table<Row>): RowStatement<Row> => ({
  verb: 'update',
  table,
  onConflict: '',
})

export const remove = <Row extends object>(table: Table<Row>): RowStatement<Row> => ({
  verb: 'remove',
  table,
  onConflict: '',
})

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

export const rowsOf = <Row extends object>(table: Table<Row>): Query<Row> => ({
  selected: table.selected(),
  from: table.path,
  read: table.read,
})

/** The same rows, of which some are selected. */
export const select = <Row>(query: Query<Row>, rest: string): Query<Row> => ({
  ...query,
  from: `${query.from} ${rest}`,
})

/** Finds a row by the values of columns. */
export const lookUp = <Row>(query: Query<Row>, ...columns: readonly string[]): Query<Row> =>
  select(query, `WHERE ${columns.map((name) => `${name} = ?`).join(' AND ')}`)

/**
 * For a bare parameter as LIMIT, SQLite prepares the statement again whenever the value changes. For a sum it
 * does not.
 */
export const LIMIT = 'LIMIT ? + 0'

/** A list in JSON; one without elements may be null. */
export const listIn = <Element>(value: unknown): readonly Element[] => (value ?? []) as readonly Element[]

/** In SQL: how a WHERE clause begins, so that it uses an index of the disk. */
export interface Conditions {
  readonly openTasks: string
  readonly tasksWithParked: string
  readonly tasksWithReruns: string
  readonly tasksWithStagedRows: string
  readonly tasksToPurge: string
  /** Tasks in state ?1 with ids below ?2, newest first. */
  readonly tasksInState: string
  readonly openLanes: string
  readonly leasedPartitions: string
  readonly delayedPartitions: string
  /** With a holder. */
  readonly heldPartitions: string
  readonly returnedPartitions: string
  readonly parkedPartitions: string
  readonly begunPartitions: string
  /** Of the compute table ?1. */
  readonly partitionsOfSeveral: string
  /** Whose last failure is of the group ?1. */
  readonly failedPartitions: string
  readonly partitionsParkedAs: string
  /** Any partitions; they are read in the order of their index. */
  readonly partitionsByIndex: string
  readonly pendingDeliveries: string
  readonly endedInstances: string
  /** The compute tables of the task that is selected; they are ordered by position. */
  readonly tablesOfTask: string
  /** Partitions of the task that is selected, and their levels, in order. */
  readonly mismatchesOfTask: string
  /** Of task ?1 and step ?2, from ?3 to before ?4. */
  readonly throughputOfTask: string
  readonly auditOfTask: string
  readonly auditByName: string
  /** The holder of a lease, and the columns that an index orders leases and other partitions by. */
  readonly leasedBy: string
  readonly leaseEndsAt: string
  readonly delayedUntil: string
  readonly returnedAt: string
}
