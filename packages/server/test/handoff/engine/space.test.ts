import { expect, test } from 'vitest'
import { batchedCallBack, batchedPull, some } from '../../store/conformance/driver.ts'
import { drivenEngine } from '../../store/driven-store.ts'
import { MemoryDatabase } from '../../support/memory-database.ts'
import { recountIn } from '../../support/recount.ts'

test('while the disk is nearly full call-backs are refused; pulling and settling continue', async () => {
  let isShort = false
  const database = new MemoryDatabase()
  const disk = { ...database.disk(), hasSpace: () => !isShort }
  const driver = await drivenEngine(disk)
  await driver.callBack('a', some(0, 2))
  isShort = true
  const { callBacks, pulls } = await driver.batch({
    callBacks: [batchedCallBack('b', some(0, 1)), batchedCallBack('a', some(0, 9))],
    pulls: [batchedPull()],
  })
  expect(callBacks).toEqual([{ kind: 'store_full' }, { kind: 'store_full' }])
  expect(await driver.settle(pulls[0]?.partitions[0]?.lease?.id ?? '')).toBeNull()
  isShort = false
  expect(await driver.callBack('a', some(0, 3))).toEqual({ kind: 'stored', accepted: 1, duplicates: 2 })
  expect(await recountIn(database)).toEqual([])
})
