import { expect, test } from 'vitest'
import { nameOf, one, some } from './conformance/driver.ts'
import type { SharedDatabase } from './support/shared-database.ts'
import { sharedDatabases } from './support/shared-databases.ts'

const databases = sharedDatabases()

const readyOf = async (database: SharedDatabase) =>
  Number((await database.query('SELECT count(*) AS places FROM baton.ready'))[0]?.['places'])

test('however often a node is alone and is not, windows stay small', async () => {
  const database = await databases.create()
  const node = await database.open()
  await node.callBack('a', some(0, 9000))
  for (let times = 0; times < 12; times += 1) {
    await database.goAlone(node, 'a')
    const { leaseId } = await node.pullOne()
    // Not a plain hand-off: it is not alone after that.
    await node.settle(leaseId, { outcome: 'failed', final: true })
  }
  expect(await readyOf(database)).toBeLessThan(4000)
})

test('batches go through one window after the other, and what is on the next level follows', async () => {
  const database = await databases.create()
  const node = await database.open()
  await node.callBack('a', [...some(0, 5000), one(1, 0)])
  await database.goAlone(node, 'a')
  const given: string[] = []
  for (let last = -1; last !== given.length; ) {
    last = given.length
    given.push(...(await node.pull({ batch: 500 })).partitions.map(nameOf))
  }
  const indexes = given.slice(0, -1).map((name) => Number(name.split('-').at(-1)))
  expect(indexes).toEqual(Array.from(indexes, (_, at) => 5000 - indexes.length + at))
  expect(given.at(-1)).toBe('a-1-0')
  expect(await node.store.audit()).toEqual([])
})
