import { describe, expect, onTestFinished, test } from 'vitest'
import { FaultyLink } from '../../../../../test/postgres/support/faulty-link.ts'
import { ForgetfulPooler } from '../../../../../test/postgres/support/forgetful-pooler.ts'
import { KnownKeys } from '../../../src/handoff/disk.ts'
import { untouched } from '../../../src/handoff/partition.ts'
import { noTallies } from '../../../src/handoff/rules/task.ts'
import { StoreUnavailable } from '../../../src/handoff/store.ts'
import { entry, lane, noRowChanges, row, task } from './samples.ts'
import { diskDatabases } from './support.ts'

const databases = diskDatabases()

describe('an append whose answer is lost', () => {
  test('is in doubt, and the next open resolves it', async () => {
    const database = await databases.create()
    const link = await FaultyLink.start(databases.server.port)
    onTestFinished(() => link.stop())
    const disk = await database.disk({ port: link.port })
    const { last } = await disk.open()
    await disk.append(entry(last + 1))
    const blocking = await database.session()
    await blocking.query('BEGIN; LOCK TABLE baton.partition IN EXCLUSIVE MODE')
    const appending = disk.append(entry(last + 2, { newRows: [row(1)] }))
    await untilWaiting(database.name)
    // The server is not notified of the disconnect, and continues.
    link.hangUp()
    await expect(appending).rejects.toThrow(StoreUnavailable)
    await expect(disk.append(entry(last + 2))).rejects.toThrow(StoreUnavailable)
    const reopening = disk.open()
    await blocking.query('COMMIT')
    const { unflushed } = await reopening
    expect([[`entry ${last + 1}`], [`entry ${last + 1}`, `entry ${last + 2}`]]).toContainEqual(unflushed)
    // Its row exists exactly if the entry does.
    expect(await disk.partitionsById([1])).toHaveLength(unflushed.length - 1)
  })

  test('closes the connection when the answer times out', async () => {
    const database = await databases.create()
    const disk = await database.disk({ timeouts: { appendMillis: 200 } })
    const { last } = await disk.open()
    const blocking = await database.session()
    await blocking.query('BEGIN; LOCK TABLE baton.partition IN EXCLUSIVE MODE')
    await expect(disk.append(entry(last + 1, { newRows: [row(1)] }))).rejects.toThrow(StoreUnavailable)
    const reopening = disk.open()
    await blocking.query('COMMIT')
    await reopening
  })
})

test('an append waits for a standby, also if the database does not, and is in doubt if the wait was cancelled', async () => {
  const database = await databases.create()
  await database.query(`ALTER DATABASE ${database.name} SET synchronous_commit = off`)
  const disk = await database.disk()
  const { last } = await disk.open()
  const operator = await database.session()
  await operator.query(`ALTER SYSTEM SET synchronous_standby_names = 'nobody'`)
  await operator.query('SELECT pg_reload_conf()')
  onTestFinished(async () => {
    const again = await database.session()
    await again.query('ALTER SYSTEM RESET synchronous_standby_names')
    await again.query('SELECT pg_reload_conf()')
  })
  const cancel = `SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE datname = '${database.name}' AND wait_event = 'SyncRep'`
  // The session of the disk may read the setting only after some appends.
  let error: unknown
  for (let number = last + 1; error === undefined && number < last + 10_000; number += 1) {
    let isOver = false
    const outcome = disk
      .append(entry(number))
      .catch((failure: unknown) => failure)
      .finally(() => {
        isOver = true
      })
    while (!isOver && (await operator.query(cancel)).rowCount === 0);
    error = await outcome
  }
  expect(error).toBeInstanceOf(StoreUnavailable)
  expect((error as Error).message).toContain('standby')
})

test('connections that PostgreSQL closed are opened again', async () => {
  const database = await databases.create()
  const disk = await database.disk()
  const { last } = await disk.open()
  await disk.append(entry(last + 1))
  expect((await disk.lanesById([1])).lanes).toEqual([])
  await database.query(
    `SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE datname = '${database.name}' AND application_name = 'baton'`,
  )
  expect((await disk.lanesById([1])).lanes).toEqual([])
  await disk.append(entry(last + 2)).catch(() => {})
  const opened = await disk.open()
  await disk.append(entry(opened.last + 1))
  await disk.flush(noRowChanges(), opened.last + 1)
})

test('a pooler in transaction mode needs no setting', async () => {
  const database = await databases.create()
  const pooler = await ForgetfulPooler.start(databases.server.port)
  onTestFinished(() => pooler.stop())
  const disk = await database.disk({ port: pooler.port })
  const { last } = await disk.open()
  await disk.append(entry(last + 1, { newRows: [row(1), row(2)] }))
  await disk.stage([row(3)])
  await disk.unstage({ first: 3, last: 3 })
  await disk.flush(
    {
      ...noRowChanges(),
      tasks: new Map([[1, task(1)]]),
      lanes: new Map([[1, lane(1, { tail: 2, partitions: { ...noTallies().partitions, ready: 1 } })]]),
      partitions: new Map([[1, { ...untouched(), state: 'done' }]]),
      keys: new Map([['k', { key: 'k', leases: ['1-1-s'], forgetAt: 9 }]]),
    },
    last + 1,
  )
  await expect(disk.append(entry(last + 2, { newKeys: ['k'] }))).rejects.toThrow(KnownKeys)
  await disk.append(entry(last + 2, { newKeys: ['j'] }))
  expect((await disk.partitionsById([1, 2, 3])).map(({ id, state }) => [id, state])).toEqual([
    [1, 'done'],
    [2, 'ready'],
  ])
  expect((await disk.openTasks(0, 5)).length).toBe(1)
  expect((await disk.lanesWithWork(0, 5)).lanes.map(({ id }) => id)).toEqual([1])
  expect((await disk.taskDetail('task-1'))?.laneCount).toBe(1)
  expect((await disk.open()).unflushed).toEqual([`entry ${last + 2}`])
  await disk.resign()
  expect(pooler.forgot).toBeGreaterThan(5)
})

test('settings of the database do not matter', async () => {
  const database = await databases.create()
  await database.query(`ALTER DATABASE ${database.name} SET array_nulls = off`)
  await database.query(`ALTER DATABASE ${database.name} SET default_transaction_isolation = serializable`)
  await database.query(`ALTER DATABASE ${database.name} SET synchronous_commit = off`)
  await database.query(`ALTER DATABASE ${database.name} SET search_path = public, pg_catalog`)
  const disk = await database.disk()
  const { last } = await disk.open()
  await disk.append(entry(last + 1, { newRows: [row(1)] }))
  await disk.flush(
    { ...noRowChanges(), partitions: new Map([[1, { ...untouched(), state: 'done' }]]) },
    last + 1,
  )
  expect(await disk.partitionsById([1])).toEqual([{ ...row(1), ...untouched(), state: 'done' }])
})

async function untilWaiting(database: string): Promise<void> {
  const waiting = () =>
    databases.server.query(
      `SELECT FROM pg_stat_activity WHERE datname = '${database}' AND application_name = 'baton' AND wait_event_type = 'Lock'`,
    )
  while ((await waiting()).length === 0);
}
