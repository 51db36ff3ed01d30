import type { DatabaseSync } from 'node:sqlite'
import type { LinePosition, Loaded, Needs, OrderPosition } from '../../handoff/disk.ts'
import {
  type StoredLane,
  type StoredLevel,
  type StoredPartition,
  type StoredTask,
  untouched,
} from '../../handoff/stored.ts'
import { arrayQuery } from './query.ts'
import { laneHas, PLACE, partitionIs } from './schema.ts'
import { finder } from './table.ts'
import { keys, lanes, levels, partitions, tasks } from './tables.ts'

type Order = NonNullable<Needs['order']>
type NextLanes = NonNullable<Needs['nextLanes']>[number]
type Rows = NonNullable<Needs['rows']>[number]
type Returned = NonNullable<Needs['returned']>[number]

const idsOf = (found: readonly { readonly id: number }[]): number[] => found.map(({ id }) => id)

/** Reads what the engine asks for, and the rows that it belongs to. */
export class Loads {
  readonly #sql: ReturnType<typeof prepare>

  constructor(db: DatabaseSync) {
    this.#sql = prepare(db)
  }

  load(needs: Needs): Loaded {
    const found = new Found(this.#sql)
    for (const name of needs.taskNames ?? []) found.addTask(this.#sql.taskNamed.get(name))
    for (const id of needs.tasks ?? []) found.addTask(this.#sql.task.get(id))
    for (const id of needs.lanes ?? []) found.addLane(this.#sql.lane.get(id))
    for (const level of needs.levels ?? []) found.addLevel(this.#sql.level.get(level))
    for (const { task, levels: wanted } of needs.lanesOf ?? [])
      for (const level of wanted) found.addLane(this.#sql.laneOf.get(task, level))
    for (const id of needs.partitions ?? []) found.addPartition(this.#sql.partition.get(id))
    for (const { lane, indexes } of needs.named ?? [])
      for (const index of indexes) found.addPartition(this.#sql.named.get(lane, index))
    const listed = {
      keys: (needs.keys ?? []).flatMap((key) => this.#sql.key.get(key) ?? []),
      order: needs.order === undefined ? [] : found.addLanes(this.#order(needs.order)),
      nextLanes: (needs.nextLanes ?? []).map((need) => found.addLanes(this.#nextLanes(need))),
      rows: (needs.rows ?? []).map((need) => found.addPartitions(this.#rows(need))),
      fresh: (needs.fresh ?? []).map(({ lane, after, tail, limit }) =>
        found.addPartitions(this.#fresh(lane, after, tail, limit)),
      ),
      returned: (needs.returned ?? []).map((need) => found.addPartitions(this.#returned(need))),
    }
    return { ...found.withOwners(), ...listed }
  }

  /** These partitions with their owners. */
  withOwners(rows: readonly StoredPartition[]): Pick<Loaded, 'tasks' | 'lanes' | 'levels' | 'partitions'> {
    const found = new Found(this.#sql)
    found.addPartitions(rows)
    return found.withOwners()
  }

  /**
   * One column of the position after the other: compared as a row, SQLite uses no more than the first columns, and reads
   * again all lanes that have the same turn, which may be all there are.
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

  /** Nothing has happened to these yet: what was called back is all there is to read. */
  #fresh(lane: number, after: number, tail: number, limit: number): StoredPartition[] {
    const found: StoredPartition[] = []
    for (const [id, index, recordCount, computeTable, spelling, calledBackAt] of this.#sql.fresh.all(
      lane,
      after,
      tail,
      limit,
    ))
      found.push({ id, lane, index, recordCount, computeTable, spelling, calledBackAt, ...untouched() })
    return found
  }

  #returned({ lane, line, after, limit }: Returned): StoredPartition[] {
    const { dueAt, id }: LinePosition = after ?? { dueAt: 0, id: 0 }
    const found = this.#sql.samePlace.all(lane, line, dueAt, id, limit)
    if (found.length < limit)
      found.push(...this.#sql.laterPlaces.all(lane, line, dueAt, limit - found.length))
    return found
  }
}

/** Rows by their keys, in the order in which they were found. */
class Found {
  readonly #sql: ReturnType<typeof prepare>
  readonly #tasks = new Map<number, StoredTask>()
  readonly #lanes = new Map<number, StoredLane>()
  readonly #levels = new Map<number, StoredLevel>()
  readonly #partitions = new Map<number, StoredPartition>()

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

  withOwners(): Pick<Loaded, 'tasks' | 'lanes' | 'levels' | 'partitions'> {
    const homes = new Set<number>()
    for (const { lane } of this.#partitions.values()) homes.add(lane)
    for (const lane of homes) if (!this.#lanes.has(lane)) this.addLane(this.#sql.lane.get(lane))
    for (const { task, level } of this.#lanes.values()) {
      if (!this.#tasks.has(task)) this.addTask(this.#sql.task.get(task))
      if (!this.#levels.has(level)) this.addLevel(this.#sql.level.get(level))
    }
    return {
      tasks: [...this.#tasks.values()],
      lanes: [...this.#lanes.values()],
      levels: [...this.#levels.values()],
      partitions: [...this.#partitions.values()],
    }
  }
}

type FreshRow = readonly [
  id: number,
  index: number,
  recordCount: number,
  computeTable: string,
  spelling: string | null,
  calledBackAt: number,
]

/** A bare parameter as the limit has SQLite prepare the statement again for each value (6.5 µs); a sum has not (2.3). */
export const LIMIT = 'LIMIT ? + 0'

function prepare(db: DatabaseSync) {
  const nextLanes = (condition: string) =>
    finder(db, lanes, `WHERE task = ? AND level >= ? ${condition} ORDER BY level ${LIMIT}`)
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
    key: finder(db, keys, 'WHERE key = ?'),
    order: finder(db, lanes, `WHERE turn IS NOT NULL ORDER BY level, turn, id ${LIMIT}`),
    sameTurn: finder(db, lanes, `WHERE level = ? AND turn = ? AND id > ? ORDER BY id ${LIMIT}`),
    sameLevel: finder(db, lanes, `WHERE level = ? AND turn > ? ORDER BY turn, id ${LIMIT}`),
    laterLevels: finder(db, lanes, `WHERE level > ? AND turn IS NOT NULL ORDER BY level, turn, id ${LIMIT}`),
    nextLanes: {
      any: nextLanes(''),
      unfinished: nextLanes(`AND ${laneHas.unfinished}`),
      parked: nextLanes(`AND ${laneHas.parked}`),
      rows: nextLanes(`AND ${laneHas.rows}`),
    },
    rows: rows(''),
    parkedRows: rows(`AND state = 'parked'`),
    rowsInState: rows('AND state = ?'),
    fresh: arrayQuery<FreshRow>(
      db,
      `SELECT id, idx, record_count, compute_table, spelling, called_back_at
       FROM partition WHERE lane = ? AND id > ? AND id <= ? ORDER BY id ${LIMIT}`,
    ),
    samePlace: returned(`${PLACE} = ? AND id > ? ORDER BY id`),
    laterPlaces: returned(`${PLACE} > ? ORDER BY ${PLACE}, id`),
  }
}
