import { expect, test } from 'vitest'
import { some } from './conformance/driver.ts'
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
