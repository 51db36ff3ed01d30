import type { DatabaseSync } from 'node:sqlite'
import type {
  DueBackoffs,
  DuePosition,
  IndexesOfLane,
  KnownOfLane,
  Lanes,
  LanesFrom,
  NamedPartitions,
  RowsOfLane,
  WaitingOfLane,
} from '../../handoff/disk.ts'
import { type KnownPartition, newPartition, type StoredPartition } from '../../handoff/partition.ts'
import type {
  StoredKey,
  StoredLane,
  StoredLevel,
  StoredTableSettings,
  StoredTask,
} from '../../handoff/stored.ts'
import { Ranges } from './ranges.ts'
import { laneHas, partitionIs, taskHas } from './schema.ts'
import {
  descriptors,
  type Finder,
  finder,
  keys,
  LIMIT,
  lanes,
  laneTables,
  levels,
  partitions,
  sqlite,
  tableSettings,
  tasks,
} from './tables.ts'

/** Reads the rows that the engine does not have in memory. */
export class Reads {
  readonly #sql: ReturnType<typeof prepare>
  readonly #ranges: Ranges

  constructor(db: DatabaseSync) {
    this.#sql = prepare(db)
    this.#ranges = new Ranges(db)
  }

  openTasks(after: number, limit: number): StoredTask[] {
    return this.#sql.openTasks.all(after, limit)
  }

  openLanes(after: number, limit: number): Lanes {
    return this.#withTables(this.#sql.openLanes.all(after, limit))
  }

  leases({ dueAt, id }: DuePosition, limit: number): StoredPartition[] {
    const found = this.#sql.leasesEndingThen.all(dueAt, id, limit)
    if (found.length < limit) found.push(...this.#sql.leasesEndingLater.all(dueAt, limit - found.length))
    return found
  }

  levels(): StoredLevel[] {
    return this.#sql.levels.all()
  }

  tableSettings(): StoredTableSettings[] {
    return this.#sql.tableSettings.all()
  }

  tasksNamed(names: readonly string[]): StoredTask[] {
    return each(this.#sql.taskNamed, names)
  }

  tasksById(ids: readonly number[]): StoredTask[] {
    return each(this.#sql.task, ids)
  }

  lanesById(ids: readonly number[]): Lanes {
    return this.#withTables(each(this.#sql.lane, ids))
  }

  lanesOf(task: number, wanted: readonly number[]): Lanes {
    return this.#withTables(wanted.flatMap((level) => this.#sql.laneOf.get(task, level) ?? []))
  }

  lanesFrom({ task, from, having, limit }: LanesFrom): Lanes {
    return this.#withTables(this.#sql.lanesFrom[having].all(task, from, limit))
  }

  partitionsById(ids: readonly number[]): StoredPartition[] {
    return each(this.#sql.partition, ids)
  }

  partitionsNamed(asked: readonly NamedPartitions[]): StoredPartition[] {
    return asked.flatMap(({ lane, indexes }) =>
      indexes.flatMap((index) => this.#sql.named.get(lane, index) ?? []),
    )
  }

  rows({ lane, tail, state, afterIndex, limit }: RowsOfLane): StoredPartition[] {
    if (state === null) return this.#sql.rows.all(lane, afterIndex, tail, limit)
    if (state === 'parked') return this.#sql.parkedRows.all(lane, afterIndex, tail, limit)
    return this.#sql.rowsInState.all(lane, afterIndex, tail, state, limit)
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

  keys(names: readonly string[]): StoredKey[] {
    return each(this.#sql.key, names)
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

  /** Reads one row more than the limit, to know when the next one ends. */
  dueBackoffs(now: number, limit: number): DueBackoffs {
    const due = this.#sql.dueBackoffs.all(now, limit + 1)
    const nextAt = due[limit]?.dueAt ?? this.#sql.nextBackoff.get(now)?.dueAt ?? null
    return { due: due.slice(0, limit), nextAt }
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

  #withTables(found: readonly StoredLane[]): Lanes {
    const tables = found.flatMap(({ id, severalAfter }) =>
      severalAfter === null ? [] : this.#sql.tablesOf.all(id),
    )
    return { lanes: found, tables }
  }
}

const each = <Row>(found: Finder<Row>, values: readonly (number | string)[]): Row[] =>
  values.flatMap((value) => found.get(value) ?? [])

function prepare(db: DatabaseSync) {
  const lanesFrom = (condition: string) =>
    finder(db, lanes, `WHERE task = ? AND level >= ? ${condition} ORDER BY level ${LIMIT}`)
  const returned = (condition: string) =>
    finder(db, partitions, `WHERE lane = ? AND ${partitionIs.returned} AND ${condition} ${LIMIT}`)
  const rows = (condition: string) =>
    finder(db, partitions, `WHERE lane = ? AND idx > ? AND id <= ? ${condition} ORDER BY idx ${LIMIT}`)
  return {
    openTasks: finder(db, tasks, `WHERE ${taskHas.openWork} AND id > ? ORDER BY id ${LIMIT}`),
    openLanes: finder(db, lanes, `WHERE ${laneHas.openWork} AND id > ? ORDER BY id ${LIMIT}`),
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
    levels: finder(db, levels, ''),
    tableSettings: finder(db, tableSettings, ''),
    task: finder(db, tasks, 'WHERE id = ?'),
    taskNamed: finder(db, tasks, 'WHERE task_id = ?'),
    lane: finder(db, lanes, 'WHERE id = ?'),
    laneOf: finder(db, lanes, 'WHERE task = ? AND level = ?'),
    tablesOf: finder(db, laneTables, 'WHERE lane = ?'),
    lanesFrom: {
      any: lanesFrom(''),
      parked: lanesFrom(`AND ${laneHas.parked}`),
      rows: lanesFrom(`AND ${laneHas.rows}`),
    },
    partition: finder(db, partitions, 'WHERE id = ?'),
    named: finder(db, partitions, 'WHERE lane = ? AND idx = ?'),
    known: finder(db, sqlite.knownPartitions, 'WHERE lane = ? AND idx = ? AND id <= ?'),
    key: finder(db, keys, 'WHERE key = ?'),
    rows: rows(''),
    parkedRows: rows(`AND state = 'parked'`),
    rowsInState: rows('AND state = ?'),
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
    dueBackoffs: finder(
      db,
      partitions,
      `WHERE state = 'delayed' AND due_at <= ? ORDER BY due_at, id ${LIMIT}`,
    ),
    nextBackoff: finder(db, partitions, `WHERE state = 'delayed' AND due_at > ? ORDER BY due_at LIMIT 1`),
  }
}
