import { DatabaseSync } from 'node:sqlite'
import { describe, expect, test } from 'vitest'
import { migrate as migratePostgres } from '../../src/disk/postgres/migrate.ts'
import { openPostgresDisk } from '../../src/disk/postgres/postgres-disk.ts'
import { Connector, parseDatabaseUrl } from '../../src/disk/postgres/session/connector.ts'

import { SCHEMA_VERSION, type Schema, stepsTo } from '../../src/disk/schema-version.ts'
import { migrate as migrateSqlite, versionOf } from '../../src/disk/sqlite/migrate.ts'
import { StoreRefused } from '../../src/handoff/store.ts'
import { diskDatabases } from './postgres/support.ts'

const store = { name: 'the store', another: 'choose another one' }

describe('the steps to a version', () => {
  const schema: Schema = {
    version: 4,
    sql: 'all',
    steps: new Map([
      [2, 'to 3'],
      [3, 'to 4'],
    ]),
  }

  test.each([
    [0, ['all']],
    [2, ['to 3', 'to 4']],
    [3, ['to 4']],
    [4, []],
  ])('from version %s', (found, steps) => {
    expect(stepsTo(schema, found, store)).toEqual(steps)
  })

  test('a version without a step, or beyond, is refused', () => {
    const refused = (found: number) => () => stepsTo(schema, found, store)
    expect(refused(1)).toThrow(
      'the store was written by a version of Baton from before the first release, which this program cannot read; choose another one',
    )
    expect(refused(5)).toThrow('the store has schema version 5, and this program supports versions up to 4')
    expect(refused(5)).toThrow(StoreRefused)
  })
})

const next = SCHEMA_VERSION + 1
const nextSchema = (step: string): Schema => ({
  version: next,
  sql: '',
  steps: new Map([[SCHEMA_VERSION, step]]),
})

describe('a file', () => {
  const tables = (db: DatabaseSync) =>
    db
      .prepare("SELECT name FROM sqlite_schema WHERE type = 'table'")
      .all()
      .map(({ name }) => name)

  test('is brought to the next version, once', () => {
    const db = new DatabaseSync(':memory:')
    migrateSqlite(db, 'data')
    const before = tables(db)
    const schema = nextSchema('CREATE TABLE added (id INTEGER)')
    migrateSqlite(db, 'data', schema)
    migrateSqlite(db, 'data', schema)
    expect(tables(db)).toEqual([...before, 'added'])
    expect(versionOf(db)).toBe(next)
    expect(() => migrateSqlite(db, 'data')).toThrow(`the data folder data has schema version ${next}`)
  })

  test('is unchanged if a step fails', () => {
    const db = new DatabaseSync(':memory:')
    migrateSqlite(db, 'data')
    const before = tables(db)
    const failing = nextSchema('CREATE TABLE added (id INTEGER); INSERT INTO nowhere VALUES (1)')
    expect(() => migrateSqlite(db, 'data', failing)).toThrow('no such table: nowhere')
    expect(tables(db)).toEqual(before)
    expect(versionOf(db)).toBe(SCHEMA_VERSION)
  })
})

describe('a database', () => {
  const databases = diskDatabases()
  const connect = (url: string) =>
    new Connector(parseDatabaseUrl(url).hosts).connect({ connectMillis: 10_000, answerMillis: 60_000 })
  const version = 'SELECT version FROM baton.schema'
  const added = "SELECT to_regclass('baton.added') IS NOT NULL AS found"

  test('is brought to the next version, once, by nodes that start together', async () => {
    const { url, query } = await databases.create()
    const schema = nextSchema('CREATE TABLE baton.added (id bigint)')
    await Promise.all(
      [1, 2, 3].map(async () => {
        const connection = await connect(url)
        await migratePostgres(connection, schema).finally(() => connection.close())
      }),
    )
    expect(await query(version)).toEqual([{ version: next }])
    expect(await query(added)).toEqual([{ found: true }])
    const refused = openPostgresDisk({ url, node: { nodeId: 'node', url: '' } })
    await expect(refused).rejects.toThrow(`the database has schema version ${next}`)
    await expect(refused).rejects.toThrow(StoreRefused)
  })

  test('is unchanged if a step fails', async () => {
    const { url, query } = await databases.create()
    const failing = nextSchema('CREATE TABLE baton.added (id bigint); INSERT INTO baton.nowhere VALUES (1)')
    const connection = await connect(url)
    await expect(migratePostgres(connection, failing)).rejects.toThrow('"baton.nowhere" does not exist')
    await connection.close()
    expect(await query(version)).toEqual([{ version: SCHEMA_VERSION }])
    expect(await query(added)).toEqual([{ found: false }])
  })

  test('from before the first release is refused and unchanged', async () => {
    const { name, url } = await databases.server.createDatabase()
    const query = (text: string) => databases.server.query(text, name)
    await query(`CREATE SCHEMA baton; CREATE TABLE baton.schema_version (version integer NOT NULL);
      INSERT INTO baton.schema_version VALUES (14)`)
    await expect(openPostgresDisk({ url, node: { nodeId: 'node', url: '' } })).rejects.toThrow(
      'the database was written by a version of Baton from before the first release, which this program cannot read; drop the schema baton, or choose another database with --database-url',
    )
    expect(await query("SELECT relname FROM pg_class WHERE relnamespace = 'baton'::regnamespace")).toEqual([
      { relname: 'schema_version' },
    ])
  })
})
