import { expect, test } from 'vitest'
import { MemoryDisk } from '../../../src/disk/memory/memory-disk.ts'
import { MemoryMedium } from '../../../src/disk/memory/memory-medium.ts'
import type { IndexesOfLane, Needs } from '../../../src/handoff/disk.ts'
import { openEngine } from '../../../src/handoff/engine/engine-store.ts'
import type { PartitionDescriptor } from '../../../src/handoff/stored.ts'
import { Driver, some } from '../../store/conformance/driver.ts'
import { TestClock, testPolicy } from '../../store/conformance/harness.ts'

class CountingDisk extends MemoryDisk {
  calls = 0
  readonly pieces: number[] = []

  override load(needs: Needs) {
    this.calls += 1
    return super.load(needs)
  }

  override stage(rows: readonly PartitionDescriptor[]) {
    this.pieces.push(rows.length)
    return super.stage(rows)
  }

  override known(asked: readonly IndexesOfLane[]) {
    this.calls += 1
    return super.known(asked)
  }
}

const LEVELS = 1000
const PIECE = 250

async function setUp() {
  const disk = new CountingDisk(new MemoryMedium())
  const clock = new TestClock()
  const store = await openEngine({
    disk,
    policy: testPolicy,
    clock: clock.now,
    random: () => 0,
    secret: () => 'A'.repeat(16),
    // Lanes are read from the disk, as they are after a restart.
    limits: { lanes: 10, largeCallBack: 100, piece: PIECE },
  })
  const driver = new Driver({ store, reopen: async () => {}, dispose: async () => {} }, clock)
  const array = Array.from({ length: LEVELS }, (_, level) => some(level, 1)).flat()
  await driver.callBack('wide', array)
  await store.audit()
  disk.calls = 0
  return { disk, clock, store, driver, array }
}

test('a large array with many levels is written in pieces of many levels', async () => {
  const { disk, store } = await setUp()
  expect(disk.pieces).toEqual([PIECE, PIECE, PIECE, PIECE])
  expect(await store.audit()).toEqual([])
})

test('a repeat of an array with many levels takes a bounded number of reads', async () => {
  const { disk, driver, array } = await setUp()
  expect(await driver.callBack('wide', array)).toEqual({ kind: 'stored', accepted: 0, duplicates: LEVELS })
  expect(disk.calls).toBeLessThan(10)
})

test('a task with many levels is purged with a bounded number of reads', async () => {
  const { disk, clock, store } = await setUp()
  await store.control({ verb: 'cancel', taskId: 'wide' })
  clock.advance(60_000)
  const order = { retentionMillis: 1000, forgetInstancesMillis: 1e9, forgetEndedNodesMillis: 1e9 }
  let steps = 0
  while ((await store.maintain(order)).more) steps += 1
  expect(steps).toBeGreaterThan(1)
  expect(disk.calls).toBeLessThan(steps * 10)
  expect((await disk.taskDetail('wide'))?.lanes.every(({ lane }) => lane.purged === 1)).toBe(true)
  expect(await store.audit()).toEqual([])
})
