import type { DatabaseSync } from 'node:sqlite'
import type {
  IndexesOfLane,
  KnownOfLane,
  LinePosition,
  Loaded,
  LoadedRows,
  Needs,
  OrderPosition,
} from '../../handoff/disk.ts'
import { type KnownPartition, newPartition, type StoredPartition } from '../../handoff/partition.ts'
import type {
  StoredLane,
  StoredLaneTable,
  StoredLevel,
  StoredTableTime,
  StoredTask,
} from '../../handoff/stored.ts'
import { Ranges } from './ranges.ts'
import { laneHas, PLACE, partitionIs } from './schema.ts'
import {
  descriptors,
  finder,
  keys,
  knownPartitions,
  LIMIT,
  lanes,
  laneTables,
  levels,
  partitions,
  tableTimes,
  tasks,
} from './tables.ts'

type Order = NonNullable<Needs['order']>
type NextLanes = NonNullable<Needs['nextLanes']>[number]
type Rows = NonNullable<Needs['rows']>[number]
type Returned = NonNullable<Needs['returned']>[number]

const idsOf = (found: readonly { readonly id: number }[]): number[] => found.map(({ id }) => id)

/** Loads the rows that the engine requests, and their parent rows. */
export class Loader {
  readonly #sql: ReturnType<typeof prepare>
  readonly #ranges: Ranges

  constructor(db: DatabaseSync) {
    this.#sql = prepare(db)
    this.#ranges = new Ranges(db)
  }

  load(needs: Needs): Loaded {
    const found = new Found(this.#sql)
    for (const name of needs.taskNames ?? []) found.addTask(this.#sql.taskNamed.get(name))
    for (const id of needs.tasks ?? []) found.addTask(this.#sql.task.get(id))
    for (const id of needs.lanes ?? []) found.addLane(this.#sql.lane.get(id))
    for (const level of needs.levels ?? []) found.addLevel(this.#sql.level.get(level))
    for (const { level, table } of needs.tableTimes ?? [])
      found.addTableTime(this.#sql.tableTime.get(level, table))
    for (const { task, levels: wanted } of needs.lanesOf ?? [])
      for (const level of wanted) found.addLane(this.#sql.laneOf.get(task, level))
    for (const id of needs.partitions ?? []) found.addPartition(this.#sql.partition.get(id))
    for (const { lane, indexes } of needs.named ?? [])
      for (const index of indexes) found.addPartition(this.#sql.named.get(lane, index))
    const listed = {
      keys: (needs.keys ?? []).flatMap((key) => this.#sql.key.get(key) ?? []),
      order: needs.order === undefined ? [] : this.#ordered(needs.order, found),
      nextLanes: (needs.nextLanes ?? []).map((need) => found.addLanes(this.#nextLanes(need))),
      rows: (needs.rows ?? []).map((need) => found.addPartitions(this.#rows(need))),
      fresh: (needs.fresh ?? []).map(({ lane, table, after, tail, limit }) =>
        found.addWaiting(
          table === undefined
            ? this.#fresh(lane, after, tail, limit)
            : this.#sql.freshOfTable.all(lane, after, tail, table, limit),
        ),
      ),
      returned: (needs.returned ?? []).map((need) => found.addWaiting(this.#returned(need))),
    }
    return { ...found.withParents(), ...listed }
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

  /** These partitions with their parent rows. */
  withParents(rows: readonly StoredPartition[]): LoadedRows {
    const found = new Found(this.#sql)
    found.addPartitions(rows)
    return found.withParents()
  }

  #ordered(order: Order, found: Found): number[] {
    if (order.table === undefined) return found.addLanes(this.#order(order))
    const ids = this.#orderOfTable(order.table, order).map(({ lane }) => lane)
    for (const id of ids) found.addLane(this.#sql.lane.get(id))
    return ids
  }

  #orderOfTable(name: string, { after, limit }: Order): StoredLaneTable[] {
    const { sameTurn, sameLevel, laterLevels } = this.#sql.ofTable
    if (after === null) return laterLevels.all(name, -1, limit)
    const { level, turn, lane }: OrderPosition = after
    const found = sameTurn.all(name, level, turn, lane, limit)
    if (found.length < limit) found.push(...sameLevel.all(name, level, turn, limit - found.length))
    if (found.length < limit) found.push(...laterLevels.all(name, level, limit - found.length))
    return found
  }

  /**
   * Compares the columns of the position one after another. For a row comparison SQLite uses only the first
   * columns of the index and rereads all lanes with the same turn, which may be all lanes.
   */
  #order({ after, limit }: Order): StoredLane[] {
    if (after === null) return this.#sql.order.all(limit)
    const { level, turn, lane }: OrderPosition = after
    const found = this.#sql.sameTurn.all(level, turn, lane, limit)
    if (found.length < limit) found.push(...this.#sql.sameLevel.all(level, turn, limit - found.length))
    if (found.length < limit) found.push(...this.#sql.laterLevels.all(level, limit - found.length))
    return found
  }

  #nextLanes({ task, from, having, limit }: NextLanes): StoredLane[] {
    return this.#sql.nextLanes[having].all(task, from, limit)
  }

  #rows({ lane, tail, state, afterIndex, limit }: Rows): StoredPartition[] {
    if (state === null) return this.#sql.rows.all(lane, afterIndex, tail, limit)
    if (state === 'parked') return this.#sql.parkedRows.all(lane, afterIndex, tail, limit)
    return this.#sql.rowsInState.all(lane, afterIndex, tail, state, limit)
  }

  /**
   * Fresh partitions are untouched, so only the descriptor is read. Partitions that a pull by table took out
   * of order are skipped.
   */
  #fresh(lane: number, after: number, tail: number, limit: number): StoredPartition[] {
    return this.#sql.fresh.all(lane, after, tail, limit).map(newPartition)
  }

  #returned({ lane, table, line, after, limit }: Returned): StoredPartition[] {
    const { dueAt, id }: LinePosition = after ?? { dueAt: 0, id: 0 }
    if (table !== undefined)
      return this.#sql.returnedOfTable.all(lane, line, table, dueAt, dueAt, dueAt, id, limit)
    const found = this.#sql.samePlace.all(lane, line, dueAt, id, limit)
    if (found.length < limit)
      found.push(...this.#sql.laterPlaces.all(lane, line, dueAt, limit - found.length))
    return found
  }
}

/** Rows by key, in the order in which they were found. */
class Found {
  readonly #sql: ReturnType<typeof prepare>
  readonly #tasks = new Map<number, StoredTask>()
  readonly #lanes = new Map<number, StoredLane>()
  readonly #levels = new Map<number, StoredLevel>()
  readonly #tableTimes = new Map<string, StoredTableTime>()
  readonly #partitions = new Map<number, StoredPartition>()
  /** Partitions whose lanes the caller already has. */
  readonly #waiting: StoredPartition[] = []

  constructor(sql: ReturnType<typeof prepare>) {
    this.#sql = sql
  }

  addTask(task: StoredTask | undefined): void {
    if (task !== undefined) this.#tasks.set(task.id, task)
  }

  addLane(lane: StoredLane | undefined): void {
    if (lane !== undefined) this.#lanes.set(lane.id, lane)
  }

  addLevel(level: StoredLevel | undefined): void {
    if (level !== undefined) this.#levels.set(level.level, level)
  }

  addTableTime(time: StoredTableTime | undefined): void {
    if (time !== undefined) this.#tableTimes.set(`${time.level}:${time.table}`, time)
  }

  addPartition(partition: StoredPartition | undefined): void {
    if (partition !== undefined) this.#partitions.set(partition.id, partition)
  }

  addLanes(found: readonly StoredLane[]): number[] {
    for (const lane of found) this.addLane(lane)
    return idsOf(found)
  }

  addPartitions(found: readonly StoredPartition[]): number[] {
    for (const partition of found) this.addPartition(partition)
    return idsOf(found)
  }

  addWaiting(found: readonly StoredPartition[]): number[] {
    for (const partition of found) this.#waiting.push(partition)
    return idsOf(found)
  }

  withParents(): LoadedRows {
    const homes = new Set<number>()
    for (const { lane } of this.#partitions.values()) homes.add(lane)
    for (const lane of homes) if (!this.#lanes.has(lane)) this.addLane(this.#sql.lane.get(lane))
    const found: StoredLaneTable[] = []
    for (const { id, task, level } of this.#lanes.values()) {
      if (!this.#tasks.has(task)) this.addTask(this.#sql.task.get(task))
      if (!this.#levels.has(level)) this.addLevel(this.#sql.level.get(level))
      for (const row of this.#sql.tablesOf.all(id)) {
        found.push(row)
        if (!this.#tableTimes.has(`${level}:${row.table}`))
          this.addTableTime(this.#sql.tableTime.get(level, row.table))
      }
    }
    return {
      tasks: [...this.#tasks.values()],
      lanes: [...this.#lanes.values()],
      levels: [...this.#levels.values()],
      laneTables: found,
      tableTimes: [...this.#tableTimes.values()],
      partitions: [...this.#partitions.values(), ...this.#waiting],
    }
  }
}

function prepare(db: DatabaseSync) {
  const nextLanes = (condition: string) =>
    finder(db, lanes, `WHERE task = ? AND level >= ? ${condition} ORDER BY level ${LIMIT}`)
  const ofTable = (condition: string) => finder(db, laneTables, `WHERE name = ? AND ${condition} ${LIMIT}`)
  const returned = (condition: string) =>
    finder(
      db,
      partitions,
      `WHERE lane = ? AND line = ? AND ${partitionIs.returned} AND ${condition} ${LIMIT}`,
    )
  const rows = (condition: string) =>
    finder(db, partitions, `WHERE lane = ? AND idx > ? AND id <= ? ${condition} ORDER BY idx ${LIMIT}`)
  return {
    task: finder(db, tasks, 'WHERE id = ?'),
    taskNamed: finder(db, tasks, 'WHERE task_id = ?'),
    lane: finder(db, lanes, 'WHERE id = ?'),
    laneOf: finder(db, lanes, 'WHERE task = ? AND level = ?'),
    level: finder(db, levels, 'WHERE level = ?'),
    partition: finder(db, partitions, 'WHERE id = ?'),
    named: finder(db, partitions, 'WHERE lane = ? AND idx = ?'),
    known: finder(db, knownPartitions, 'WHERE lane = ? AND idx = ? AND id <= ?'),
    key: finder(db, keys, 'WHERE key = ?'),
    order: finder(db, lanes, `WHERE turn IS NOT NULL ORDER BY level, turn, id ${LIMIT}`),
    sameTurn: finder(db, lanes, `WHERE level = ? AND turn = ? AND id > ? ORDER BY id ${LIMIT}`),
    sameLevel: finder(db, lanes, `WHERE level = ? AND turn > ? ORDER BY turn, id ${LIMIT}`),
    laterLevels: finder(db, lanes, `WHERE level > ? AND turn IS NOT NULL ORDER BY level, turn, id ${LIMIT}`),
    tablesOf: finder(db, laneTables, 'WHERE lane = ?'),
    tableTime: finder(db, tableTimes, 'WHERE level = ? AND name = ?'),
    ofTable: {
      sameTurn: ofTable('level = ? AND turn = ? AND lane > ? ORDER BY lane'),
      sameLevel: ofTable('level = ? AND turn > ? ORDER BY turn, lane'),
      laterLevels: ofTable('level > ? AND turn IS NOT NULL ORDER BY level, turn, lane'),
    },
    nextLanes: {
      any: nextLanes(''),
      unfinished: nextLanes(`AND ${laneHas.unfinished}`),
      parked: nextLanes(`AND ${laneHas.parked}`),
      waiting: nextLanes('AND turn IS NOT NULL'),
      rows: nextLanes(`AND ${laneHas.rows}`),
    },
    rows: rows(''),
    parkedRows: rows(`AND state = 'parked'`),
    rowsInState: rows('AND state = ?'),
    // There is no index by table, so all waiting partitions of the lane are searched. Lanes with several
    // tables are rare, and so are lanes with many returned partitions.
    freshOfTable: finder(
      db,
      partitions,
      `WHERE lane = ? AND id > ? AND id <= ? AND compute_table = ? ORDER BY id ${LIMIT}`,
    ),
    returnedOfTable: returned(
      `compute_table = ? AND ${PLACE} >= ? AND (${PLACE} > ? OR ${PLACE} = ? AND id > ?) ORDER BY ${PLACE}, id`,
    ),
    fresh: finder(
      db,
      descriptors,
      `WHERE lane = ? AND id > ? AND id <= ? AND state = 'ready' AND line = 'fresh' ORDER BY id ${LIMIT}`,
    ),
    samePlace: returned(`${PLACE} = ? AND id > ? ORDER BY id`),
    laterPlaces: returned(`${PLACE} > ? ORDER BY ${PLACE}, id`),
  }
}
