import type { DatabaseSync } from 'node:sqlite'
import { type IndexRun, runsOf } from '../../handoff/rules/index-runs.ts'
import type { LaneEntry } from '../../handoff/rules/task-entry.ts'
import { query } from './query.ts'

/** Which indexes of a lane were ever called back, as ranges: mostly one per lane. */
export class Ranges {
  readonly #sql: ReturnType<typeof prepare>

  constructor(db: DatabaseSync) {
    this.#sql = prepare(db)
  }

  /** A test for many indexes in a row: neighbours are answered from the range that was read last. */
  contains(lane: LaneEntry): (index: number) => boolean {
    let known: IndexRun | undefined
    let gap: IndexRun | undefined
    return (index) => {
      if (known !== undefined && index >= known.first && index <= known.last) return true
      if (gap !== undefined && index >= gap.first && index <= gap.last) return false
      const below = this.#sql.atOrBelow.get(lane.id, index)
      if (below !== undefined && index <= below.last) {
        known = below
        return true
      }
      const above = this.#sql.above.get(lane.id, index)
      gap = {
        first: below === undefined ? 0 : below.last + 1,
        last: (above?.first ?? Number.MAX_SAFE_INTEGER + 1) - 1,
      }
      return false
    }
  }

  /** The indexes are new: none of them lies in a range yet. */
  add(lane: LaneEntry, indexes: readonly number[]): void {
    for (const run of runsOf(indexes)) {
      const below = this.#sql.atOrBelow.get(lane.id, run.first)
      if (below !== undefined && below.last === run.first - 1) {
        run.first = below.first
        this.#sql.remove.run(lane.id, below.first)
      }
      const above = this.#sql.above.get(lane.id, run.last)
      if (above !== undefined && above.first === run.last + 1) {
        run.last = above.last
        this.#sql.remove.run(lane.id, above.first)
      }
      this.#sql.insert.run(lane.id, run.first, run.last)
    }
  }
}

function prepare(db: DatabaseSync) {
  return {
    atOrBelow: query<IndexRun>(
      db,
      'SELECT first, last FROM lane_range WHERE lane = ? AND first <= ? ORDER BY first DESC LIMIT 1',
    ),
    above: query<IndexRun>(
      db,
      'SELECT first, last FROM lane_range WHERE lane = ? AND first > ? ORDER BY first LIMIT 1',
    ),
    insert: db.prepare('INSERT INTO lane_range (lane, first, last) VALUES (?, ?, ?)'),
    remove: db.prepare('DELETE FROM lane_range WHERE lane = ? AND first = ?'),
  }
}
