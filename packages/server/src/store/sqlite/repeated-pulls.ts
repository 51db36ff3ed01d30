import type { DatabaseSync } from 'node:sqlite'
import { parseLeaseId } from '../../handoff/rules/lease-id.ts'
import { KEY_GRACE_MILLIS } from '../../handoff/rules/policy.ts'
import type { HandedOut } from '../../handoff/store.ts'
import type { Books } from './books.ts'
import { asHandedOut, type Described } from './handed-out.ts'
import type { Names } from './names.ts'
import { type Query, query } from './query.ts'

/** Pulls that came with a key: whoever asks again with the same one is given the same leases. */
export class RepeatedPulls {
  readonly #books: Books
  readonly #names: Names
  readonly #live: Query<LiveRow>

  constructor(db: DatabaseSync, books: Books, names: Names) {
    this.#books = books
    this.#names = names
    this.#live = query(
      db,
      `SELECT lane, idx, attempts, spelling, record_count AS recordCount, compute_table AS computeTable,
         due_at AS dueAt
       FROM partition
       WHERE id = ? AND term = ? AND secret = ? AND state = 'leased' AND due_at > ?`,
    )
  }

  remember(key: string, partitions: readonly HandedOut[], now: number): void {
    const leases = partitions.map(({ lease }) => lease).filter((lease) => lease !== null)
    const lastExpiry = Math.max(now, ...leases.map((lease) => lease.expiresAt))
    this.#books.keys.remember([key, leases.map(({ id }) => id), lastExpiry + KEY_GRACE_MILLIS])
  }

  /** The leases that a key was given and that still live; undefined for a key never seen. */
  repeat(key: string, now: number): HandedOut[] | undefined {
    const known = this.#books.keys.leasesOf(key)
    if (known === undefined) return undefined
    this.#books.writeUpPartitions()
    const alive: HandedOut[] = []
    for (const id of known) {
      const ref = parseLeaseId(id)
      const row = ref && this.#live.get(ref.partition, ref.term, ref.secret, now)
      if (row === undefined) continue
      const lane = this.#books.ledger.entries.lane(row.lane)
      if (lane.task.cancelled) continue
      const lease = { id, attempt: row.attempts + 1, expiresAt: row.dueAt, expiresInMillis: row.dueAt - now }
      alive.push(asHandedOut({ ...row, lane }, this.#names, lease))
    }
    return alive
  }
}

interface LiveRow extends Omit<Described, 'lane'> {
  readonly lane: number
  readonly attempts: number
  readonly dueAt: number
}
