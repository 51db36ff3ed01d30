import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { gunzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { testFolder } from '../../../../test/support/test-folder.ts'
import { openPostgresDisk } from '../../src/disk/postgres/postgres-disk.ts'
import { openSqliteDisk } from '../../src/disk/sqlite/sqlite-disk.ts'
import type { Disk } from '../../src/handoff/disk.ts'
import { openEngine } from '../../src/handoff/engine/engine-store.ts'
import { Driver } from '../store/conformance/driver.ts'
import { TestClock, testPolicy } from '../store/conformance/harness.ts'
import { diskDatabases } from './postgres/support.ts'

// Stores of the last schema without a throughput history, left as after a crash: two partitions are done, the
// second one in an entry that is not flushed.

const fixture = async (name: string) =>
  gunzipSync(await readFile(new URL(`./fixtures/${name}`, import.meta.url)))

async function open(disk: Disk): Promise<Driver> {
  const clock = new TestClock()
  clock.advance(60_000)
  const secret = () => 's'.repeat(16)
  const store = await openEngine({ disk, policy: testPolicy, clock: clock.now, random: () => 0.5, secret })
  return new Driver({ store, reopen: async () => {}, dispose: () => store.close() }, clock)
}

/** Nothing is invented for earlier partitions; later ones are counted. */
async function expectHistoryFromNowOn(driver: Driver): Promise<void> {
  expect((await driver.task('orders')).facts.partitions).toMatchObject({ done: 2, leased: 1, ready: 5 })
  const query = { taskId: 'orders', step: 'hour' as const, from: 0, to: null, byLevel: true }
  expect((await driver.store.throughput(query))?.rows).toEqual([])
  await driver.settle((await driver.pullOne()).leaseId)
  expect((await driver.store.throughput(query))?.rows).toMatchObject([
    { level: 0, partitions: 1, records: 100 },
  ])
  expect(await driver.store.audit()).toEqual([])
  await driver.store.close()
}

describe('a file of schema version 7', () => {
  const schemaOf = (folder: string) => {
    const db = new DatabaseSync(join(folder, 'baton.db'))
    const columns = db.prepare(
      `SELECT t.name AS "table", c.name, c.type, c."notnull" FROM sqlite_schema t, pragma_table_info(t.name) c
       WHERE t.type = 'table' ORDER BY 1, 2`,
    )
    const indexes = db.prepare("SELECT name, sql FROM sqlite_schema WHERE type = 'index' ORDER BY name")
    const found = [...columns.all(), ...indexes.all()].map((row) => ({ ...row }))
    db.close()
    return found
  }

  test('is opened and migrated to the current schema', async () => {
    const folder = await testFolder()
    await writeFile(join(folder, 'baton.db'), await fixture('schema-7-history.db.gz'))
    await expectHistoryFromNowOn(await open(await openSqliteDisk({ folder })))
    const fresh = await testFolder()
    await (await openSqliteDisk({ folder: fresh })).close()
    expect(schemaOf(folder)).toEqual(schemaOf(fresh))
  })
})

describe('a database of schema version 12', () => {
  const databases = diskDatabases()

  const schemaOf = async (name: string) => [
    await databases.server.query(
      `SELECT table_name, column_name, data_type, is_nullable, collation_name, column_default
       FROM information_schema.columns WHERE table_schema = 'baton' ORDER BY 1, 2`,
      name,
    ),
    await databases.server.query(
      `SELECT indexdef FROM pg_indexes WHERE schemaname = 'baton' ORDER BY indexname`,
      name,
    ),
    await databases.server.query('SELECT version FROM baton.schema_version', name),
  ]

  test('is opened and migrated to the current schema', async () => {
    const { name, url } = await databases.server.createDatabase()
    const tables = (await fixture('postgres-12.sql.gz')).toString()
    await databases.server.query(
      `CREATE SCHEMA baton; CREATE TABLE baton.schema_version (version integer NOT NULL);
       INSERT INTO baton.schema_version VALUES (12); ${tables}`,
      name,
    )
    const node = { nodeId: 'node', url: null }
    await expectHistoryFromNowOn(await open(await openPostgresDisk({ url, node })))
    const fresh = await databases.server.createDatabase()
    await (await openPostgresDisk({ url: fresh.url, node })).close()
    expect(await schemaOf(name)).toEqual(await schemaOf(fresh.name))
  })
})
