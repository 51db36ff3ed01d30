import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite'
import type { CalledBackPartition } from '@baton/protocol'
import type { LaneEntry } from '../../handoff/rules/task-entry.ts'
import type { Names } from './names.ts'

/** Rows per statement: one at a time takes 2.5 µs each, 50 at a time 1.1. */
const ROWS_AT_ONCE = 50

/** Writes the rows of partitions that were called back, in the order in which they came: their ids are that order. */
export class NewPartitions {
  readonly #names: Names
  readonly #sql: ReturnType<typeof prepare>

  constructor(db: DatabaseSync, names: Names) {
    this.#names = names
    this.#sql = prepare(db)
  }

  /** Returns the partition's id. */
  insertReady(lane: LaneEntry, partition: CalledBackPartition, rank: bigint, now: number): number {
    const { lastInsertRowid } = this.#sql.ready.run(lane.id, lane.level, now, rank, ...this.#own(partition))
    return Number(lastInsertRowid)
  }

  insertHeld(lane: LaneEntry, partitions: readonly CalledBackPartition[], now: number): void {
    const insert = (statement: StatementSync, rows: readonly CalledBackPartition[]) =>
      statement.run(lane.id, lane.level, now, ...rows.flatMap((partition) => this.#own(partition)))
    const inFullStatements = partitions.length - (partitions.length % ROWS_AT_ONCE)
    for (let at = 0; at < inFullStatements; at += ROWS_AT_ONCE)
      insert(this.#sql.manyHeld, partitions.slice(at, at + ROWS_AT_ONCE))
    for (const partition of partitions.slice(inFullStatements)) insert(this.#sql.oneHeld, [partition])
  }

  #own({ index, recordCount, computeTableName, spelling }: CalledBackPartition): SQLInputValue[] {
    return [index, recordCount, this.#names.computeTableId(computeTableName), spelling]
  }
}

function prepare(db: DatabaseSync) {
  const columns = 'lane, level, called_back_at, state, rank, idx, record_count, compute_table, spelling'
  const held = (rows: number) =>
    db.prepare(
      `INSERT INTO partition (${columns})
       SELECT ?, ?, ?, 'held', NULL, column1, column2, column3, column4
       FROM (VALUES ${Array(rows).fill('(?, ?, ?, ?)').join(', ')})`,
    )
  return {
    ready: db.prepare(`INSERT INTO partition (${columns}) VALUES (?, ?, ?, 'ready', ?, ?, ?, ?, ?)`),
    oneHeld: held(1),
    manyHeld: held(ROWS_AT_ONCE),
  }
}
