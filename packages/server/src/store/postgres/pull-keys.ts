import { parseLeaseId } from '../../handoff/lease-id.ts'
import { KEY_GRACE_MILLIS } from '../../handoff/policy.ts'
import type { HandedOut } from '../../handoff/store.ts'
import { handedOutOf } from './handed-out-row.ts'
import { statement } from './statement.ts'
import type { Transaction } from './transaction.ts'

/** The class of the advisory locks that keys of pulls are locked by. */
const KEY_LOCKS = 0x6261_7402

const tryLock = statement(
  'try-lock-keys',
  `SELECT key, pg_try_advisory_xact_lock(${KEY_LOCKS}, hashtext(key)) AS locked FROM unnest($1::text[]) AS k (key)`,
)
const lock = statement(
  'lock-keys',
  `SELECT key, pg_advisory_xact_lock(${KEY_LOCKS}, hash) IS NOT NULL AS locked
   FROM (SELECT key, hashtext(key) AS hash FROM unnest($1::text[]) AS k (key) ORDER BY 2) AS sorted`,
)
const known = statement('known-keys', 'SELECT key, leases FROM baton.pull_key WHERE key = ANY($1::text[])')
const live = statement(
  'live-leases',
  `SELECT p.*, (SELECT name FROM baton.compute_table WHERE id = p.compute_table) AS compute_table_name, t.task_id
   FROM unnest($1::bigint[]) AS a (id)
   CROSS JOIN LATERAL (
     SELECT id, lane, term, secret, level, idx, spelling, attempts, record_count, due_at, compute_table
     FROM baton.partition WHERE id = a.id AND state = $3 AND due_at > $2 OFFSET 0
   ) p
   CROSS JOIN LATERAL (SELECT task FROM baton.lane WHERE id = p.lane OFFSET 0) l
   CROSS JOIN LATERAL (SELECT task_id FROM baton.task WHERE id = l.task AND NOT cancelled OFFSET 0) t`,
)
const save = statement(
  'save-keys',
  `INSERT INTO baton.pull_key (key, leases, forget_at)
   SELECT key, string_to_array(leases, ' '), forget_at
   FROM unnest($1::text[], $2::text[], $3::bigint[]) AS k (key, leases, forget_at)`,
)

export interface KeyStanding {
  /** Keys that were given leases before, and those leases. */
  readonly known: ReadonlyMap<string, readonly string[]>
  /** Keys of pulls that are under way in another transaction. */
  readonly contended: ReadonlySet<string>
}

/**
 * Locks the keys until the end of the transaction and says what is known of them. The lock makes a
 * twin on another node wait for the outcome; without one an empty pull would have to write its key.
 */
export async function lockKeys(
  tx: Transaction,
  keys: readonly string[],
  wait: boolean,
): Promise<KeyStanding> {
  const locking = tx.run(wait ? lock : tryLock, [keys])
  const reading = tx.run(known, [keys])
  const [locks, rows] = await Promise.all([locking, reading])
  return {
    known: new Map(rows.map((row) => [row['key'] as string, row['leases'] as string[]])),
    contended: new Set(locks.filter((row) => row['locked'] === false).map((row) => row['key'] as string)),
  }
}

/** Of the leases that a key was given: those that still live. */
export async function liveLeases(tx: Transaction, ids: readonly string[], now: number): Promise<HandedOut[]> {
  const refs = new Map(ids.map((id) => [parseLeaseId(id)?.partition, { id, ref: parseLeaseId(id) }]))
  const rows = await tx.run(live, [
    [...refs.keys()].filter((partition) => partition !== undefined),
    now,
    'leased',
  ])
  const byId = new Map(rows.map((row) => [row['id'] as number, row]))
  return [...refs.values()].flatMap(({ id, ref }) => {
    const row = ref && byId.get(ref.partition)
    if (row === undefined || row['term'] !== ref?.term || row['secret'] !== ref?.secret) return []
    const names = {
      taskId: row['task_id'] as string,
      computeTableName: row['compute_table_name'] as string,
    }
    return handedOutOf(row, names, id, row['due_at'] as number, now)
  })
}

/** What one key of a pull was given. */
export interface KeyedLeases {
  readonly key: string
  readonly partitions: readonly HandedOut[]
}

export function rememberKeys(tx: Transaction, given: readonly KeyedLeases[], now: number): void {
  if (given.length === 0) return
  const leases = given.map(({ partitions }) => partitions.flatMap(({ lease }) => lease ?? []))
  tx.post(save, [
    given.map(({ key }) => key),
    leases.map((of) => of.map(({ id }) => id).join(' ')),
    leases.map((of) => Math.max(now, ...of.map(({ expiresAt }) => expiresAt)) + KEY_GRACE_MILLIS),
  ])
}
