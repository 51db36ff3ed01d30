import { expect, test } from 'vitest'
import { type Disk, KnownKeys } from '../../../src/handoff/disk.ts'
import { StoreUnavailable } from '../../../src/handoff/store.ts'
import { batchedCallBack, batchedPull, some } from '../../store/conformance/driver.ts'
import { drivenEngine } from '../../store/driven-store.ts'
import { MemoryDatabase } from '../../support/memory-database.ts'
import { recountIn } from '../../support/recount.ts'

/** A disk whose connection breaks right after it has reported a known key. */
function breakingDisk(database: MemoryDatabase) {
  const disk = database.disk()
  let isBroken = false
  return {
    ...disk,
    breaks: false as boolean,
    append(entry) {
      return disk.append(entry).catch((error: unknown) => {
        isBroken = this.breaks && error instanceof KnownKeys
        throw error
      })
    },
    async keys(names) {
      if (!isBroken) return disk.keys(names)
      isBroken = false
      throw new StoreUnavailable('store_unavailable', 'the connection ended')
    },
  } satisfies Disk & { breaks: boolean }
}

const opened = (disk: Disk) => drivenEngine(disk, { limits: { largeCallBack: 500 } })

test('a batch with a known key that cannot run again leaves nothing behind in memory', async () => {
  const database = new MemoryDatabase()
  const first = await opened(database.disk())
  await first.callBack('a', some(0, 10))
  const { partitions } = await first.pull({ batch: 3, key: 'k' })

  const disk = breakingDisk(database)
  const driver = await opened(disk)
  disk.breaks = true
  const pulls = [batchedPull({ key: 'k' })]
  await expect(driver.settleAll(partitions, { outcome: 'released' }, { pulls })).rejects.toThrow(
    'the connection ended',
  )

  // The next entry must not make durable what was never appended.
  disk.breaks = false
  expect(await driver.callBack('a', some(0, 12))).toEqual({ kind: 'stored', accepted: 2, duplicates: 10 })
  expect(await recountIn(database)).toEqual([])
  expect((await driver.task('a')).facts.partitions).toMatchObject({ ready: 9, leased: 3 })
})

/** A disk that holds back staged rows, and reads of keys. */
function heldDisk(database: MemoryDatabase) {
  const disk = database.disk()
  const held = {
    opened: 0,
    holds: false,
    staging: Promise.withResolvers<void>(),
    reading: Promise.withResolvers<void>(),
    isStaging: Promise.withResolvers<void>(),
    isReading: Promise.withResolvers<void>(),
  }
  const holding: Disk = {
    ...disk,
    open() {
      held.opened += 1
      return disk.open()
    },
    stage() {
      held.isStaging.resolve()
      return held.staging.promise
    },
    async keys(names) {
      if (held.holds) {
        held.isReading.resolve()
        await held.reading.promise
      }
      return disk.keys(names)
    },
  }
  return { held, disk: holding }
}

test('a batch with a known key is answered although a large call-back fails in the meantime', async () => {
  const database = new MemoryDatabase()
  const first = await opened(database.disk())
  await first.callBack('a', some(0, 10))
  await first.pull({ key: 'k' })

  const { held, disk } = heldDisk(database)
  const driver = await opened(disk)
  const large = driver.callBack('b', some(0, 600))
  await held.isStaging.promise
  held.holds = true
  const pull = driver.pull({ key: 'k' })
  await held.isReading.promise
  held.staging.reject(new StoreUnavailable('store_unavailable', 'the connection ended'))
  await expect(large).rejects.toThrow('the connection ended')
  held.reading.resolve()
  expect((await pull).repeated).toBe(true)
  await driver.store.task('')
  expect(await recountIn(database)).toEqual([])
  expect(held.opened).toBe(2)
})

test('a node that takes over again while it runs a batch with a known key issues new ids', async () => {
  const database = new MemoryDatabase()
  const { held, disk } = heldDisk(database)
  const isAppending = Promise.withResolvers<void>()
  const mayAppend = Promise.withResolvers<void>()
  const append: Disk['append'] = async (entry) => {
    if (held.holds) {
      held.holds = false
      isAppending.resolve()
      await mayAppend.promise
    }
    return disk.append(entry)
  }
  const driver = await opened({ ...disk, append })
  const large = driver.callBack('b', some(0, 600))
  await held.isStaging.promise

  const other = await opened(database.disk())
  await other.callBack('a', some(0, 10))
  await other.pull({ key: 'k' })
  await other.store.task('')

  held.holds = true
  const callBacks = [batchedCallBack('c', some(0, 3))]
  const batch = driver.batch({ callBacks, pulls: [batchedPull({ key: 'k' })] })
  await isAppending.promise
  held.staging.reject(new StoreUnavailable('store_unavailable', 'the connection ended'))
  await expect(large).rejects.toThrow('the connection ended')
  mayAppend.resolve()
  expect(await batch).toMatchObject({ callBacks: [{ accepted: 3 }], pulls: [{ repeated: true }] })
  expect(await recountIn(database)).toEqual([])
})
