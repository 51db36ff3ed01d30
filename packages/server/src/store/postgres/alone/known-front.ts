import { front } from '../pull/claim.ts'
import { WAITS } from '../queues/places.ts'
import type { RowNames } from '../rows/handed-out-row.ts'
import type { Names } from '../rows/names.ts'
import { type Row, statement } from '../session/statement.ts'
import type { Transactions } from '../session/transactions.ts'

/** A partition that is ready, as it was read. */
export interface FrontPartition {
  readonly row: Row
  readonly names: RowNames
}

/** Read by so many at a time: who waits for some does not wait for more. */
const READ_AT_ONCE = 500

const AFTER = '(r.level, r.rank, r.id) > ($1::bigint, $2::bigint, $3::bigint)'
/** From the beginning of the order, or after a partition. */
const read = statement(
  'read-front',
  `SELECT q.place::text AS place, q.id, q.lane, q.task, q.level, q.rank::text AS rank, q.stay, q.fresh, q.refill, p.*,
     CASE WHEN q.refill AND EXISTS (SELECT FROM baton.held h WHERE h.lane = q.lane) THEN
       (SELECT rank::text FROM baton.ready w WHERE w.lane = q.lane AND w.fresh ORDER BY w.id DESC LIMIT 1)
     END AS window_end
   FROM (${front('r.ctid AS place, r.id, r.lane, r.task, r.level, r.rank, r.stay, r.fresh, r.refill', AFTER)} LIMIT $4) q
   CROSS JOIN LATERAL (
     SELECT idx, term, attempts, record_count, spelling, compute_table FROM baton.partition WHERE id = q.id AND ${WAITS} OFFSET 0
   ) p
   ORDER BY q.level, q.rank, q.id`,
)
const withBarrier = statement(
  'tasks-with-barrier',
  'SELECT id FROM baton.task WHERE id = ANY ($1::bigint[]) AND level_barrier',
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
  /** Set by the reading that came to the end of its window. */
  #laneInTheWay: number | undefined
  /** Whether tasks have a level barrier: while this node is alone, nobody changes that. */
  readonly #barriers = new Map<number, boolean>()

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

  /** The lane whose window has to be filled before more can be read. */
  get laneInTheWay(): number | undefined {
    return this.#laneInTheWay
  }

  /** The window of this lane goes on, and its tripwire has done its duty. */
  wasFilled(lane: number): void {
    const end = this.#windowEnds.get(lane)
    if (end !== undefined) end.tripwire['refill'] = false
    this.#windowEnds.delete(lane)
    if (this.#laneInTheWay === lane) this.#laneInTheWay = undefined
  }

  /** False when there is nothing more that could be read now. */
  async readOn(): Promise<boolean> {
    const rows = await this.#transactions.runOne(read, [...this.#last, READ_AT_ONCE])
    await this.#learnBarriers(rows)
    const found = this.#inOrder(rows, rows.length < READ_AT_ONCE)
    const last = found.at(-1)
    if (last === undefined) return false
    const names = await this.#names.namesOf(found)
    const added = found.map((row, at) => ({ row, names: names[at] ?? NAMELESS }))
    this.#partitions = [...this.#partitions.slice(this.#next), ...added]
    this.#next = 0
    this.#last = [last['level'] as number, last['rank'] as string, last['id'] as number]
    return found.length === READ_AT_ONCE
  }

  async #learnBarriers(rows: readonly Row[]): Promise<void> {
    const unknown = new Set<number>()
    for (const { task } of rows) if (!this.#barriers.has(task as number)) unknown.add(task as number)
    if (unknown.size === 0) return
    const found = await this.#transactions.runOne(withBarrier, [[...unknown]])
    for (const task of unknown) this.#barriers.set(task, false)
    for (const { id } of found) this.#barriers.set(id as number, true)
  }

  /** As far as the order can be told. What may open a level is for the transaction that sees to it; so is what comes after. */
  #inOrder(rows: readonly Row[], areLast: boolean): Row[] {
    const found: Row[] = []
    let end = this.#firstEnd()
    for (const row of rows) {
      const place = { level: row['level'] as number, rank: BigInt(row['rank'] as string) }
      if (end !== undefined && isBefore(end, place)) break
      if (this.#barriers.get(row['task'] as number) === true) {
        this.#laneInTheWay = undefined
        return found
      }
      const rank = row['window_end'] as string | null
      if (rank !== null) {
        const lane = row['lane'] as number
        this.#windowEnds.set(lane, { lane, level: place.level, rank: BigInt(rank), tripwire: row })
        end = this.#firstEnd()
      }
      found.push(row)
    }
    this.#laneInTheWay = areLast || found.length < rows.length ? end?.lane : undefined
    return found
  }

  #firstEnd(): WindowEnd | undefined {
    let first: WindowEnd | undefined
    for (const end of this.#windowEnds.values()) if (first === undefined || isBefore(end, first)) first = end
    return first
  }
}

interface WindowEnd {
  readonly lane: number
  readonly level: number
  readonly rank: bigint
  readonly tripwire: Row
}

function isBefore(a: Pick<WindowEnd, 'level' | 'rank'>, b: Pick<WindowEnd, 'level' | 'rank'>): boolean {
  return a.level < b.level || (a.level === b.level && a.rank < b.rank)
}

const NAMELESS: RowNames = { taskId: '', computeTableName: '' }
