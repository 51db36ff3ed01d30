import { StoreRefused } from '../../handoff/store.ts'
import { migrations } from './migrations/index.ts'
import { MIGRATION_LOCK } from './session/advisory-locks.ts'
import type { Connection } from './session/connection.ts'
import { isNotAllowed } from './session/failures.ts'

export async function migrate(connection: Connection): Promise<void> {
  // Whoever waited for the lock must see what the one before it did.
  await connection.exec(
    `BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL lock_timeout = '60s'; SET LOCAL statement_timeout = 0;
     SELECT pg_advisory_xact_lock(${MIGRATION_LOCK})`,
  )
  try {
    await makeSchema(connection)
    const known = await versionOf(connection)
    if (known > migrations.length) {
      throw new StoreRefused(
        `the database has schema version ${known}, and this program knows versions up to ${migrations.length}; start a Baton that knows version ${known}`,
      )
    }
    for (const sql of migrations.slice(known)) await connection.exec(sql)
    if (known < migrations.length) {
      await connection.exec(
        `DELETE FROM baton.schema_version; INSERT INTO baton.schema_version VALUES (${migrations.length})`,
      )
    }
    await connection.exec('COMMIT')
  } catch (error) {
    await connection.exec('ROLLBACK').catch(() => {})
    throw isNotAllowed(error) ? await asOthers(connection, error as Error) : error
  }
}

/** IF NOT EXISTS asks for the right to make what is there already, which is needed once or not at all. */
async function makeSchema(connection: Connection): Promise<void> {
  const [schema] = await connection.run<{ is_there: boolean }>({
    name: 'baton-schema',
    text: `SELECT to_regnamespace('baton') IS NOT NULL AS is_there`,
  })
  if (schema?.is_there !== true) await connection.exec('CREATE SCHEMA baton')
  const [table] = await connection.run<{ is_there: boolean }>({
    name: 'baton-schema-version-table',
    text: `SELECT to_regclass('baton.schema_version') IS NOT NULL AS is_there`,
  })
  if (table?.is_there !== true)
    await connection.exec('CREATE TABLE baton.schema_version (version integer NOT NULL)')
}

/** The right is missing because another role made the schema: no grant is as good as logging in as that one. */
async function asOthers(connection: Connection, error: Error): Promise<Error> {
  const [other] = await connection.run<{ owner: string; user: string }>({
    name: 'baton-owner',
    text: `SELECT pg_get_userbyid(owner) AS owner, current_user AS user
           FROM (SELECT nspowner AS owner FROM pg_namespace WHERE nspname = 'baton'
                 UNION SELECT relowner FROM pg_class WHERE relnamespace = to_regnamespace('baton')) AS owners
           WHERE NOT pg_has_role(owner, 'USAGE') LIMIT 1`,
  })
  if (other === undefined) return error
  const { owner, user } = other
  return new StoreRefused(
    `the schema baton of the database, or what is in it, belongs to the role ${owner}, and ${user} may not use it (${error.message}); log in as ${owner}`,
    { cause: error },
  )
}

async function versionOf(connection: Connection): Promise<number> {
  const [row] = await connection.run<{ version: number | null }>({
    name: 'baton-schema-version',
    text: 'SELECT max(version) AS version FROM baton.schema_version',
  })
  return row?.version ?? 0
}
