import { describe, expect, onTestFinished, test } from 'vitest'
import { Connection } from '../../src/store/postgres/session/connection.ts'
import { type Driver, some } from './conformance/driver.ts'
import { sharedDatabases } from './support/shared-databases.ts'

/** What somebody has set for the database or the role is met by every session of ours. */
const databases = sharedDatabases()

const WAYS = ['alone=never', 'alone=whenever-possible', 'pooling=transaction']

test.each(WAYS)('a name that is not there stays so where array_nulls is off (%s)', async (parameters) => {
  const database = await databases.create()
  await database.query(`ALTER DATABASE ${database.name} SET array_nulls = off`)
  const node = await database.open({ parameters })
  await node.callBack('a', some(0, 60))
  const leases: string[] = []
  for (let pulls = 0; pulls < 50; pulls += 1) {
    const { leaseId, spelling } = await node.pullOne({ key: `key-${pulls}` })
    expect(spelling).toBeNull()
    leases.push(leaseId)
  }
  for (const lease of leases) expect(await node.settle(lease)).toBeNull()
  const partitions = await node.partitions('a')
  expect(new Set(partitions.map(({ spelling }) => spelling))).toEqual(new Set([null]))
  expect(new Set(partitions.map(({ holder }) => holder))).toEqual(new Set([null]))
  expect(await node.store.audit()).toEqual([])
})

test('a function of the same name that somebody else made is not called', async () => {
  const database = await databases.create()
  await database.query(
    `CREATE FUNCTION public.unnest(bigint[]) RETURNS SETOF bigint LANGUAGE sql AS 'SELECT 1::bigint WHERE false';
     ALTER DATABASE ${database.name} SET search_path = public, pg_catalog`,
  )
  expect(await database.query('SELECT unnest(ARRAY[1::bigint])')).toEqual([])
  const node = await database.open({ parameters: 'alone=never' })
  await node.callBack('a', some(0, 2))
  expect(await node.pullAll()).toHaveLength(2)
})

describe('where transactions are serializable by default', () => {
  test.each([false, true])('ours are not (lent by transaction: %s)', async (pooledByTransaction) => {
    const database = await databases.create()
    await database.query(`ALTER DATABASE ${database.name} SET default_transaction_isolation = serializable`)
    const url = `postgres://postgres@127.0.0.1:${databases.server.port}/${database.name}`
    const connection = await Connection.open(url, {
      connectMillis: 3000,
      answerMillis: 40_000,
      pooledByTransaction,
    })
    onTestFinished(() => connection.close())
    const level = () => connection.run({ name: 'level', text: 'SHOW transaction_isolation' })
    await connection.exec(connection.begin())
    expect(await level()).toEqual([{ transaction_isolation: 'read committed' }])
    await connection.exec('ROLLBACK')
    await connection.exec(connection.begin('REPEATABLE READ READ ONLY'))
    expect(await level()).toEqual([{ transaction_isolation: 'repeatable read' }])
    await connection.exec('ROLLBACK')
    if (!pooledByTransaction) expect(await level()).toEqual([{ transaction_isolation: 'read committed' }])
  })

  test('nodes that start at once agree on the schema, and share the work', async () => {
    const database = await databases.create()
    await database.query(`ALTER DATABASE ${database.name} SET default_transaction_isolation = serializable`)
    const nodes = await Promise.all([1, 2, 3].map(() => database.open({ parameters: 'alone=never' })))
    await nodes[0]?.callBack('a', some(0, 300))
    const finish = async (node: Driver) => {
      for (const { lease } of await node.pullAll(5)) expect(await node.settle(lease?.id ?? '')).toBeNull()
    }
    await Promise.all(nodes.map(finish))
    expect(await nodes[1]?.state('a')).toBe('done')
  })
})

describe('where transactions only read by default', () => {
  const READ_ONLY = 'PostgreSQL takes no writes here: default_transaction_read_only is on'

  test.each(WAYS)('a start says so (%s)', async (parameters) => {
    const database = await databases.create()
    await database.query(`ALTER DATABASE ${database.name} SET default_transaction_read_only = on`)
    await expect(database.open({ parameters })).rejects.toThrow(READ_ONLY)
  })

  test('a node that runs says so, and goes on when it may write again', async () => {
    const database = await databases.create()
    const node = await database.open({ parameters: 'alone=never' })
    await database.query(`ALTER DATABASE ${database.name} SET default_transaction_read_only = on`)
    await database.endSessions()
    const failure = await node.callBack('a', some(0, 1)).catch((error: unknown) => error)
    expect(failure).toMatchObject({ code: 'store_unavailable', message: expect.stringContaining(READ_ONLY) })
    await expect(database.open()).rejects.toThrow(READ_ONLY)
    await database.query(
      `BEGIN READ WRITE; ALTER DATABASE ${database.name} RESET default_transaction_read_only; COMMIT`,
    )
    expect(await node.callBack('a', some(0, 1))).toMatchObject({ accepted: 1 })
  })
})
