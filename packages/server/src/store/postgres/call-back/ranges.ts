import { type IndexRun, runsOf } from '../../../handoff/rules/index-runs.ts'
import { statement } from '../session/statement.ts'
import type { Transaction } from '../session/transaction.ts'

/**
 * The ranges of a lane that meet any of the runs or lie next to them. The ranges of a lane do not
 * overlap, so those that begin within a run and the one before it are all there are.
 */
const meeting = statement(
  'ranges-meeting',
  `SELECT DISTINCT run.lane, r.first, r.last
   FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS run (lane, first, last)
   CROSS JOIN LATERAL (
     (SELECT first, last FROM baton.lane_range
      WHERE lane = run.lane AND first < run.first ORDER BY first DESC LIMIT 1)
     UNION ALL
     SELECT first, last FROM baton.lane_range
     WHERE lane = run.lane AND first BETWEEN run.first AND run.last + 1
   ) r
   WHERE r.last >= run.first - 1`,
)
const remove = statement(
  'remove-ranges',
  `DELETE FROM baton.lane_range r USING unnest($1::bigint[], $2::bigint[]) AS gone (lane, first)
   WHERE r.lane = gone.lane AND r.first = gone.first`,
)
const insert = statement(
  'insert-ranges',
  `INSERT INTO baton.lane_range (lane, first, last) SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[])`,
)

/** What is known of the lanes around the given indexes: which of them were ever called back. */
export class KnownRanges {
  readonly #byLane = new Map<number, IndexRun[]>()

  static async read(tx: Transaction, lanes: ReadonlyMap<number, readonly number[]>): Promise<KnownRanges> {
    const known = new KnownRanges()
    const runs = [...lanes].flatMap(([lane, indexes]) => runsOf(indexes).map((run) => ({ lane, ...run })))
    if (runs.length === 0) return known
    const rows = await tx.run(meeting, [
      runs.map(({ lane }) => lane),
      runs.map(({ first }) => first),
      runs.map(({ last }) => last),
    ])
    for (const row of rows) {
      const lane = row['lane'] as number
      const range = { first: row['first'] as number, last: row['last'] as number }
      const ranges = known.#byLane.get(lane)
      if (ranges === undefined) known.#byLane.set(lane, [range])
      else ranges.push(range)
    }
    for (const ranges of known.#byLane.values()) ranges.sort((a, b) => a.first - b.first)
    return known
  }

  contains(lane: number, index: number): boolean {
    const ranges = this.#byLane.get(lane) ?? []
    let low = 0
    let high = ranges.length
    while (low < high) {
      const middle = (low + high) >> 1
      if ((ranges[middle]?.first ?? 0) <= index) low = middle + 1
      else high = middle
    }
    const below = ranges[low - 1]
    return below !== undefined && index <= below.last
  }

  /** The indexes are new: none of them lies in a range yet. */
  add(tx: Transaction, lanes: ReadonlyMap<number, readonly number[]>): void {
    const gone: [lane: number, first: number][] = []
    const made: [lane: number, first: number, last: number][] = []
    for (const [lane, indexes] of lanes) {
      const before = this.#byLane.get(lane) ?? []
      const after = merge([...before, ...runsOf(indexes)])
      const kept = new Set(after.map(({ first, last }) => `${first}-${last}`))
      const stood = new Set(before.map(({ first, last }) => `${first}-${last}`))
      for (const { first, last } of before) if (!kept.has(`${first}-${last}`)) gone.push([lane, first])
      for (const { first, last } of after) if (!stood.has(`${first}-${last}`)) made.push([lane, first, last])
      this.#byLane.set(lane, after)
    }
    const column = (rows: readonly number[][], position: number) => rows.map((row) => row[position])
    if (gone.length > 0) tx.post(remove, [column(gone, 0), column(gone, 1)])
    tx.post(insert, [column(made, 0), column(made, 1), column(made, 2)])
  }
}

function merge(ranges: readonly IndexRun[]): IndexRun[] {
  const merged: IndexRun[] = []
  for (const { first, last } of ranges.toSorted((a, b) => a.first - b.first)) {
    const below = merged.at(-1)
    if (below !== undefined && first <= below.last + 1) below.last = Math.max(below.last, last)
    else merged.push({ first, last })
  }
  return merged
}
