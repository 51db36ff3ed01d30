import { StoreRefused } from '../../handoff/store.ts'
import { migrations } from './migrations/index.ts'
import { MIGRATION_LOCK } from './session/advisory-locks.ts'
import type { Connection } from './session/connection.ts'

export async function migrate(connection: Connection): Promise<void> {
  // Whoever waited for the lock must see what the one before it did.
  await connection.exec(
    `BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL lock_timeout = '60s'; SET LOCAL statement_timeout = 0;
     SELECT pg_advisory_xact_lock(${MIGRATION_LOCK})`,
  )
  try {
    await connection.exec(
      `CREATE SCHEMA IF NOT EXISTS baton;
       CREATE TABLE IF NOT EXISTS baton.schema_version (version integer NOT NULL)`,
    )
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
    throw error
  }
}

async function versionOf(connection: Connection): Promise<number> {
  const [row] = await connection.run<{ version: number | null }>({
    name: 'baton-schema-version',
    text: 'SELECT max(version) AS version FROM baton.schema_version',
  })
  return row?.version ?? 0
}
