import { expect, test } from 'vitest'
import type { Disk, Lanes } from '../../../src/handoff/disk.ts'
import { some } from '../../store/conformance/driver.ts'
import { DAY } from '../../store/conformance/harness.ts'
import { drivenEngine } from '../../store/driven-store.ts'
import { MemoryDatabase } from '../../support/memory-database.ts'
import { recountIn } from '../../support/recount.ts'

function countingDisk() {
  const database = new MemoryDatabase()
  const disk = database.disk()
  const counted = {
    calls: 0,
    /** The highest level that was read. */
    highest: 0,
    pieces: [] as number[],
    /** The number of lanes of each flush. */
    flushed: [] as number[],
  }
  /** Counts a read, and the levels of its lanes. */
  const counting =
    <Given extends unknown[], Read>(read: (...given: Given) => Promise<Read>) =>
    async (...given: Given): Promise<Read> => {
      counted.calls += 1
      const found = await read(...given)
      for (const { level } of (found as Partial<Lanes>).lanes ?? [])
        counted.highest = Math.max(counted.highest, level)
      return found
    }
  const countingDisk: Disk = {
    ...disk,
    tasksNamed: counting(disk.tasksNamed),
    tasksById: counting(disk.tasksById),
    lanesById: counting(disk.lanesById),
    lanesOf: counting(disk.lanesOf),
    lanesFrom: counting(disk.lanesFrom),
    partitionsById: counting(disk.partitionsById),
    rows: counting(disk.rows),
    known: counting(disk.known),
    stage(...given) {
      counted.pieces.push(given[0].length)
      return disk.stage(...given)
    },
    flush(rowChanges, upTo) {
      counted.flushed.push(rowChanges.lanes.size)
      return disk.flush(rowChanges, upTo)
    },
  }
  return { counted, database, disk: countingDisk }
}

const LEVELS = 1000
const PIECE = 250
const FLUSH_PIECE = 400

async function setUp() {
  const { counted, database, disk } = countingDisk()
  const limits = { largeCallBack: 100, piece: PIECE, flushPiece: FLUSH_PIECE }
  const driver = await drivenEngine(disk, { limits })
  const { store, clock } = driver
  const array = Array.from({ length: LEVELS }, (_, level) => some(level, 1)).flat()
  await driver.callBack('wide', array)
  await store.task('')
  counted.calls = 0
  return { counted, database, disk, clock, store, driver, array }
}

test('a large array with many levels is written in pieces of many levels', async () => {
  const { counted, database } = await setUp()
  expect(counted.pieces).toEqual([PIECE, PIECE, PIECE, PIECE])
  expect(await recountIn(database)).toEqual([])
})

test('the lanes of a large array are flushed in pieces', async () => {
  const { counted } = await setUp()
  expect(Math.max(...counted.flushed)).toBeLessThanOrEqual(FLUSH_PIECE / 4 + 1)
  expect(counted.flushed.reduce((sum, lanes) => sum + lanes, 0)).toBeGreaterThanOrEqual(LEVELS)
})

test('parked or done partitions on many levels are retried with a bounded number of reads', async () => {
  const { counted, database, store, driver } = await setUp()
  const settleAll = async (outcome: 'failed' | 'done') => {
    const handed = await driver.pullAll(LEVELS)
    expect(handed).toHaveLength(LEVELS)
    await driver.settleAll(handed, { outcome, final: outcome === 'failed' })
  }
  const retry = { verb: 'retry', taskId: 'wide', level: null, partitions: null } as const
  await settleAll('failed')
  await store.task('')
  counted.calls = 0
  let [steps, changed] = [0, 0]
  for (let more = true; more; steps += 1) {
    const result = await store.control({ ...retry, done: false })
    if (result.kind !== 'applied') throw new Error(result.kind)
    changed += result.changed
    more = result.more
  }
  expect(changed).toBe(LEVELS)
  expect(counted.calls).toBeLessThan(steps * 10)
  await settleAll('done')
  await store.task('')
  counted.calls = 0
  counted.highest = 0
  expect(await store.control({ ...retry, done: true })).toMatchObject({ changed: LEVELS })
  // The first step does not reach the last levels, and they are counted without being read.
  expect(counted.highest).toBeLessThan(LEVELS - 1)
  for (steps = 1; (await driver.maintain(10_000 * DAY)).more; ) steps += 1
  expect(counted.calls).toBeLessThan(steps * 10)
  await settleAll('done')
  expect(await recountIn(database)).toEqual([])
})

test('a repeat of an array with many levels takes a bounded number of reads', async () => {
  const { counted, driver, array } = await setUp()
  expect(await driver.callBack('wide', array)).toEqual({ kind: 'stored', accepted: 0, duplicates: LEVELS })
  expect(counted.calls).toBeLessThan(10)
})

test('a task with many levels is purged with a bounded number of reads', async () => {
  const { counted, database, disk, clock, store, driver } = await setUp()
  await store.control({ verb: 'cancel', taskId: 'wide' })
  clock.advance(60_000)
  let steps = 0
  while ((await driver.maintain(1000)).more) steps += 1
  expect(steps).toBeGreaterThan(1)
  expect(counted.calls).toBeLessThan(steps * 10)
  expect((await disk.taskDetail('wide'))?.lanes.every(({ lane }) => lane.purged === 1)).toBe(true)
  expect(await recountIn(database)).toEqual([])
})

test('what is read for tasks that take turns is handed out before it leaves memory', async () => {
  const disk = new MemoryDatabase().disk()
  let rowsRead = 0
  const counting: Disk = {
    ...disk,
    async waiting(queries) {
      const found = await disk.waiting(queries)
      rowsRead += found.flat().length
      return found
    },
  }
  const driver = await drivenEngine(counting, { limits: { partitions: 200 } })
  const [tasks, each] = [50, 20]
  for (let task = 0; task < tasks; task++) await driver.callBack(`t${task}`, some(0, each))
  await driver.store.task('')
  expect(await driver.pullAll(10)).toHaveLength(tasks * each)
  expect(rowsRead).toBeLessThanOrEqual(2 * tasks * each)
})
