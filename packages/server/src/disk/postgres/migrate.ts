import { StoreRefused } from '../../handoff/store.ts'
import { SCHEMA_VERSION, type Schema, stepsTo, unreleased } from '../schema-version.ts'
import { schema as sql } from './schema.ts'
import type { Connection } from './session/connection.ts'
import { isNotAllowed, sqlState } from './session/errors.ts'

const current: Schema = { version: SCHEMA_VERSION, sql, steps: new Map() }

const DATABASE = {
  name: 'the database',
  another: 'drop the schema baton, or choose another database with --database-url',
}

/** Tried again after these: nodes may create the same objects at once, or still run an earlier version. */
const BEGIN_AGAIN = new Set([
  '23505', // unique_violation
  '42P06', // duplicate_schema
  '42P07', // duplicate_table
  '40P01', // deadlock_detected
])
const TRIES = 5

/** Brings the schema to the current version. An empty database gets all tables. */
export async function migrate(connection: Connection, schema = current): Promise<void> {
  for (let tried = 1; ; tried += 1) {
    try {
      return await migrateOnce(connection, schema)
    } catch (error) {
      if (tried === TRIES || !BEGIN_AGAIN.has(sqlState(error) ?? '')) throw error
    }
  }
}

/** One transaction (see Connection), but not sent in one piece: it waits for results on the way. */
async function migrateOnce(connection: Connection, schema: Schema): Promise<void> {
  const run = (text: string) => connection.run({ text })
  await run(
    `BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL lock_timeout = '60s'; SET LOCAL statement_timeout = 0;
     SET LOCAL search_path = pg_catalog`,
  )
  try {
    await makeVersionTable(connection)
    // Nodes migrate one after another. The second one finds the work done.
    await run('LOCK TABLE baton.schema IN ACCESS EXCLUSIVE MODE')
    const steps = stepsTo(schema, await storedVersion(connection), DATABASE)
    for (const step of steps) await run(step)
    if (steps.length > 0)
      await run(`DELETE FROM baton.schema; INSERT INTO baton.schema VALUES (${schema.version})`)
    await run('COMMIT')
  } catch (error) {
    await run('ROLLBACK').catch(() => {})
    throw isNotAllowed(error) ? await asOthers(connection, error as Error) : error
  }
}

/** IF NOT EXISTS would require the CREATE privilege even when the object exists. */
async function makeVersionTable(connection: Connection): Promise<void> {
  const found = await findSchema(connection)
  if (found === 'unreleased') throw unreleased(DATABASE.name, DATABASE.another)
  if (found === 'none') await connection.run({ text: 'CREATE SCHEMA baton' })
  if (found !== 'ours') await connection.run({ text: 'CREATE TABLE baton.schema (version integer NOT NULL)' })
}

async function findSchema(connection: Connection): Promise<'ours' | 'unreleased' | 'empty' | 'none'> {
  const [found] = await connection.run({
    text: `SELECT to_regclass('baton.schema') IS NOT NULL AS ours, to_regclass('baton.schema_version') IS NOT NULL AS unreleased,
      to_regnamespace('baton') IS NOT NULL AS empty`,
  })
  return (['ours', 'unreleased', 'empty'] as const).find((what) => found?.[what] === true) ?? 'none'
}

async function storedVersion(connection: Connection): Promise<number> {
  const [row] = await connection.run({ text: 'SELECT max(version) AS version FROM baton.schema' })
  return (row?.['version'] ?? 0) as number
}

/** 0 if the database has no data of Baton. */
export async function versionOf(connection: Connection): Promise<number> {
  const found = await findSchema(connection)
  if (found === 'unreleased') throw unreleased(DATABASE.name, 'use the version that wrote it')
  return found === 'ours' ? storedVersion(connection) : 0
}

/** If another role owns the schema, the remedy is to log in as that role, not a grant. */
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
