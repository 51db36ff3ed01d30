import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { testFolder } from '../../../../test/support/test-folder.ts'
import { openPostgresDisk } from '../../src/disk/postgres/postgres-disk.ts'
import { openSqliteDisk } from '../../src/disk/sqlite/sqlite-disk.ts'
import type { Disk } from '../../src/handoff/disk.ts'
import { openEngine } from '../../src/handoff/engine/engine-store.ts'
import { factsOf, progressOf } from '../../src/handoff/outbox.ts'
import { TestClock, testPolicy } from '../store/conformance/harness.ts'
import { diskDatabases } from './postgres/support.ts'

/**
 * Created by the last versions with schema 8 of SQLite and 13 of PostgreSQL, and left as after a crash. Task
 * b has a parked partition, a and c are done. Two deliveries were attempted before rows were flushed. The
 * events of c and the delivery of event 2 are in entries that are not flushed.
 */
const fixture = (name: string) => readFile(new URL(`./fixtures/${name}`, import.meta.url))
const POSTED = 'sub_secret0000000002'
const KEPT = 'sub_secret0000000003'
const BEGIN = 1_780_000_000_000

const databases = diskDatabases()

const opened: Readonly<Record<string, () => Promise<Disk>>> = {
  async 'a file of version 8'() {
    const folder = await testFolder()
    await writeFile(join(folder, 'baton.db'), gunzipSync(await fixture('schema-8.db.gz')))
    return openSqliteDisk({ folder })
  },
  async 'a database of version 13'() {
    const { name, url } = await databases.server.createDatabase()
    await databases.server.query(
      `CREATE SCHEMA baton; CREATE TABLE baton.schema_version (version integer NOT NULL);
       INSERT INTO baton.schema_version VALUES (13); ${await fixture('postgres-13.sql')}`,
      name,
    )
    return openPostgresDisk({ url, node: { nodeId: 'another', url: null } })
  },
}

test.for(Object.entries(opened))('%s keeps every delivery', async ([, open]) => {
  const store = await openEngine({
    disk: await open(),
    policy: testPolicy,
    clock: new TestClock().now,
    random: Math.random,
    secret: () => 'another',
  })
  const log = async (id: string) => {
    const order = { ask: 'deliveries' as const, id, after: 0, newestFirst: false, limit: 100 }
    const result = await store.subscriptions(order)
    return result.kind === 'deliveries' ? result.deliveries : []
  }
  const pending = async (taskId: string | null) => {
    const ofTask = taskId === null ? null : { taskId, upTo: 6 }
    const order = { ask: 'pending' as const, subscription: POSTED, ofTask, after: 0, limit: 100 }
    return (await store.deliver(order)).deliveries.map(({ event }) => event)
  }

  const posted = await log(POSTED)
  expect(posted.map((one) => [one.event, one.taskId, one.message.type, progressOf(one).state])).toEqual([
    [1, 'a', 'level.done', 'delivered'],
    [2, 'a', 'task.done', 'delivered'],
    [3, 'b', 'partition.parked', 'pending'],
    [4, 'b', 'task.stalled', 'pending'],
    [5, 'c', 'level.done', 'pending'],
    [6, 'c', 'task.done', 'pending'],
  ])
  expect(posted[2]?.progress).toEqual({
    state: 'pending',
    attempts: 1,
    nextAt: BEGIN + 7000,
    attemptedAt: BEGIN + 2000,
    status: 503,
    error: 'the receiver answered 503',
    millis: 12,
  })
  expect(posted[5]).toMatchObject({
    at: BEGIN + 2000,
    message: { id: 'evt_secret0000000012', generation: 1 },
  })
  const facts = posted.filter(({ taskId }) => taskId !== 'b').map(({ message }) => factsOf(message))
  const summary = (firstCallBackAt: number, endedAt: number) => ({
    of: 'task',
    partitions: { total: 1, done: 1, parked: 0 },
    records: { declared: 100, done: 100 },
    reportedRecords: 0,
    reportedDeclared: 0,
    mismatched: 0,
    attempts: 1,
    firstCallBackAt,
    endedAt,
  })
  const level = { of: 'level', level: 0, partitions: 1, records: 100 }
  expect(facts).toEqual([level, summary(BEGIN, BEGIN + 1000), level, summary(BEGIN + 2000, BEGIN + 2000)])
  const kept = await log(KEPT)
  expect(kept.map((one) => [one.event, one.progress?.state])).toEqual([
    [2, 'kept'],
    [6, 'kept'],
  ])
  expect(await pending(null)).toEqual([3, 4, 5, 6])
  expect(await pending('b')).toEqual([3, 4])
  const delivered = { ...progressOf(kept[0] as (typeof kept)[number]), state: 'delivered' as const }
  const changes = [3, 5].map((event) => ({ subscription: POSTED, event, progress: delivered }))
  await store.deliver({ ask: 'record', changes, disable: [] })
  expect(await pending(null)).toEqual([4, 6])
  await store.close()
})
