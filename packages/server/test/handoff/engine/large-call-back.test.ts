import { expect, test } from 'vitest'
import { Batcher } from '../../../src/handoff/batcher.ts'
import type { Disk } from '../../../src/handoff/disk.ts'
import { batchedCallBack, batchedPull, one, some } from '../../store/conformance/driver.ts'
import { testPolicy } from '../../store/conformance/harness.ts'
import { drivenEngine } from '../../store/driven-store.ts'
import { MemoryDatabase } from '../../support/memory-database.ts'
import { recountIn } from '../../support/recount.ts'

/** A disk that holds back staged rows. */
function heldDisk() {
  const database = new MemoryDatabase()
  const disk = database.disk()
  const isStaging = Promise.withResolvers<void>()
  const mayStage = Promise.withResolvers<void>()
  return {
    ...disk,
    database,
    isStaging,
    mayStage,
    async stage(...given: Parameters<Disk['stage']>) {
      isStaging.resolve()
      await mayStage.promise
      return disk.stage(...given)
    },
  }
}

async function opened() {
  const disk = heldDisk()
  const driver = await drivenEngine(disk)
  const batcher = new Batcher(driver.store, { committed: () => undefined, failed: () => undefined })
  return { disk, driver, batcher }
}

const large = batchedCallBack('a', some(0, 2001))

test('during a large call-back, others of its task wait and requests for other tasks are answered', async () => {
  const { disk, batcher } = await opened()
  await batcher.ask({ callBack: batchedCallBack('b', some(0, 1)) })
  const first = batcher.ask({ callBack: large })
  await disk.isStaging.promise
  let isStored = false
  const second = batcher.ask({ callBack: batchedCallBack('a', [one(0, 2001)]) }).finally(() => {
    isStored = true
  })
  expect((await batcher.ask({ pull: batchedPull() })).pull?.partitions).toMatchObject([{ taskId: 'b' }])
  expect((await batcher.ask({ pull: batchedPull() })).pull?.partitions).toEqual([])
  expect(isStored).toBe(false)
  disk.mayStage.resolve()
  expect((await first).callBack).toMatchObject({ accepted: 2001 })
  expect((await second).callBack).toMatchObject({ accepted: 1 })
  expect(await recountIn(disk.database)).toEqual([])
})

test('a batch that the store received before a large call-back of its task runs before it', async () => {
  const { disk, driver } = await opened()
  const small = driver.batch({ callBacks: [batchedCallBack('a', [one(0, 0)])], pulls: [batchedPull()] })
  const first = driver.batch({ callBacks: [large] })
  expect(await small).toMatchObject({ callBacks: [{ accepted: 1 }], pulls: [{ partitions: [{ index: 0 }] }] })
  disk.mayStage.resolve()
  expect(await first).toMatchObject({ callBacks: [{ accepted: 2000, duplicates: 1 }] })
  expect(await recountIn(disk.database)).toEqual([])
})

test('a sweep that a failed large call-back overtakes ends leases of the memory that is read next', async () => {
  const disk = heldDisk()
  const isSweeping = Promise.withResolvers<void>()
  const maySweep = Promise.withResolvers<void>()
  let isHeld = false
  const dueBackoffs: Disk['dueBackoffs'] = async (...given) => {
    if (isHeld) {
      isSweeping.resolve()
      await maySweep.promise
    }
    return disk.dueBackoffs(...given)
  }
  const driver = await drivenEngine({ ...disk, dueBackoffs })
  await driver.callBack('b', some(0, 2))
  await driver.pull()
  const failed = expect(driver.batch({ callBacks: [large] })).rejects.toThrow('disk')
  await disk.isStaging.promise
  driver.clock.advance(testPolicy.leaseMillis)
  isHeld = true
  const swept = driver.sweep(10)
  await isSweeping.promise
  disk.mayStage.reject(new Error('disk'))
  await failed
  maySweep.resolve()
  expect(await swept).toMatchObject({ expired: 1 })
  await driver.callBack('b', some(2, 1))
  expect(await recountIn(disk.database)).toEqual([])
})
