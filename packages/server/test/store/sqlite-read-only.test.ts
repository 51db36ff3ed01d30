import { chmod, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { testFolder } from '../../../../test/support/test-folder.ts'
import { recount } from '../support/recount.ts'
import { some } from './conformance/driver.ts'
import { driverOf } from './driven-store.ts'
import { SeparateStore } from './support/separate-store.ts'

let folder: string

beforeEach(async () => {
  folder = await testFolder()
})

afterEach(() => setWritable(true))

async function setWritable(writable: boolean): Promise<void> {
  for (const name of await readdir(folder)) await chmod(join(folder, name), writable ? 0o644 : 0o444)
  await chmod(folder, writable ? 0o755 : 0o555)
}

const open = () => SeparateStore.open(folder, { obeyModes: true })

test('a read-only folder is refused at the start, new or with data in it, with an explanation', async () => {
  const refused = (reason: string) => ({
    name: 'StoreRefused',
    message:
      `the data folder ${folder} cannot be used: ${reason}; ` +
      'give this user write permission, or choose another folder with --data',
  })
  await setWritable(false)
  await expect(open()).rejects.toMatchObject(refused('baton.lock cannot be opened'))
  await setWritable(true)
  const separate = await open()
  await driverOf(separate.store).callBack('a', some(0, 3))
  await separate.close()
  await setWritable(false)
  await expect(open()).rejects.toMatchObject(refused('the folder is read-only'))
  await setWritable(true)
  const again = await open()
  expect(await driverOf(again.store).partitions('a')).toHaveLength(3)
  await again.close()
})

test('a folder that becomes read-only while it is in use makes requests unavailable until it is writable', async () => {
  const separate = await open()
  const driver = driverOf(separate.store)
  await driver.callBack('a', some(0, 3))
  // A failed write makes the store reopen its file, and by then it may no longer be writable.
  separate.limitFileSize(4096)
  await expect(driver.callBack('b', some(0, 3))).rejects.toMatchObject({ name: 'StoreUnavailable' })
  await setWritable(false)
  separate.limitFileSize(null)
  for (const verb of [
    () => driver.callBack('b', some(0, 3)),
    () => driver.pull(),
    () => driver.store.probe(),
  ])
    await expect(verb()).rejects.toMatchObject({ name: 'StoreUnavailable', code: 'store_unavailable' })
  await setWritable(true)
  expect(await driver.callBack('b', some(0, 3))).toMatchObject({ accepted: 3 })
  expect(await recount({ data: folder })).toEqual([])
  await separate.close()
})
