import { beforeEach, describe, expect, test } from 'vitest'
import { type Driver, pullOrder, some } from './conformance/driver.ts'
import type { SharedDatabase } from './support/shared-database.ts'
import { sharedDatabases } from './support/shared-databases.ts'

describe('a window whose tripwire was handed out by a node that died before it filled it', () => {
  const databases = sharedDatabases()
  let database: SharedDatabase
  beforeEach(async () => {
    database = await databases.create()
  })

  /** More than a window of level 0, which has lost its tripwire. */
  async function leave(node: Driver): Promise<void> {
    await node.callBack('a', [...some(0, 5000), ...some(1, 500)])
    await node.task('a')
    await node.store.close()
    await database.query('UPDATE baton.ready SET refill = false WHERE refill')
  }
  const tripwires = () => database.query('SELECT FROM baton.ready WHERE refill')

  test.each(['alone=never', 'alone=whenever-possible'])(
    'is filled by the next one before it hands anything out (%s)',
    async (parameters) => {
      await leave(await database.open())
      const node = await database.open({ parameters })
      // In one batch, so that the roller does not come between.
      const { pulls } = await node.batch({ pulls: [1000, 1000, 1000].map((batch) => pullOrder({ batch })) })
      expect(pulls.map(({ partitions }) => partitions.length)).toEqual([1000, 1000, 1000])
      expect(pulls.flatMap(({ partitions }) => partitions).filter(({ level }) => level > 0)).toEqual([])
      expect(await node.store.audit()).toEqual([])
    },
  )

  test('is filled behind the start where somebody has locked the lane', async () => {
    await leave(await database.open())
    const hold = await database.holdLanes()
    const node = await database.open({ parameters: 'alone=never' })
    await hold.letGo()
    await node.task('a')
    expect(await tripwires()).toHaveLength(1)
  })

  test('is filled by one that was beside it, before that hands out from memory', async () => {
    const node = await database.open()
    const other = await database.open({ parameters: 'alone=never' })
    await node.callBack('b', some(0, 100))
    await node.pullOne()
    await leave(other)
    await database.goAlone(node, 'a')
    expect(await tripwires()).toHaveLength(1)
    expect(await node.store.audit()).toEqual([])
  })

  test('is left alone where the lane is closed', async () => {
    const node = await database.open()
    await node.callBack('a', some(0, 5000))
    await node.control({ verb: 'pause', taskId: 'a' })
    await node.store.close()
    await database.open()
    expect(await database.query('SELECT FROM baton.ready')).toEqual([])
  })
})
