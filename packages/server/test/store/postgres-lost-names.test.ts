import { describe, expect, test } from 'vitest'
import type { AloneMode } from '../../src/store/postgres/session/database-url.ts'
import { type Driver, some } from './conformance/driver.ts'
import type { SharedDatabase } from './support/shared-database.ts'
import { sharedDatabases } from './support/shared-databases.ts'

const databases = sharedDatabases()

const SIZE = 600

const partitionsIn = (computeTableName: string) => some(0, SIZE, { computeTableName })

/** A node that knows the names of a task, a table and clients, of which the database knows nothing any more. */
async function nodeWithLostNames(database: SharedDatabase, alone: AloneMode): Promise<Driver> {
  const first = await database.open()
  await first.store.close()
  const backup = await database.backUp()
  const node = await database.open({ parameters: `alone=${alone}` })
  await node.callBack('lost', partitionsIn('s.lost'), 'lost-producer')
  expect(await node.pullOne({ instance: 'lost-worker' })).toMatchObject({ taskId: 'lost' })
  if (alone !== 'never') await database.goAlone(node, 'lost')
  await backup.restore()
  return node
}

/** Another node is given the same ids. */
async function callBackElsewhere(database: SharedDatabase): Promise<void> {
  const other = await database.open()
  await other.callBack('new', partitionsIn('s.new'), 'new-producer')
  await other.pullOne({ instance: 'new-worker' })
  await other.store.close()
}

describe.each<AloneMode>(['never', 'whenever-possible'])('a node that is alone %s', (alone) => {
  test('hands out under the names that the database has after a restore', async () => {
    const database = await databases.create()
    const node = await nodeWithLostNames(database, alone)
    await callBackElsewhere(database)
    const handedOut = { taskId: 'new', computeTableName: 's.new' }
    expect(await node.pullOne()).toMatchObject(handedOut)
    if (alone !== 'never') await database.goAlone(node, 'new')
    expect(await node.pullOne()).toMatchObject(handedOut)
    // A budget of records is pulled by another way.
    expect(await node.pullOne({ records: 1 })).toMatchObject(handedOut)
    expect(await node.store.audit()).toEqual([])
  })

  test('stores under the names that it is told after a restore', async () => {
    const database = await databases.create()
    const node = await nodeWithLostNames(database, alone)
    await callBackElsewhere(database)
    await node.callBack('again', partitionsIn('s.lost'), 'lost-producer')
    expect((await node.task('again')).computeTables).toEqual(['s.lost'])
    expect((await node.task('new')).computeTables).toEqual(['s.new'])
    await node.pullOne({ instance: 'lost-worker' })
    expect((await node.store.instance('new-worker'))?.leases).toBe(1)
    expect((await node.store.instance('lost-worker'))?.leases).toBe(1)
    expect(await node.store.audit()).toEqual([])
  })
})

test('a call-back that was under way when names were lost is stored under its own', async () => {
  const database = await databases.create()
  const node = await database.open()
  await node.callBack('a', some(0, 1, { computeTableName: 's.lost' }))
  const hold = await database.holdTasks()
  const callingBack = node.callBack('b', some(0, 1, { computeTableName: 's.lost' }))
  await database.untilWaiting(1)
  // As after a fail-over that lacks the last commits: the id is that of another table.
  await database.query(`UPDATE baton.compute_table SET name = 's.new' WHERE name = 's.lost'`)
  await database.endSessions()
  await hold.letGo()
  expect(await callingBack).toEqual({ kind: 'stored', accepted: 1, duplicates: 0 })
  expect((await node.task('b')).computeTables).toEqual(['s.lost'])
  expect(await node.store.audit()).toEqual([])
})
