import { StoreRefused } from '../../handoff/store.ts'
import { migrateFrom11 } from './migrate-from-11.ts'
import { pendingDeliveries, schema } from './schema.ts'
import type { Connection } from './session/connection.ts'
import { isNotAllowed, sqlState } from './session/failures.ts'
import { throughputSchema } from './throughput-rows.ts'

/** The version of `schema`. */
export const VERSION = 14

interface Step {
  /** The version after this step. */
  readonly to: number
  readonly sql: string
}

const addedIn13 = `
ALTER TABLE baton.partition ADD COLUMN extra_fields text COLLATE "C";
ALTER TABLE baton.partition ADD COLUMN traceparent text COLLATE "C";
${throughputSchema}`

// The indexes of the column are dropped with it.
const changedIn14 = `
ALTER TABLE baton.delivery DROP COLUMN pending, ALTER COLUMN progress DROP NOT NULL;
${pendingDeliveries}`

/**
 * The steps to later versions, by current version. A step that creates all tables uses the current `schema`.
 */
const steps: ReadonlyMap<number, Step> = new Map([
  [11, { to: VERSION, sql: migrateFrom11 }],
  [12, { to: 13, sql: addedIn13 }],
  [13, { to: 14, sql: changedIn14 }],
])

/**
 * Errors after which a migration is tried again. Nodes that start together on an empty database create the
 * same objects at the same time, and nodes of an earlier version may still be running.
 */
const BEGIN_AGAIN = new Set([
  '23505', // unique_violation
  '42P06', // duplicate_schema
  '42P07', // duplicate_table
  '40P01', // deadlock_detected
])
const TRIES = 5

export async function migrate(connection: Connection): Promise<void> {
  for (let tried = 1; ; tried += 1) {
    try {
      return await migrateOnce(connection)
    } catch (error) {
      if (tried === TRIES || !BEGIN_AGAIN.has(sqlState(error) ?? '')) throw error
    }
  }
}

/**
 * Sessions keep no state between transactions (see Connection), so the migration is a single transaction.
 * Unlike the others it is not sent in one piece, but waits for results on the way.
 */
async function migrateOnce(connection: Connection): Promise<void> {
  const run = (text: string) => connection.run({ text })
  await run(
    `BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL lock_timeout = '60s'; SET LOCAL statement_timeout = 0;
     SET LOCAL search_path = pg_catalog`,
  )
  try {
    await makeVersionTable(connection)
    // Nodes migrate one after another, including those of earlier versions. The second one finds the work
    // done.
    await run('LOCK TABLE baton.schema_version IN ACCESS EXCLUSIVE MODE')
    const [row] = await run('SELECT max(version) AS version FROM baton.schema_version')
    const known = (row?.['version'] ?? 0) as number
    if (known > VERSION) {
      throw new StoreRefused(
        `the database has schema version ${known}, and this program supports versions up to ${VERSION}; start a version of Baton that supports version ${known}`,
      )
    }
    if (known < VERSION) {
      for (const sql of known === 0 ? [schema] : stepsFrom(known)) await run(sql)
      await run(`DELETE FROM baton.schema_version; INSERT INTO baton.schema_version VALUES (${VERSION})`)
    }
    await run('COMMIT')
  } catch (error) {
    await run('ROLLBACK').catch(() => {})
    throw isNotAllowed(error) ? await asOthers(connection, error as Error) : error
  }
}

function* stepsFrom(known: number): Iterable<string> {
  for (let at = known; at < VERSION; ) {
    const step = steps.get(at)
    if (step === undefined)
      throw new StoreRefused(
        `the database has schema version ${at}, from before the first release, which this program cannot read; drop the schema baton, or choose another database with --database-url`,
      )
    yield step.sql
    at = step.to
  }
}

/** IF NOT EXISTS would require the CREATE privilege even when the object exists. */
async function makeVersionTable(connection: Connection): Promise<void> {
  const [found] = await connection.run({
    text: `SELECT to_regnamespace('baton') IS NOT NULL AS schema, to_regclass('baton.schema_version') IS NOT NULL AS version`,
  })
  if (found?.['schema'] !== true) await connection.run({ text: 'CREATE SCHEMA baton' })
  if (found?.['version'] !== true)
    await connection.run({ text: 'CREATE TABLE baton.schema_version (version integer NOT NULL)' })
}

/**
 * If the privilege is missing because another role owns the schema, the remedy is to log in as that role, not
 * a grant.
 */
async function asOthers(connection: Connection, error: Error): Promise<Error> {
  const [other] = await connection.run({
    text: `SELECT pg_get_userbyid(owner) AS owner, current_user AS user
           FROM (SELECT nspowner AS owner FROM pg_namespace WHERE nspname = 'baton'
                 UNION SELECT relowner FROM pg_class WHERE relnamespace = to_regnamespace('baton')) AS owners
           WHERE NOT pg_has_role(owner, 'USAGE') LIMIT 1`,
  })
  if (other === undefined) return error
  const { owner, user } = other
  return new StoreRefused(
    `the schema baton of the database, or a table in it, belongs to the role ${owner}, and ${user} has no permission to use it (${error.message}); connect as ${owner}`,
    { cause: error },
  )
}
