import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { testFolder } from '../../../../test/support/test-folder.ts'
import type { HandOffBatch, Store } from '../../src/handoff/store.ts'
import { asUnavailable } from '../../src/store/sqlite/failures.ts'
import { DataFolder } from '../../src/store/sqlite/folder.ts'
import { Session } from '../../src/store/sqlite/session.ts'
import { callBackOrder, Driver, leaseOf, nameOf, pullOrder, settlement, some } from './conformance/driver.ts'
import { TestClock, testPolicy } from './conformance/harness.ts'
import { SeparateStore } from './support/separate-store.ts'

let folder: string

beforeEach(async () => {
  folder = await testFolder()
})

const unavailable = { name: 'StoreUnavailable', message: expect.stringContaining('nothing of this request') }

describe('a disk that takes no more', () => {
  let separate: SeparateStore
  let driver: Driver

  beforeEach(async () => {
    separate = await SeparateStore.open(folder)
    driver = new Driver({ ...none, store: separate.store }, new TestClock())
  })

  afterEach(() => separate.close())

  test('everything is refused as unavailable, and all of it works again when there is room', async () => {
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
    expect(await driver.store.audit()).toEqual([])
  })

  test('wherever within a transaction it strikes, nothing is half done', async () => {
    const accepted: string[] = []
    for (let attempt = 0; attempt < 12; attempt += 1) {
      // The log is restarted from its beginning at times, so that each limit strikes at another page.
      separate.limitFileSize(40_000 + attempt * 24_000)
      const name = `task-${attempt}`
      const stored = await driver.callBack(name, some(0, 400)).catch((error: unknown) => error)
      separate.limitFileSize(null)
      if (stored instanceof Error) {
        expect(stored).toMatchObject(unavailable)
        expect(await driver.store.task(name)).toBeNull()
      } else accepted.push(name)
      expect(await driver.store.audit()).toEqual([])
    }
    for (const name of accepted) expect(await driver.partitions(name)).toHaveLength(400)
    const handed = await driver.pullAll(1000)
    expect(new Set(handed.map(nameOf)).size).toBe(handed.length)
    expect(handed).toHaveLength(accepted.length * 400)
  })
})

const none = { reopen: async () => {}, dispose: async () => {} }

/** The session alone: where the room is said to be gone, or the file may not grow. */
describe('a disk that is nearly full', () => {
  const open = (hasRoom: () => boolean) => {
    const data = new DataFolder(folder)
    data.lock()
    const db = data.open()
    const { verbs } = new Session(db, testPolicy, hasRoom)
    const at = Date.now()
    const handOff = (batch: Partial<HandOffBatch>) =>
      verbs.handOff({ settles: [], renews: [], undos: [], callBacks: [], pulls: [], ...batch }, at)
    const close = () => {
      db.close()
      data.unlock()
    }
    return {
      db,
      handOff,
      close,
      audit: () => verbs.audit(undefined as never, at) as Awaited<ReturnType<Store['audit']>>,
    }
  }

  test('call-backs are refused early; pulling and settling go on', () => {
    let hasRoom = true
    const { handOff, audit, close } = open(() => hasRoom)
    handOff({ callBacks: [callBackOrder('a', some(0, 2))] })
    hasRoom = false
    const { callBacks, pulls } = handOff({
      callBacks: [callBackOrder('b', some(0, 1)), callBackOrder('a', some(0, 9))],
      pulls: [pullOrder()],
    })
    expect(callBacks).toEqual([{ kind: 'store_full' }, { kind: 'store_full' }])
    const lease = leaseOf(pulls[0]?.partitions[0]?.lease?.id ?? '')
    const settlements = [{ lease, order: settlement() }]
    expect(handOff({ settles: [{ instance: null, settlements }] }).settles).toEqual([[null]])
    hasRoom = true
    expect(handOff({ callBacks: [callBackOrder('a', some(0, 3))] }).callBacks).toEqual([
      { kind: 'stored', accepted: 1, duplicates: 2 },
    ])
    expect(audit()).toEqual([])
    close()
  })

  test('what SQLite calls full is told apart from a disk that fails', () => {
    const { db, handOff, audit, close } = open(() => true)
    const { page_count: pages } = db.prepare('PRAGMA page_count').get() as { page_count: number }
    db.exec(`PRAGMA max_page_count = ${pages + 2}`)
    let thrown: unknown
    try {
      handOff({ callBacks: [callBackOrder('a', some(0, 5000))] })
    } catch (error) {
      thrown = error
    }
    expect(asUnavailable(thrown)).toMatchObject({ code: 'store_full' })
    expect(audit()).toEqual([])
    db.exec('PRAGMA max_page_count = 1000000')
    expect(handOff({ callBacks: [callBackOrder('a', some(0, 5000))] }).callBacks).toMatchObject([
      { accepted: 5000 },
    ])
    expect(audit()).toEqual([])
    close()
  })
})
