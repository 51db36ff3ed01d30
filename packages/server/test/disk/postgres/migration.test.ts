import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { gunzipSync } from 'node:zlib'
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { VERSION } from '../../../src/disk/postgres/migrate.ts'
import { openPostgresDisk, type PostgresDisk } from '../../../src/disk/postgres/postgres-disk.ts'
import { openEngine } from '../../../src/handoff/engine/engine-store.ts'
import { type Store, StoreRefused } from '../../../src/handoff/store.ts'
import type { PartitionDetails, TaskDetails } from '../../../src/handoff/views/queries.ts'
import { Driver, leaseOf } from '../../store/conformance/driver.ts'
import { TestClock, testPolicy } from '../../store/conformance/harness.ts'
import { diskDatabases } from './support.ts'

/** The tables of the last version with schema 11, by table, and its views of them after a restart. */
interface Fixture {
  readonly now: number
  readonly rows: Readonly<Record<string, string>>
  readonly sequences: readonly { readonly name: string; readonly value: string }[]
  readonly leases: Readonly<Record<'taken' | 'keyed' | 'noted' | 'more' | 'before' | 'expiring', string[]>>
  readonly shown: Readonly<
    Record<
      string,
      Pick<TaskDetails, 'facts' | 'lanes' | 'computeTables' | 'mismatches'> & {
        readonly state: string
        readonly states: Readonly<Record<string, string>>
        readonly partitions: readonly PartitionDetails[]
      }
    >
  >
  readonly instances: readonly { readonly instanceId: string; readonly leases: number }[]
}

const fixture = JSON.parse(
  gunzipSync(readFileSync(new URL('../fixtures/postgres-11.json.gz', import.meta.url))).toString(),
) as Fixture

const schema11 = readFileSync(new URL('../fixtures/postgres-11.sql', import.meta.url), 'utf8')

const databases = diskDatabases()

let url: string
let query: (text: string) => Promise<Record<string, unknown>[]>

beforeEach(async () => {
  const { name, url: found } = await databases.server.createDatabase()
  url = found
  query = (text) => databases.server.query(text, name)
  await query(`CREATE SCHEMA baton; CREATE TABLE baton.schema_version (version integer NOT NULL);
    INSERT INTO baton.schema_version VALUES (11); ${schema11}`)
  for (const [table, rows] of Object.entries(fixture.rows)) {
    await query(
      `SET session_replication_role = replica; INSERT INTO baton.${table} OVERRIDING SYSTEM VALUE
       SELECT * FROM json_populate_recordset(NULL::baton.${table}, '${rows.replaceAll("'", "''")}')`,
    )
  }
  for (const { name: sequence, value } of fixture.sequences)
    await query(`SELECT setval('baton.${sequence}', ${value})`)
})

async function openMigrated(): Promise<{ disk: PostgresDisk; store: Store; driver: Driver }> {
  const disk = await openPostgresDisk({ url, node: { nodeId: 'node', url: null } })
  const clock = new TestClock()
  clock.advance(fixture.now - clock.now())
  const secret = () => randomBytes(12).toString('base64url')
  const store = await openEngine({ disk, policy: testPolicy, clock: clock.now, random: Math.random, secret })
  onTestFinished(() => store.close())
  const reopen = () => Promise.reject(new Error('it is opened once'))
  return { disk, store, driver: new Driver({ store, reopen, dispose: () => store.close() }, clock) }
}

describe('a database of version 11', () => {
  test('is shown as before', async () => {
    const { store, driver } = await openMigrated()
    for (const [taskId, before] of Object.entries(fixture.shown)) {
      const { facts, lanes, computeTables, mismatches } = await driver.task(taskId)
      expect({ taskId, state: await driver.state(taskId) }).toEqual({ taskId, state: before.state })
      expect({ taskId, states: await driver.states(taskId) }).toEqual({ taskId, states: before.states })
      const { partitions, records, finishedAt, ...rest } = before.facts
      expect(facts).toMatchObject(rest)
      expect(facts.finishedAt === null).toBe(finishedAt === null)
      expect({ computeTables, mismatches }).toEqual({
        computeTables: before.computeTables,
        mismatches: before.mismatches,
      })
      const ranges = (all: TaskDetails['lanes']) =>
        all.map(({ level, firstIndex, lastIndex, gaps, parkedSkipped }) => ({
          level,
          firstIndex,
          lastIndex,
          gaps,
          parkedSkipped,
        }))
      expect(ranges(lanes)).toEqual(ranges(before.lanes))
      const totals = (tally: Record<string, number>) =>
        Object.values(tally).reduce((sum, count) => sum + count, 0)
      expect([totals(facts.partitions), totals(facts.records)]).toEqual([totals(partitions), totals(records)])
      const plain = (all: readonly PartitionDetails[]) =>
        // Fields that did not exist then cannot be compared.
        all.map(({ state: _, dueAt: __, leasedAt: ___, outcome: ____, history: _____, ...others }) => others)
      expect(plain(await driver.partitions(taskId))).toEqual(plain(before.partitions))
    }
    const { instances } = await store.instances({ after: null, limit: 50 })
    const seen = instances.map(({ instanceId, leases }) => ({ instanceId, leases }))
    expect(seen).toEqual(fixture.instances.map(({ instanceId, leases }) => ({ instanceId, leases })))
    expect(await store.audit()).toEqual([])
  })

  test('keeps its leases and its keys', async () => {
    const { driver } = await openMigrated()
    const { noted, keyed, more, before, taken } = fixture.leases
    const repeated = await driver.pull({ batch: 3, key: 'key-2', instance: 'w5' })
    expect(repeated.repeated).toBe(true)
    expect(repeated.partitions.map(({ lease }) => lease?.id)).toEqual(noted)
    const other = await driver.pull({ batch: 2, key: 'key-1', instance: 'w1' })
    expect(other.partitions.map(({ lease }) => lease?.id)).toEqual(keyed)
    for (const lease of [...noted, ...keyed, ...more, ...before])
      expect(await driver.settle(lease)).toBeNull()
    // Settled before: the same outcome again is accepted.
    expect(await driver.settle(taken[0] ?? '')).toBeNull()
    expect(await driver.settle(taken[3] ?? '')).toBe('lease_settled')
    expect(await driver.store.audit()).toEqual([])
  })

  test('hands out all waiting partitions once', async () => {
    const { driver, store } = await openMigrated()
    const waiting = Object.values(fixture.shown).flatMap(({ states }) =>
      Object.values(states).filter((state) => state === 'ready'),
    )
    // Four more of the task that is being rerun.
    await driver.maintainAll()
    const given = await driver.pullAll(10)
    expect(new Set(given.map(({ lease }) => leaseOf(lease?.id ?? '').partition)).size).toBe(given.length)
    expect(given).toHaveLength(waiting.length + 4)
    expect(given.filter(({ taskId }) => taskId === 'rerun')).toHaveLength(4)
    expect(await store.audit()).toEqual([])
  })

  test('accepts new call-backs, with ids that were never issued', async () => {
    const { driver } = await openMigrated()
    const known = { level: 0, index: 1, recordCount: 100, computeTableName: 'results.orders', spelling: null }
    expect(await driver.callBack('purged', [known])).toMatchObject({ accepted: 0, duplicates: 1 })
    await driver.callBack('new', [{ ...known, level: 0, index: 0 }])
    const largest = Math.max(
      ...fixture.sequences.map(({ name, value }) => (name === 'partition_id_seq' ? Number(value) : 0)),
    )
    const [row] = await query('SELECT max(id)::integer AS id FROM baton.partition')
    expect(row?.['id']).toBe(largest + 1)
  })

  test('has no table left that a node of that version could write to', async () => {
    await openMigrated()
    const left = await query(
      `SELECT relname FROM pg_class WHERE relnamespace = 'baton'::regnamespace
       AND (relname LIKE 'old%' OR relname IN ('note', 'commit_mark', 'count_delta', 'ready', 'held', 'due'))`,
    )
    expect(left).toEqual([])
    const indexes = `SELECT indexdef FROM pg_indexes WHERE schemaname = 'baton' ORDER BY indexdef`
    const fresh = await databases.create()
    expect(await query(indexes)).toEqual(await fresh.query(indexes))
  })
})

test('a schema from before the first release is refused and unchanged', async () => {
  await query('UPDATE baton.schema_version SET version = 10')
  await expect(openPostgresDisk({ url, node: { nodeId: 'node', url: null } })).rejects.toThrow(
    'the database has schema version 10, from before the first release',
  )
  expect(await query('SELECT version FROM baton.schema_version')).toEqual([{ version: 10 }])
})

test('a schema of a later version is refused', async () => {
  await query(`UPDATE baton.schema_version SET version = ${VERSION + 1}`)
  await expect(openPostgresDisk({ url, node: { nodeId: 'node', url: null } })).rejects.toThrow(StoreRefused)
})
