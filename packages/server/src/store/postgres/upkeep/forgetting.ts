import { KEY_GRACE_MILLIS } from '../../../handoff/rules/policy.ts'
import { keptLeases } from '../pull/pull-keys.ts'
import type { Names } from '../rows/names.ts'
import { statement } from '../session/statement.ts'
import type { Transaction } from '../session/transaction.ts'
import type { Transactions } from '../session/transactions.ts'
import { NOTICES_KEPT, PRESENT } from '../views/changes.ts'
import { STEP } from '../windows/lanes.ts'

/** Marks of connections and notices for watchers are looked through this often. */
const TRACES_MILLIS = 60_000
const MARK_KEPT_MILLIS = 86_400_000

const dueKeys = statement(
  'due-keys',
  'SELECT key, partitions, secrets FROM baton.pull_key WHERE forget_at <= $1 ORDER BY forget_at LIMIT $2 FOR UPDATE SKIP LOCKED',
)
const leaseExpiries = statement(
  'lease-expiries',
  `SELECT id, secret, due_at FROM baton.partition WHERE id = ANY($1::bigint[]) AND state = $2`,
)
const keepKeys = statement(
  'keep-keys',
  `UPDATE baton.pull_key k SET forget_at = n.forget_at FROM unnest($1::text[], $2::bigint[]) AS n (key, forget_at)
   WHERE k.key = n.key`,
)
const forgetKeys = statement('forget-keys', 'DELETE FROM baton.pull_key WHERE key = ANY($1::text[])')
/** A client that holds a lease, however silent, is not gone. */
const unseen = statement(
  'unseen-instances',
  `WITH holding AS MATERIALIZED (SELECT DISTINCT unnest(holders) AS holder FROM baton.due WHERE NOT delayed)
   SELECT id FROM baton.instance WHERE (last_seen_at < $1 OR draining AND last_seen_at < $2)
     AND id NOT IN (SELECT holder FROM holding WHERE holder IS NOT NULL)
   ORDER BY id LIMIT $3 FOR UPDATE SKIP LOCKED`,
)
const forgetProduced = statement(
  'forget-produced',
  'DELETE FROM baton.produced_task WHERE instance = ANY($1::bigint[])',
)
const forgetInstances = statement(
  'forget-instances',
  'DELETE FROM baton.instance WHERE id = ANY($1::bigint[])',
)
const forgetMarks = statement('forget-marks', 'DELETE FROM baton.commit_mark WHERE marked_at < $1')
const forgetNotices = statement(
  'forget-notices',
  `DELETE FROM baton.parked_notice WHERE position <= (${PRESENT}) - ${NOTICES_KEPT}`,
)

/** Instances that were last seen before this are gone; nodes that ended in order, before that. */
interface UnseenSince {
  readonly since: number
  readonly ended: number
}

export class Forgetting {
  readonly #transactions: Transactions
  readonly #names: Names
  #tracesAt = Number.NEGATIVE_INFINITY

  constructor(transactions: Transactions, names: Names) {
    this.#transactions = transactions
    this.#names = names
  }

  /** True while there is more than one step to do. */
  async run(now: number, unseen: UnseenSince): Promise<boolean> {
    const keys = await this.#transactions.run((tx) => forgetDueKeys(tx, now))
    const instances = await this.#transactions.run((tx) => forgetUnseen(tx, unseen))
    if (instances > 0) this.#names.forgetInstances()
    return keys === STEP || instances === STEP
  }

  /** What nodes that died have left behind, and what watchers no longer ask for. */
  async forgetTraces(now: number): Promise<void> {
    if (performance.now() < this.#tracesAt) return
    this.#tracesAt = performance.now() + TRACES_MILLIS
    await this.#transactions.runOne(forgetMarks, [now - MARK_KEPT_MILLIS])
    await this.#transactions.runOne(forgetNotices)
  }
}

/** A key whose leases were renewed is remembered for as long as they run. */
async function forgetDueKeys(tx: Transaction, now: number): Promise<number> {
  const due = await tx.run(dueKeys, [now, STEP])
  if (due.length === 0) return 0
  const leases = due.map(keptLeases)
  const rows = await tx.run(leaseExpiries, [leases.flatMap(({ partitions }) => partitions), 'leased'])
  const expiries = new Map(rows.map((row) => [row['secret'], row['due_at'] as number]))
  const kept: [key: string, until: number][] = []
  const forgotten: string[] = []
  for (const [position, row] of due.entries()) {
    const key = row['key'] as string
    const secrets = leases[position]?.secrets ?? []
    const last = Math.max(0, ...secrets.map((secret) => expiries.get(secret) ?? 0))
    if (last + KEY_GRACE_MILLIS > now) kept.push([key, last + KEY_GRACE_MILLIS])
    else forgotten.push(key)
  }
  if (kept.length > 0) await tx.write(keepKeys, [kept.map(([key]) => key), kept.map(([, until]) => until)])
  if (forgotten.length > 0) await tx.write(forgetKeys, [forgotten])
  return due.length
}

async function forgetUnseen(tx: Transaction, { since, ended }: UnseenSince): Promise<number> {
  const ids = (await tx.run(unseen, [since, ended, STEP])).map((row) => row['id'])
  if (ids.length === 0) return 0
  await Promise.all([tx.write(forgetProduced, [ids]), tx.write(forgetInstances, [ids])])
  return ids.length
}
