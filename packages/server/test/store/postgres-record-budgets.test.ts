import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { PullResult } from '../../src/handoff/store.ts'
import { type Driver, nameOf, one, some } from './conformance/driver.ts'
import type { SharedDatabase } from './support/shared-database.ts'
import { sharedDatabases } from './support/shared-databases.ts'

/** How many partitions a budget of records takes shows only when they are there; what it leaves is for others at once. */
describe('while a pull with a budget of records is under way', () => {
  const databases = sharedDatabases()
  let database: SharedDatabase
  let node: Driver
  let other: Driver
  beforeEach(async () => {
    database = await databases.create()
    node = await database.open({ parameters: 'alone=never' })
    other = await database.open({ parameters: 'alone=never' })
  })
  afterEach(async () => {
    expect(await node.store.audit()).toEqual([])
  })

  /** What comes of a pull within a budget, and of one for a number that comes while the first is not committed. */
  async function besideEachOther(records: number, batch: number): Promise<[string[], string[]]> {
    const hold = await database.holdKeyedPulls()
    const within = node.pull({ records, batch: 50, key: 'k' })
    await database.untilWaiting(1)
    const meanwhile = await other.pull({ batch })
    await hold.letGo()
    return [names(await within), names(meanwhile)]
  }
  const names = ({ partitions }: PullResult) => partitions.map(nameOf)

  test('others get the rest of its level before they get anything of the next', async () => {
    await node.callBack('a', [...some(0, 4), ...some(1, 20)])
    expect(await besideEachOther(101, 3)).toEqual([
      ['a-0-0', 'a-0-1'],
      ['a-0-2', 'a-0-3', 'a-1-0'],
    ])
  })

  test('others are not told that nothing is ready', async () => {
    await node.callBack('a', some(0, 2))
    expect(await besideEachOther(1, 1)).toEqual([['a-0-0'], ['a-0-1']])
  })

  test('what turned out to be too much, because others had the smaller ones, is let go', async () => {
    const sizes = [10, 10, 30, 30, 30]
    await node.callBack(
      'a',
      sizes.map((recordCount, index) => one(0, index, { recordCount })),
    )
    const smaller = await database.holdPlaces(0, [0, 1])
    expect(await besideEachOther(20, 2)).toEqual([['a-0-2'], ['a-0-3', 'a-0-4']])
    await smaller.letGo()
    expect((await node.pullAll()).map(nameOf)).toEqual(['a-0-0', 'a-0-1'])
  })

  test('the budget is met all the same by what is smaller than what others have', async () => {
    const sizes = [30, 10, 10, 10, 10]
    await node.callBack(
      'a',
      sizes.map((recordCount, index) => one(0, index, { recordCount })),
    )
    const larger = await database.holdPlaces(0, [0])
    expect(await besideEachOther(30, 1)).toEqual([['a-0-1', 'a-0-2', 'a-0-3'], ['a-0-4']])
    await larger.letGo()
  })
})
