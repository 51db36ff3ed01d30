import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type Driver, nameOf, some } from './conformance/driver.ts'
import { DAY } from './conformance/harness.ts'
import type { SharedDatabase } from './support/shared-database.ts'
import { sharedDatabases } from './support/shared-databases.ts'

/** Whoever works on a whole task waits for nobody's row, and still comes to each of them. */
describe('a partition that somebody has locked at the moment', () => {
  const databases = sharedDatabases()
  let database: SharedDatabase
  let node: Driver
  beforeEach(async () => {
    database = await databases.create()
    node = await database.open({ parameters: 'alone=never' })
  })
  afterEach(async () => {
    expect(await node.store.audit()).toEqual([])
  })

  async function settleAll(outcome: 'done' | 'failed'): Promise<void> {
    for (const { lease } of await node.pullAll()) await node.settle(lease?.id ?? '', { outcome, final: true })
  }

  const counted = async () => (await node.task('a')).facts.partitions

  test('is run again when it is free, and so is everyone after it', async () => {
    await node.callBack('a', [...some(0, 3), ...some(1, 2)])
    await settleAll('done')
    const hold = await database.holdPartition(0, 1)
    expect(await node.retry('a', { done: true })).toMatchObject({ kind: 'applied', changed: 5 })
    expect(await counted()).toMatchObject({ ready: 2, done: 3 })
    expect(await node.tidy()).toEqual({ more: true, readied: 0 })
    await hold.letGo()
    await node.tidyAll()
    expect(await counted()).toMatchObject({ ready: 5, done: 0 })
    const handed = (await node.pullAll()).map(nameOf).toSorted()
    expect(handed).toEqual(['a-0-0', 'a-0-1', 'a-0-2', 'a-1-0', 'a-1-1'])
  })

  test('is not taken for one that was finished after the order', async () => {
    await node.callBack('a', some(0, 3))
    await settleAll('done')
    const hold = await database.holdPartition(0, 0)
    await node.retry('a', { done: true })
    node.clock.advance(1)
    await settleAll('done')
    await hold.letGo()
    await node.tidyAll()
    expect((await node.pullAll()).map(nameOf)).toEqual(['a-0-0'])
  })

  test('is retried by a further step of the same order', async () => {
    await node.callBack('a', some(0, 3))
    await settleAll('failed')
    const hold = await database.holdPartition(0, 0)
    const order = { verb: 'retry', taskId: 'a', level: null, partitions: null, done: false } as const
    expect(await node.store.control(order)).toMatchObject({ changed: 2, more: true })
    expect(await node.store.control(order)).toMatchObject({ changed: 0, more: true })
    await hold.letGo()
    expect(await node.store.control(order)).toMatchObject({ changed: 1, more: false })
    expect(await counted()).toMatchObject({ ready: 3, parked: 0 })
  })

  test('is looked for again soon by pulls that wait, as nobody tells when it is let go', async () => {
    await node.callBack('a', some(0, 1))
    const woken = Promise.withResolvers<number>()
    node.store.onHint?.(woken.resolve)
    const hold = await database.holdPlaces(0, [0])
    expect((await node.pull()).partitions).toEqual([])
    expect(await woken.promise).toBe(1)
    await hold.letGo()
    expect((await node.pullOne()).index).toBe(0)
  })

  test('is removed by retention when it is free', async () => {
    await node.callBack('a', [...some(0, 2), ...some(1, 2)])
    await settleAll('done')
    node.clock.advance(8 * DAY)
    const hold = await database.holdPartition(0, 1)
    // Upkeep is not kept busy by it.
    await node.tidyAll()
    expect((await node.partitions('a')).map(({ level, index }) => [level, index])).toEqual([[0, 1]])
    await hold.letGo()
    await node.tidyAll()
    expect((await node.task('a')).facts.purgedAt).not.toBeNull()
    expect(await database.query('SELECT FROM baton.partition')).toEqual([])
    expect(await database.query('SELECT FROM baton.purging')).toEqual([])
  })
})
