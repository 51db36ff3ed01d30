import { rename } from 'node:fs/promises'
import { beforeEach, expect, test } from 'vitest'
import { testFolder } from '../../../../test/support/test-folder.ts'
import { openEmbeddedStore } from '../../src/open-store.ts'
import { some } from './conformance/driver.ts'
import { testPolicy } from './conformance/harness.ts'
import { driverOf } from './driven-store.ts'

let folder: string

beforeEach(async () => {
  folder = await testFolder()
})

const open = () => openEmbeddedStore({ folder, policy: testPolicy })

test('closing waits for a call-back that is being written', async () => {
  const store = await open()
  const driver = driverOf(store)
  const writing = driver.callBack('large', some(0, 30_000))
  await store.close()
  expect(await writing).toMatchObject({ accepted: 30_000 })
  await expect(driver.pull()).rejects.toMatchObject({ code: 'store_unavailable' })
})

test('a folder that was removed accepts no more work', async () => {
  const store = await open()
  const driver = driverOf(store)
  await driver.callBack('a', some(0, 1))
  await rename(folder, `${folder}-elsewhere`)
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
  await rename(`${folder}-elsewhere`, folder)
  await store.close()
})
