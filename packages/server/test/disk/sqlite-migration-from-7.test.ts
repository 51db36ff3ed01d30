import { randomBytes } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { gunzipSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { testFolder } from '../../../../test/support/test-folder.ts'
import { openSqliteDisk } from '../../src/disk/sqlite/sqlite-disk.ts'
import { openEngine } from '../../src/handoff/engine/engine-store.ts'
import { Driver, one } from '../store/conformance/driver.ts'
import { TestClock, testPolicy } from '../store/conformance/harness.ts'

/**
 * Created by the last version with schema 7, and left as after a crash: with entries that are not flushed.
 */
const FIXTURE = new URL('./fixtures/schema-7.db.gz', import.meta.url)
const LEASE = '3-1-GSuCCY7I2--o_FKa'

test('a file of version 7 is opened unchanged and supports what version 8 adds', async () => {
  const folder = await testFolder()
  await writeFile(join(folder, 'baton.db'), gunzipSync(await readFile(FIXTURE)))
  const clock = new TestClock()
  const secret = () => randomBytes(12).toString('base64url')
  const open = async () =>
    openEngine({
      disk: await openSqliteDisk({ folder }),
      policy: testPolicy,
      clock: clock.now,
      random: Math.random,
      secret,
    })
  const store = await open()
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
  await driver.callBack('orders', [one(2, 0, { extraFields: '{"a":1}' })])
  const handed = await driver.pullAll()
  expect(handed.map(({ level, index, extraFields = null }) => [level, index, extraFields])).toEqual([
    [0, 3, null],
    [0, 4, null],
    [1, 7, null],
    [2, 0, '{"a":1}'],
  ])
  expect(await store.audit()).toEqual([])
  await store.close()

  const schemaOf = (path: string) => {
    const db = new DatabaseSync(path)
    const columns = db
      .prepare(
        `SELECT t.name AS "table", c.name, c.type, c."notnull" FROM sqlite_schema t, pragma_table_info(t.name) c
         WHERE t.type = 'table' ORDER BY t.name, c.name`,
      )
      .all()
    const indexes = db.prepare("SELECT name, sql FROM sqlite_schema WHERE type = 'index' ORDER BY name").all()
    db.close()
    return [...columns, ...indexes]
  }
  const fresh = await testFolder()
  await (await openSqliteDisk({ folder: fresh })).close()
  expect(schemaOf(join(folder, 'baton.db'))).toEqual(schemaOf(join(fresh, 'baton.db')))
})
