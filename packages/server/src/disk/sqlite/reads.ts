import type { DatabaseSync, SQLInputValue } from 'node:sqlite'
import type {
  DuePosition,
  IndexesOfLane,
  KnownOfLane,
  RowsOfLane,
  WaitingOfLane,
} from '../../handoff/disk.ts'
import { type KnownPartition, newPartition, type StoredPartition } from '../../handoff/partition.ts'
import { LIMIT, type LookUp, queriesIn, type Select } from '../reads.ts'
import { Ranges } from './ranges.ts'
import { conditions, partitionIs } from './schema.ts'
import { arrayQuery, type Finder, finder, sqlite } from './tables.ts'

export const queries = queriesIn(sqlite, conditions)

/** The statements of the reads that both disks have. */
export class SharedReads {
  readonly #statements = new Map<object, Finder<unknown>>()

  constructor(db: DatabaseSync) {
    const { lanesFrom, ...others } = queries
    const all: (Select<unknown> | LookUp<unknown>)[] = [...Object.values(others), ...Object.values(lanesFrom)]
    for (const query of all) this.#statements.set(query, prepared(db, query))
  }

  all<Row>(query: Select<Row>, values: readonly SQLInputValue[]): Row[] {
    return this.#statements.get(query)?.all(...values) as Row[]
  }

  each<Row>(query: LookUp<Row>, keys: readonly (readonly SQLInputValue[])[]): Row[] {
    const statement = this.#statements.get(query) as Finder<Row>
    return keys.flatMap((key) => statement.get(...key) ?? [])
  }
}

function prepared<Row>(db: DatabaseSync, query: Select<Row> | LookUp<Row>): Finder<Row> {
  const rest = 'by' in query ? `WHERE ${query.by.map((name) => `${name} = ?`).join(' AND ')}` : query.rest
  const statement = arrayQuery<unknown[]>(db, `SELECT ${query.selected} FROM ${query.table.name} ${rest}`)
  return {
    get(...values) {
      const found = statement.get(...values)
      return found && query.read(found)
    },
    all: (...values) => statement.all(...values).map(query.read),
  }
}

/** Reads the partitions that the engine does not have in memory. */
export class Reads {
  readonly #sql: ReturnType<typeof prepare>
  readonly #ranges: Ranges

  constructor(db: DatabaseSync) {
    this.#sql = prepare(db)
    this.#ranges = new Ranges(db)
  }

  leases({ dueAt, id }: DuePosition, limit: number): StoredPartition[] {
    const found = this.#sql.leasesEndingThen.all(dueAt, id, limit)
    if (found.length < limit) found.push(...this.#sql.leasesEndingLater.all(dueAt, limit - found.length))
    return found
  }

  rows(query: RowsOfLane): StoredPartition[] {
    const { lane, tail, state, failure, afterIndex, lastIndex = Number.MAX_SAFE_INTEGER, limit } = query
    const { rows, begunRows, parkedRows, rowsInState, failed, parkedAs, failedInState } = this.#sql
    const within = [afterIndex, lastIndex, tail] as const
    if (failure !== undefined) {
      if (state === null) return failed.all(lane, failure, ...within, limit)
      if (state === 'parked') return parkedAs.all(lane, failure, ...within, limit)
      return failedInState.all(lane, failure, ...within, state, limit)
    }
    if (state === null) return rows.all(lane, ...within, limit)
    if (state === 'begun') return begunRows.all(lane, ...within, limit)
    if (state === 'parked') return parkedRows.all(lane, ...within, limit)
    return rowsInState.all(lane, ...within, state, limit)
  }

  waiting(query: WaitingOfLane): StoredPartition[] {
    const { lane, table, returned, after, upTo, limit } = query
    if (returned) return this.#returned(query)
    // Untouched, so only the descriptor is read.
    const found =
      table === undefined
        ? this.#sql.fresh.all(lane, after.id, upTo, limit)
        : this.#sql.freshOfTable.all(lane, table, after.id, upTo, limit)
    return found.map(newPartition)
  }

  known({ lane, tail, indexes }: IndexesOfLane): KnownOfLane {
    const found = new Map<number, KnownPartition | null>()
    const isInRange = this.#ranges.contains(lane)
    for (const index of indexes) {
      const row = this.#sql.known.get(lane, index, tail)
      if (row !== undefined) found.set(index, row)
      else if (isInRange(index)) found.set(index, null)
    }
    return found
  }

  /**
   * Compares the columns of the position one after another. For a row comparison SQLite uses only the first
   * column of the index and rereads all rows with the same time, which may be all rows.
   */
  #returned({ lane, table, after, limit }: WaitingOfLane): StoredPartition[] {
    const { samePlace, laterPlaces, samePlaceOfTable, laterPlacesOfTable } = this.#sql
    const named = table === undefined ? [] : [table]
    const same = table === undefined ? samePlace : samePlaceOfTable
    const later = table === undefined ? laterPlaces : laterPlacesOfTable
    const found = same.all(lane, ...named, after.dueAt, after.id, limit)
    if (found.length < limit) found.push(...later.all(lane, ...named, after.dueAt, limit - found.length))
    return found
  }
}

function prepare(db: DatabaseSync) {
  const { partitions, descriptors, knownPartitions } = sqlite
  const returned = (condition: string) =>
    finder(db, partitions, `WHERE lane = ? AND ${partitionIs.returned} AND ${condition} ${LIMIT}`)
  const within = 'idx > ? AND idx <= ? AND id <= ?'
  const rows = (condition: string, index = '') =>
    finder(db, partitions, `${index} WHERE lane = ? AND ${within} ${condition} ORDER BY idx ${LIMIT}`)
  const failed = (index: string, condition: string) =>
    finder(
      db,
      partitions,
      `INDEXED BY ${index} WHERE lane = ? AND failure = ? AND ${within} ${condition} ORDER BY idx ${LIMIT}`,
    )
  return {
    leasesEndingThen: finder(
      db,
      partitions,
      `WHERE state = 'leased' AND due_at = ? AND id > ? ORDER BY id ${LIMIT}`,
    ),
    leasesEndingLater: finder(
      db,
      partitions,
      `WHERE state = 'leased' AND due_at > ? ORDER BY due_at, id ${LIMIT}`,
    ),
    known: finder(db, knownPartitions, 'WHERE lane = ? AND idx = ? AND id <= ?'),
    rows: rows(''),
    parkedRows: rows(`AND state = 'parked'`, 'INDEXED BY partition_parked'),
    begunRows: rows(`AND ${partitionIs.begun}`),
    rowsInState: rows('AND state = ?'),
    failed: failed('partition_failed', ''),
    parkedAs: failed('partition_parked_as', `AND state = 'parked'`),
    failedInState: failed('partition_failed', 'AND state = ?'),
    // Skips those that a pull by table took before the others.
    fresh: finder(
      db,
      descriptors,
      `WHERE lane = ? AND id > ? AND id <= ? AND ${partitionIs.fresh} ORDER BY id ${LIMIT}`,
    ),
    freshOfTable: finder(
      db,
      descriptors,
      `INDEXED BY partition_of_table WHERE lane = ? AND ${partitionIs.ofSeveral} AND compute_table = ? AND id > ? AND id <= ?
         AND ${partitionIs.fresh} ORDER BY id ${LIMIT}`,
    ),
    samePlace: returned('due_at = ? AND id > ? ORDER BY id'),
    laterPlaces: returned('due_at > ? ORDER BY due_at, id'),
    // There is no index by table: few partitions of a lane have come back.
    samePlaceOfTable: returned('compute_table = ? AND due_at = ? AND id > ? ORDER BY id'),
    laterPlacesOfTable: returned('compute_table = ? AND due_at > ? ORDER BY due_at, id'),
  }
}
