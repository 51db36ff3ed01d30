import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { testFolder } from '../../../../test/support/test-folder.ts'
import { Driver, nameOf, some } from './conformance/driver.ts'
import { TestClock } from './conformance/harness.ts'
import { SeparateStore } from './support/separate-store.ts'

let folder: string

beforeEach(async () => {
  folder = await testFolder()
})

const unavailable = { name: 'StoreUnavailable', message: expect.stringContaining('nothing of this request') }

describe('a full disk', () => {
  let separate: SeparateStore
  let driver: Driver

  beforeEach(async () => {
    separate = await SeparateStore.open(folder)
    driver = new Driver({ ...none, store: separate.store }, new TestClock())
  })

  afterEach(() => separate.close())

  test('everything is refused as unavailable, and everything works again when there is space', async () => {
    await driver.callBack('a', some(0, 50))
    const { leaseId } = await driver.pullOne()
    separate.limitFileSize(4096)
    await expect(driver.callBack('b', some(0, 50))).rejects.toMatchObject(unavailable)
    await expect(driver.pull({ batch: 5 })).rejects.toMatchObject(unavailable)
    await expect(driver.settle(leaseId)).rejects.toMatchObject(unavailable)
    await expect(separate.store.probe()).rejects.toMatchObject({ name: 'StoreUnavailable' })
    separate.limitFileSize(null)
    await separate.store.probe()
    expect(await separate.store.task('b')).toBeNull()
    expect((await driver.task('a')).facts.partitions).toMatchObject({ ready: 49, leased: 1, done: 0 })
    expect(await driver.settle(leaseId)).toBeNull()
    expect(await driver.callBack('b', some(0, 50))).toMatchObject({ accepted: 50 })
    expect(await driver.store.recount()).toEqual([])
  })

  test('wherever within a transaction it fails, nothing is half done', async () => {
    const accepted: string[] = []
    for (let attempt = 0; attempt < 12; attempt += 1) {
      // The WAL is restarted from its beginning at times, so that each limit is reached at another page.
      separate.limitFileSize(40_000 + attempt * 24_000)
      const name = `task-${attempt}`
      const stored = await driver.callBack(name, some(0, 400)).catch((error: unknown) => error)
      separate.limitFileSize(null)
      if (stored instanceof Error) {
        expect(stored).toMatchObject(unavailable)
        expect(await driver.store.task(name)).toBeNull()
      } else accepted.push(name)
      expect(await driver.store.recount()).toEqual([])
    }
    for (const name of accepted) expect(await driver.partitions(name)).toHaveLength(400)
    const handed = await driver.pullAll(1000)
    expect(new Set(handed.map(nameOf)).size).toBe(handed.length)
    expect(handed).toHaveLength(accepted.length * 400)
  })
})

const none = { reopen: async () => {}, dispose: async () => {} }
