import type { DatabaseSync } from 'node:sqlite'
import type { IndexRange } from '../../handoff/rules/index-runs.ts'
import type { IndexRangeOfLane } from '../../handoff/stored.ts'
import { arrayQuery } from './dialect.ts'

/** The indexes of a lane that were ever called back, as ranges with gaps between them. */
export class Ranges {
  readonly #sql: ReturnType<typeof prepare>

  constructor(db: DatabaseSync) {
    this.#sql = prepare(db)
  }

  /** Adds a range and merges it with overlapping and adjacent ones. */
  add({ lane, first, last }: IndexRangeOfLane): void {
    const below = this.#atOrBelow(lane, first)
    if (below !== undefined && below.last >= last) return
    const joined = { first, last }
    if (below !== undefined && below.last >= first - 1) joined.first = below.first
    // Merge from the last range that it reaches down to the first.
    for (;;) {
      const reached = this.#atOrBelow(lane, Math.min(joined.last + 1, Number.MAX_SAFE_INTEGER))
      if (reached === undefined || reached.first < joined.first) break
      joined.last = Math.max(joined.last, reached.last)
      this.#sql.remove.run(lane, reached.first)
    }
    this.#sql.insert.run(lane, joined.first, joined.last)
  }

  /** The last range of the lane that begins at this index or before it. */
  #atOrBelow(lane: number, index: number): IndexRange | undefined {
    const found = this.#sql.atOrBelow.get(lane, index)
    return found && { first: found[0], last: found[1] }
  }
}

function prepare(db: DatabaseSync) {
  return {
    atOrBelow: arrayQuery<[first: number, last: number]>(
      db,
      'SELECT first, last FROM lane_range WHERE lane = ? AND first <= ? ORDER BY first DESC LIMIT 1',
    ),
    insert: db.prepare('INSERT INTO lane_range (lane, first, last) VALUES (?, ?, ?)'),
    remove: db.prepare('DELETE FROM lane_range WHERE lane = ? AND first = ?'),
  }
}
