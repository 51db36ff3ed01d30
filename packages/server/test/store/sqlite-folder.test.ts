import { rename } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { beforeEach, describe, expect, test } from 'vitest'
import { testFolder } from '../../../../test/support/test-folder.ts'
import { StoreRefused } from '../../src/handoff/store.ts'
import { openEmbeddedStore } from '../../src/open-store.ts'
import { Driver, some } from './conformance/driver.ts'
import { TestClock, testPolicy } from './conformance/harness.ts'
import { SeparateStore } from './support/separate-store.ts'

let folder: string

beforeEach(async () => {
  folder = await testFolder()
})

const open = () => openEmbeddedStore({ folder, policy: testPolicy })

test('closing waits for a call-back that is being written', async () => {
  const store = await open()
  const driver = new Driver({ store, reopen: async () => {}, dispose: async () => {} }, new TestClock())
  const writing = driver.callBack('large', some(0, 30_000))
  await store.close()
  expect(await writing).toMatchObject({ accepted: 30_000 })
  await expect(driver.pull()).rejects.toMatchObject({ code: 'store_unavailable' })
})

test('a foreign program that writes into the data file makes requests unavailable, not wait', async () => {
  const store = await open()
  const foreign = new DatabaseSync(join(folder, 'baton.db'))
  foreign.exec('BEGIN IMMEDIATE')
  await expect(store.probe()).rejects.toMatchObject({ code: 'store_unavailable' })
  foreign.exec('COMMIT')
  foreign.close()
  await store.probe()
  await store.close()
})

describe('one process per data folder', () => {
  test('an opening from another process is refused, and the first continues', async () => {
    const store = await open()
    await expect(SeparateStore.open(folder)).rejects.toMatchObject({
      name: 'StoreRefused',
      message: expect.stringContaining('in use by another Baton'),
    })
    await store.probe()
    await store.close()
  })

  test('a process that was killed leaves no lock behind', async () => {
    const killed = await SeparateStore.open(folder)
    await expect(open()).rejects.toBeInstanceOf(StoreRefused)
    await killed.kill()
    const store = await open()
    expect(await store.recount()).toEqual([])
    await store.close()
  })
})

test('a folder that was removed accepts no more work', async () => {
  const separate = await SeparateStore.open(join(folder, 'data'))
  const driver = new Driver(
    { store: separate.store, reopen: async () => {}, dispose: async () => {} },
    new TestClock(),
  )
  await driver.callBack('a', some(0, 1))
  await rename(join(folder, 'data'), join(folder, 'elsewhere'))
  // Disk space is checked periodically; from the next check on nothing is accepted.
  let refused: unknown
  while (refused === undefined)
    refused = await driver.callBack('b', some(0, 1)).then(
      () => undefined,
      (error) => error,
    )
  expect(refused).toMatchObject({
    name: 'StoreUnavailable',
    message: expect.stringContaining('no longer exists'),
  })
  await expect(driver.pull()).rejects.toMatchObject({ name: 'StoreUnavailable' })
  await separate.kill()
})
