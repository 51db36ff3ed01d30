import { expect, test } from 'vitest'
import { testFolder } from '../../../../test/support/test-folder.ts'
import { recount } from '../support/recount.ts'
import { some } from './conformance/driver.ts'
import { driverOf } from './driven-store.ts'
import { SeparateStore } from './support/separate-store.ts'

const unavailable = { name: 'StoreUnavailable', message: expect.stringContaining('nothing of this request') }

test('on a full disk everything is refused as unavailable, and everything works again when there is space', async () => {
  const data = await testFolder()
  const separate = await SeparateStore.open(data)
  const { store } = separate
  const driver = driverOf(store)
  await driver.callBack('a', some(0, 50))
  const { leaseId } = await driver.pullOne()
  separate.limitFileSize(4096)
  await expect(driver.callBack('b', some(0, 50))).rejects.toMatchObject(unavailable)
  await expect(driver.pull({ batch: 5 })).rejects.toMatchObject(unavailable)
  await expect(driver.settle(leaseId)).rejects.toMatchObject(unavailable)
  await expect(store.probe()).rejects.toMatchObject({ name: 'StoreUnavailable' })
  separate.limitFileSize(null)
  await store.probe()
  expect(await store.task('b')).toBeNull()
  expect((await driver.task('a')).facts.partitions).toMatchObject({ ready: 49, leased: 1, done: 0 })
  expect(await driver.settle(leaseId)).toBeNull()
  expect(await driver.callBack('b', some(0, 50))).toMatchObject({ accepted: 50 })
  expect(await recount({ data })).toEqual([])
  await separate.close()
})
