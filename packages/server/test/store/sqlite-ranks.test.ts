import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { beforeEach, expect, test } from 'vitest'
import { testFolder } from '../../../../test/support/test-folder.ts'
import { openSqliteStore } from '../../src/store/sqlite/store.ts'
import { Driver, nameOf, some } from './conformance/driver.ts'
import { TestClock, testPolicy } from './conformance/harness.ts'

/** Years of records: far beyond what a JavaScript number tells apart, within 64 bits. */
const YEARS_OF_RECORDS = 2n ** 61n + 1n

let folder: string

beforeEach(async () => {
  folder = await testFolder()
})

async function open(clock: TestClock): Promise<Driver> {
  const store = await openSqliteStore({ folder, policy: testPolicy, clock: clock.now })
  return new Driver({ store, reopen: async () => {}, dispose: () => store.close() }, clock)
}

/** As if the level had handed out that much before; nothing else could bring it there within a test. */
function age(): void {
  const db = new DatabaseSync(join(folder, 'baton.db'))
  db.prepare('UPDATE level SET virtual = ?, served = ?').run(YEARS_OF_RECORDS, YEARS_OF_RECORDS)
  db.close()
}

test('a level that handed out more than 2^53 records goes on, with an exact order, also after a restart', async () => {
  const clock = new TestClock()
  const young = await open(clock)
  await young.callBack('a', some(0, 1))
  await young.settle((await young.pullOne()).leaseId)
  await young.store.close()
  age()

  const old = await open(clock)
  await old.callBack('b', some(0, 6, { recordCount: 1 }))
  await old.callBack('c', some(0, 3, { recordCount: 2 }))
  const first = await old.pullOne()
  await old.store.close()

  const restarted = await open(clock)
  await restarted.settle(first.leaseId, { outcome: 'failed', retryAfterMillis: 0 })
  await restarted.sweep()
  await restarted.control({ verb: 'pause', taskId: 'c' })
  await restarted.control({ verb: 'resume', taskId: 'c' })
  // Ranks one apart are told apart: two partitions of one record against one of two, in turn.
  expect((await restarted.pullAll(1)).map(nameOf)).toEqual([
    'b-0-0',
    'c-0-0',
    'b-0-1',
    'b-0-2',
    'c-0-1',
    'b-0-3',
    'b-0-4',
    'c-0-2',
    'b-0-5',
  ])
  expect((await restarted.task('b')).lanes).toHaveLength(1)
  expect(await restarted.partitions('b')).toHaveLength(6)
  expect(await restarted.store.audit()).toEqual([])
  await restarted.store.close()
})
