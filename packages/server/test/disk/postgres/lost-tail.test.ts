import { expect, test } from 'vitest'
import { StoreUnavailable } from '../../../src/handoff/store.ts'
import { some } from '../../store/conformance/driver.ts'
import { drivenEngine } from '../../store/driven-store.ts'
import { recount } from '../../support/recount.ts'
import { row } from './samples.ts'
import { diskDatabases } from './support.ts'

const databases = diskDatabases()

async function opened() {
  const database = await databases.create()
  const disk = await database.disk()
  const lastEntry = async () =>
    (await database.query('SELECT max(number)::integer AS last FROM baton.entry'))[0]?.['last'] as number
  return { database, disk, openOn: () => drivenEngine(disk), lastEntry }
}

test('a call-back in progress leaves no rows on a promoted standby that lacks its first entry', async () => {
  const { database, disk, openOn, lastEntry } = await opened()
  const driver = await openOn()
  await driver.callBack('before', some(0, 10))
  const replicated = await lastEntry()
  const stage = disk.stage.bind(disk)
  let pieces = 0
  disk.stage = async (rows) => {
    pieces += 1
    // The fail-over: the server that gets the second piece has the term, but nothing of this call-back.
    if (pieces === 2)
      await database.query(
        `DELETE FROM baton.entry WHERE number > ${replicated}; DELETE FROM baton.partition WHERE id > 10`,
      )
    return stage(rows)
  }
  await expect(driver.callBack('large', some(0, 2500))).rejects.toThrow(StoreUnavailable)
  expect(pieces).toBe(2)
  expect(await database.query('SELECT FROM baton.partition WHERE id > 10')).toEqual([])

  expect(await driver.callBack('after', some(0, 2500))).toMatchObject({ kind: 'stored', accepted: 2500 })
  expect(await driver.callBack('large', some(0, 2500))).toMatchObject({ kind: 'stored', accepted: 2500 })
  expect(await recount({ databaseUrl: database.url })).toEqual([])
})

test('opening deletes rows whose ids have yet to be issued', async () => {
  const { database, disk, openOn } = await opened()
  await disk.open()
  await disk.stage([row(1), row(2), row(700)])
  const driver = await openOn()
  expect(await database.query('SELECT FROM baton.partition')).toEqual([])
  expect(await driver.callBack('a', some(0, 1000))).toMatchObject({ kind: 'stored', accepted: 1000 })
  expect(await recount({ databaseUrl: database.url })).toEqual([])
})
