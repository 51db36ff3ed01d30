import { formatLeaseId, type LeaseRef, parseLeaseId } from '../../../handoff/rules/lease-id.ts'
import { KEY_GRACE_MILLIS } from '../../../handoff/rules/policy.ts'
import type { HandedOut } from '../../../handoff/store.ts'
import { handedOutOf } from '../rows/handed-out-row.ts'
import { KEY_LOCKS } from '../session/advisory-locks.ts'
import { type Row, statement } from '../session/statement.ts'
import type { Transaction } from '../session/transaction.ts'

const tryLock = statement(
  'try-lock-keys',
  `SELECT key, pg_try_advisory_xact_lock(${KEY_LOCKS}, hashtext(key)) AS locked FROM unnest($1::text[]) AS k (key)`,
)
const lock = statement(
  'lock-keys',
  `SELECT key, pg_advisory_xact_lock(${KEY_LOCKS}, hash) IS NOT NULL AS locked
   FROM (SELECT key, hashtext(key) AS hash FROM unnest($1::text[]) AS k (key) ORDER BY 2) AS sorted`,
)
const known = statement(
  'known-keys',
  'SELECT key, partitions, secrets FROM baton.pull_key WHERE key = ANY($1::text[])',
)
const live = statement(
  'live-leases',
  `SELECT p.*, (SELECT name FROM baton.compute_table WHERE id = p.compute_table) AS compute_table_name, t.task_id
   FROM unnest($1::bigint[]) WITH ORDINALITY AS a (id, position)
   CROSS JOIN LATERAL (
     SELECT id, lane, term, secret, level, rank, idx, spelling, attempts, record_count, due_at, compute_table
     FROM baton.partition WHERE id = a.id AND secret = ANY ($4::text[]) AND state = $3 AND due_at > $2 OFFSET 0
   ) p
   CROSS JOIN LATERAL (SELECT task FROM baton.lane WHERE id = p.lane OFFSET 0) l
   CROSS JOIN LATERAL (SELECT task_id FROM baton.task WHERE id = l.task AND NOT cancelled OFFSET 0) t
   ORDER BY a.position`,
)
const saving = `INSERT INTO baton.pull_key (key, partitions, secrets, forget_at)
   SELECT key, string_to_array(partitions, ' ')::bigint[], string_to_array(secrets, ' '), forget_at
   FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[]) AS k (key, partitions, secrets, forget_at)`
const save = statement('save-keys', saving)
/** Answered long ago: whatever is wrong with a key, the others are written. */
const saveNoted = statement('save-noted-keys', `${saving} ON CONFLICT (key) DO NOTHING`)

/** What one key was given; a secret tells its lease from later ones of the same partition. */
export interface KeptLeases {
  readonly partitions: readonly number[]
  readonly secrets: readonly string[]
}

export interface KeyStanding {
  /** Keys that were given leases before, and those leases. */
  readonly known: ReadonlyMap<string, KeptLeases>
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
    known: new Map(rows.map((row) => [row['key'] as string, keptLeases(row)])),
    contended: new Set(locks.filter((row) => row['locked'] === false).map((row) => row['key'] as string)),
  }
}

/** In the row of a key. Large numbers come as text where they are in an array. */
export function keptLeases(row: Row): KeptLeases {
  return { partitions: (row['partitions'] as string[]).map(Number), secrets: row['secrets'] as string[] }
}

/**
 * Of the leases that a key was given: those that still live, in the order of the hand-off, which is kept with the key: one
 * that had expired and was renewed has another rank since.
 */
export async function liveLeases(
  tx: Transaction,
  { partitions, secrets }: KeptLeases,
  now: number,
): Promise<HandedOut[]> {
  const rows = await tx.run(live, [partitions, now, 'leased', secrets])
  return rows.map((row) => {
    const names = {
      taskId: row['task_id'] as string,
      computeTableName: row['compute_table_name'] as string,
    }
    const ref = { partition: row['id'], term: row['term'], secret: row['secret'] } as LeaseRef
    return handedOutOf(row, names, formatLeaseId(ref), row['due_at'] as number, now)
  })
}

/** What one key of a pull is given. */
export interface KeyedLeases {
  readonly key: string
  readonly partitions: readonly HandedOut[]
}

export function rememberKeys(tx: Transaction, given: readonly KeyedLeases[], now: number): void {
  saveKeys(
    tx,
    given.map(({ key, partitions }) => {
      const leases = partitions.flatMap(({ lease }) => lease ?? [])
      const refs = leases.flatMap(({ id }) => parseLeaseId(id) ?? [])
      return {
        key,
        partitions: refs.map(({ partition }) => partition),
        secrets: refs.map(({ secret }) => secret),
        forgetAt: Math.max(now, ...leases.map(({ expiresAt }) => expiresAt)) + KEY_GRACE_MILLIS,
      }
    }),
  )
}

/** A key with what it was given, in the order of the hand-off. */
export interface SavedKey extends KeptLeases {
  readonly key: string
  readonly forgetAt: number
}

export function saveNotedKeys(tx: Transaction, keys: readonly SavedKey[]): void {
  saveKeys(tx, keys, saveNoted)
}

function saveKeys(tx: Transaction, keys: readonly SavedKey[], by = save): void {
  if (keys.length === 0) return
  tx.post(by, [
    keys.map(({ key }) => key),
    keys.map(({ partitions }) => partitions.join(' ')),
    keys.map(({ secrets }) => secrets.join(' ')),
    keys.map(({ forgetAt }) => forgetAt),
  ])
}

/**
 * In SQL: parts of a hand-off in one statement, whose pulls have the given keys (or none). Nothing may be claimed unless
 * each key is free: nobody has its lock, and it is not known. Who has taken it since this statement began is met when the
 * key is written, which then fails, and is seen when the statement is run again.
 */
export const keysAreFree = (keys: string) =>
  `keys AS MATERIALIZED (
     SELECT bool_and(pg_try_advisory_xact_lock(${KEY_LOCKS}, hashtext(key)))
       AND NOT EXISTS (SELECT FROM baton.pull_key WHERE key = ANY (${keys})) AS free
     FROM unnest(${keys}) AS k (key)
   )`

/** In SQL: the same statement's keys with what they were given; `keyOf` tells the key of a row of `leased`. */
export const keysRemembered = (keyOf: string) =>
  `remembered AS (
     INSERT INTO baton.pull_key (key, partitions, secrets, forget_at)
     SELECT key, array_agg(id ORDER BY level, rank, id), array_agg(secret ORDER BY level, rank, id), max(due_at) + ${KEY_GRACE_MILLIS}
     FROM (SELECT p.id, p.level, p.rank, p.secret, p.due_at, ${keyOf} AS key FROM leased p OFFSET 0) g
     WHERE key IS NOT NULL GROUP BY key
   )`
