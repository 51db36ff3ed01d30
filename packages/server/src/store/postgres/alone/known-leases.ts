import type { LeaseRef } from '../../../handoff/rules/lease-id.ts'
import type { PlainSettlements } from '../leases/settle-plain.ts'
import type { LaneKey } from '../rows/entries.ts'
import { statement } from '../session/statement.ts'
import type { Transactions } from '../session/transactions.ts'
import type { NotedFinish } from './notes.ts'

/** Of leases that nobody has settled yet. */
const REMEMBERED = 50_000

interface KnownLease {
  readonly lane: LaneKey
  readonly recordCount: number
  readonly term: number
  readonly secret: string
  isSettled: boolean
}

/** Those of tasks with a barrier may open a level, and those of cancelled tasks are refused: both by transactions. */
const running = statement(
  'running-leases',
  `SELECT p.*, l.task FROM unnest($1::bigint[]) AS a (id)
   CROSS JOIN LATERAL (
     SELECT id, lane, level, record_count, term, secret FROM baton.partition
     WHERE id = a.id AND state = 'leased' AND outcome IS NULL OFFSET 0
   ) p
   CROSS JOIN LATERAL (SELECT task FROM baton.lane WHERE id = p.lane OFFSET 0) l
   WHERE (SELECT NOT cancelled AND NOT level_barrier FROM baton.task WHERE id = l.task)`,
)

/** Leases that run, as long as nobody else ends any: those given from memory, and those that were asked for since. */
export class KnownLeases {
  readonly #transactions: Transactions
  readonly #leases = new Map<number, KnownLease>()
  /** How often some were forgotten. */
  #forgotten = 0

  constructor(transactions: Transactions) {
    this.#transactions = transactions
  }

  give({ id, lane, recordCount, term, secret }: Omit<NotedFinish, 'reported'>): void {
    this.#leases.set(id, { lane, recordCount, term, secret, isSettled: false })
  }

  /** Loads those that are not known. */
  async learn(settlements: PlainSettlements): Promise<void> {
    const unknown = [...settlements.keys()].filter((id) => !this.#leases.has(id))
    if (unknown.length === 0) return
    const before = this.#forgotten
    const rows = await this.#transactions.runOne(running, [unknown])
    // A row may be of before its lease was settled, written up and forgotten.
    if (this.#forgotten !== before) return this.learn(settlements)
    for (const row of rows) {
      const id = row['id'] as number
      if (this.#leases.has(id)) continue
      this.give({
        id,
        lane: { id: row['lane'] as number, task: row['task'] as number, level: row['level'] as number },
        recordCount: row['record_count'] as number,
        term: row['term'] as number,
        secret: row['secret'] as string,
      })
    }
  }

  /** Settles all as done; undefined when one of them is not a lease that is known to run. */
  settle(settlements: PlainSettlements): NotedFinish[] | undefined {
    for (const { lease } of settlements.values()) if (!this.#runs(lease)) return undefined
    return [...settlements.values()].map(({ lease, reported }) => {
      const known = this.#leases.get(lease.partition)
      if (known === undefined) throw new Error('a lease was known a moment ago')
      known.isSettled = true
      const { lane, recordCount, term, secret } = known
      return { id: lease.partition, lane, recordCount, term, secret, reported }
    })
  }

  /** What is written up is found in the rows by whoever asks again; so are those that run, when they are many. */
  forget(given: readonly { readonly id: number }[], finished: readonly { readonly id: number }[]): void {
    this.#forgotten += 1
    for (const { id } of finished) this.#leases.delete(id)
    if (this.#leases.size <= REMEMBERED) return
    for (const { id } of given) if (this.#leases.get(id)?.isSettled === false) this.#leases.delete(id)
  }

  #runs({ partition, term, secret }: LeaseRef): boolean {
    const known = this.#leases.get(partition)
    return known !== undefined && !known.isSettled && known.term === term && known.secret === secret
  }
}
