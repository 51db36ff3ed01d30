import type { DatabaseSync } from 'node:sqlite'
import { type ThroughputStep, throughputSteps } from '@baton/protocol'
import type { ForgetThroughput, ThroughputRowsQuery } from '../../handoff/disk.ts'
import type { ThroughputRow } from '../../handoff/views/queries.ts'
import { arrayQuery, LIMIT } from './tables.ts'

/** The throughput history of tasks. */
export class ThroughputRows {
  readonly #sql: ReturnType<typeof prepare>

  constructor(db: DatabaseSync) {
    this.#sql = prepare(db)
  }

  read({ task, step, from, to, byLevel, limit }: ThroughputRowsQuery): ThroughputRow[] {
    const found = byLevel ? this.#sql.byLevel : this.#sql.summed
    return found
      .all(task, step, from, to, limit)
      .map(([at, level, partitions, records]) => ({ at, level, partitions, records }))
  }

  /** Must be called within a transaction. */
  forget({ before, most, limit }: ForgetThroughput): number {
    let left = limit
    for (const step of throughputSteps) left -= this.#forget(step, before[step], most, left)
    return limit - left
  }

  #forget(step: ThroughputStep, before: number, most: number | null, limit: number): number {
    const [beyond] = (most === null ? undefined : this.#sql.beyond.get(step, most)) ?? [-1]
    return Number(this.#sql.forget.run(step, Math.max(before, beyond + 1), limit).changes)
  }
}

const MOST = Number.MAX_SAFE_INTEGER

function prepare(db: DatabaseSync) {
  const within = 'FROM throughput WHERE task = ? AND step = ? AND at >= ? AND at < ?'
  type Found = [at: number, level: number | null, partitions: number, records: number]
  return {
    byLevel: arrayQuery<Found>(
      db,
      `SELECT at, level, partitions, records ${within} ORDER BY at DESC, level DESC ${LIMIT}`,
    ),
    summed: arrayQuery<Found>(
      db,
      `SELECT at, NULL, sum(partitions), min(sum(records), ${MOST}) ${within} GROUP BY at ORDER BY at DESC ${LIMIT}`,
    ),
    // Uses the index by age alone, which is read up to the newest row over the limit.
    beyond: arrayQuery<[number]>(
      db,
      'SELECT at FROM throughput WHERE step = ? ORDER BY at DESC LIMIT 1 OFFSET ? + 0',
    ),
    forget: db.prepare(
      `DELETE FROM throughput WHERE (task, step, at, level) IN
         (SELECT task, step, at, level FROM throughput WHERE step = ? AND at < ? ORDER BY at ${LIMIT})`,
    ),
  }
}
