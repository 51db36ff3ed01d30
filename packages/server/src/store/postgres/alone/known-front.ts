import { front } from '../pull/claim.ts'
import { WAITS } from '../queues/places.ts'
import type { RowNames } from '../rows/handed-out-row.ts'
import type { Names } from '../rows/names.ts'
import type { Row } from '../session/connection.ts'
import { statement } from '../session/statement.ts'
import type { Transactions } from '../session/transactions.ts'

/** A partition that is ready, as it was read. */
export interface FrontPartition {
  readonly row: Row
  readonly names: RowNames
}

/** The most that is read ahead. */
export const READ_AHEAD = 500

const AFTER = '(r.level, r.rank, r.id) > ($1::bigint, $2::bigint, $3::bigint)'
/** From the beginning of the order, or after a partition. */
const read = statement(
  'read-front',
  `SELECT q.place::text AS place, q.id, q.lane, q.task, q.level, q.rank::text AS rank, q.stay, q.fresh, q.refill, p.*,
     (SELECT level_barrier FROM baton.task t WHERE t.id = q.task) AS level_barrier,
     CASE WHEN q.refill AND EXISTS (SELECT FROM baton.held h WHERE h.lane = q.lane) THEN
       (SELECT rank::text FROM baton.ready w WHERE w.lane = q.lane AND w.fresh ORDER BY w.id DESC LIMIT 1)
     END AS window_end
   FROM (${front('r.ctid AS place, r.id, r.lane, r.task, r.level, r.rank, r.stay, r.fresh, r.refill', AFTER)} LIMIT $4) q
   CROSS JOIN LATERAL (
     SELECT idx, term, attempts, record_count, spelling, compute_table FROM baton.partition WHERE id = q.id AND ${WAITS} OFFSET 0
   ) p
   ORDER BY q.level, q.rank, q.id`,
)

/**
 * The front of the order, as long as nobody else takes from it: read ahead, so that handing out is taking from an array.
 * It never goes beyond the end of a window whose tripwire is in it, or was handed out: behind that, the order cannot be
 * told before the window is filled.
 */
export class KnownFront {
  readonly #transactions: Transactions
  readonly #names: Names
  #partitions: FrontPartition[] = []
  #next = 0
  /** The last that was read. */
  #last: readonly [level: number, rank: string, id: number] = [-1, '0', 0]
  /** Where the windows end whose tripwire was read and which were not filled since, by lane. */
  readonly #windowEnds = new Map<number, WindowEnd>()

  constructor(transactions: Transactions, names: Names) {
    this.#transactions = transactions
    this.#names = names
  }

  get length(): number {
    return this.#partitions.length - this.#next
  }

  take(count: number): FrontPartition[] {
    const taken = this.#partitions.slice(this.#next, this.#next + count)
    this.#next += taken.length
    return taken
  }

  /** The window of this lane goes on. */
  wasFilled(lane: number): void {
    this.#windowEnds.delete(lane)
  }

  async readOn(): Promise<void> {
    const room = READ_AHEAD - this.length
    if (room <= 0) return
    const found = this.#inOrder(await this.#transactions.read(read, [...this.#last, room]))
    const last = found.at(-1)
    if (last === undefined) return
    const names = await this.#names.namesOf(found)
    const added = found.map((row, at) => ({ row, names: names[at] ?? NAMELESS }))
    this.#partitions = [...this.#partitions.slice(this.#next), ...added]
    this.#next = 0
    this.#last = [last['level'] as number, last['rank'] as string, last['id'] as number]
  }

  /** As far as the order can be told. What may open a level is for the transaction that sees to it; so is what comes after. */
  #inOrder(rows: readonly Row[]): Row[] {
    const found: Row[] = []
    for (const row of rows) {
      const level = row['level'] as number
      if (row['level_barrier'] === true || this.#isBeyondWindow(level, row['rank'] as string)) break
      const end = row['window_end'] as string | null
      if (end !== null) this.#windowEnds.set(row['lane'] as number, { level, rank: BigInt(end) })
      found.push(row)
    }
    return found
  }

  #isBeyondWindow(level: number, rank: string): boolean {
    for (const end of this.#windowEnds.values())
      if (level > end.level || (level === end.level && BigInt(rank) > end.rank)) return true
    return false
  }
}

interface WindowEnd {
  readonly level: number
  readonly rank: bigint
}

const NAMELESS: RowNames = { taskId: '', computeTableName: '' }
