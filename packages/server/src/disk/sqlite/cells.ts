import type { DatabaseSync } from 'node:sqlite'
import type { CellCount, CellsOfLane } from '../../handoff/disk.ts'
import type { StoredState } from '../../handoff/rules/life-cycle.ts'
import { arrayQuery, LIMIT } from './tables.ts'

/** The states of partitions, counted by cell, for the grid of a level. */
export class Cells {
  readonly #sql: ReturnType<typeof prepare>

  constructor(db: DatabaseSync) {
    this.#sql = prepare(db)
  }

  count({ lane, tail, by }: CellsOfLane): CellCount[] {
    return by.kind === 'rank' ? this.#ranked(lane, tail, by) : this.#sampled(lane, tail, by)
  }

  #ranked(lane: number, tail: number, { width, limit }: { width: number; limit: number }): CellCount[] {
    const rows = this.#sql.rows.all(lane, tail, limit)
    return Array.from({ length: Math.ceil(rows.length / width) }, (_, cell) => {
      const within = rows.slice(cell * width, (cell + 1) * width)
      return [...Map.groupBy(within, ([, state]) => state)].map(([state, found]) => ({
        cell,
        state,
        partitions: found.length,
        first: found[0]?.[0] ?? 0,
        last: found.at(-1)?.[0] ?? 0,
      }))
    }).flat()
  }

  #sampled(lane: number, tail: number, { cells, each }: { cells: number; each: number }): CellCount[] {
    const [lowest] = this.#sql.lowest.get(lane) ?? []
    const [highest] = this.#sql.highest.get(lane) ?? []
    if (lowest === undefined || highest === undefined) return []
    const width = Math.ceil((highest - lowest + 1) / cells)
    return Array.from({ length: cells }, (_, cell) => {
      const first = lowest + cell * width
      const last = Math.min(first + width - 1, highest)
      const found = [
        ...this.#sql.some.all(lane, first, last, tail, each).filter(([state]) => state !== 'parked'),
        ...this.#sql.parked.all(lane, first, last, tail, each),
      ]
      return [...Map.groupBy(found, ([state]) => state)].map(([state, { length: partitions }]) => ({
        cell,
        state,
        partitions,
        first,
        last,
      }))
    }).flat()
  }
}

function prepare(db: DatabaseSync) {
  const within = 'WHERE lane = ? AND idx BETWEEN ? AND ? AND id <= ?'
  const end = (order: 'ASC' | 'DESC') =>
    arrayQuery<[index: number]>(db, `SELECT idx FROM partition WHERE lane = ? ORDER BY idx ${order} LIMIT 1`)
  return {
    lowest: end('ASC'),
    highest: end('DESC'),
    rows: arrayQuery<[index: number, state: StoredState]>(
      db,
      `SELECT idx, state FROM partition INDEXED BY partition_identity
       WHERE lane = ? AND id <= ? ORDER BY idx ${LIMIT}`,
    ),
    some: arrayQuery<[state: StoredState]>(
      db,
      `SELECT state FROM partition INDEXED BY partition_identity ${within} ORDER BY idx ${LIMIT}`,
    ),
    parked: arrayQuery<[state: StoredState]>(
      db,
      `SELECT state FROM partition INDEXED BY partition_parked ${within} AND state = 'parked'
       ORDER BY idx ${LIMIT}`,
    ),
  }
}
