import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { openPostgresDisk } from '../../../src/disk/postgres/postgres-disk.ts'
import { openEngine } from '../../../src/handoff/engine/engine-store.ts'
import { batchedCallBack, Driver, one } from '../../store/conformance/driver.ts'
import { TestClock, testPolicy } from '../../store/conformance/harness.ts'
import { diskDatabases } from './support.ts'

/**
 * Created by the last version with schema 12, and left as after a crash: with entries that are not flushed.
 */
const fixture = readFileSync(new URL('../fixtures/postgres-12.sql', import.meta.url), 'utf8')
const LEASE = '3-1-1yWqMcJOF6nRCtDr'

const databases = diskDatabases()

test('a database of version 12 is opened unchanged and supports what version 13 adds', async () => {
  const { name, url } = await databases.server.createDatabase()
  const query = (text: string) => databases.server.query(text, name)
  await query(`CREATE SCHEMA baton; CREATE TABLE baton.schema_version (version integer NOT NULL);
    INSERT INTO baton.schema_version VALUES (12); ${fixture}`)
  const disk = await openPostgresDisk({ url, node: { nodeId: 'another', url: null } })
  const clock = new TestClock()
  const secret = () => randomBytes(12).toString('base64url')
  const store = await openEngine({ disk, policy: testPolicy, clock: clock.now, random: Math.random, secret })
  const reopen = () => Promise.reject(new Error('it is opened once'))
  const driver = new Driver({ store, reopen, dispose: () => store.close() }, clock)

  expect(await driver.states('orders')).toEqual({
    '0-0': 'done',
    '0-1': 'parked',
    '0-2': 'leased',
    '0-3': 'ready',
    '0-4': 'ready',
    '1-7': 'ready',
  })
  // Nothing is invented for what became done earlier.
  const history = { taskId: 'orders', step: 'hour' as const, from: 0, to: null, byLevel: true }
  expect((await driver.store.throughput(history))?.rows).toEqual([])
  expect(await driver.settle(LEASE)).toBeNull()
  expect((await driver.store.throughput(history))?.rows).toMatchObject([{ level: 0, partitions: 1 }])
  await driver.store.handOff({
    settles: [],
    renews: [],
    undos: [],
    pulls: [],
    callBacks: [
      { ...batchedCallBack('orders', [one(2, 0, { extraFields: '{"a":1}' })]), traceparent: 'trace' },
    ],
  })
  const handed = await driver.pullAll()
  expect(handed.map(({ level, index, extraFields = null }) => [level, index, extraFields])).toEqual([
    [0, 3, null],
    [0, 4, null],
    [1, 7, null],
    [2, 0, '{"a":1}'],
  ])
  expect(await store.audit()).toEqual([])
  await store.close()

  const columns = `SELECT table_name, column_name, data_type, is_nullable, collation_name, column_default
    FROM information_schema.columns WHERE table_schema = 'baton' ORDER BY table_name, column_name`
  const indexes = "SELECT indexdef FROM pg_indexes WHERE schemaname = 'baton' ORDER BY indexname"
  const version = 'SELECT version FROM baton.schema_version'
  const fresh = await databases.create()
  for (const text of [columns, indexes, version]) expect(await query(text)).toEqual(await fresh.query(text))
})
