import { expect, test } from 'vitest'
import { openEngine } from '../../../src/handoff/engine/engine-store.ts'
import { Memory } from '../../../src/handoff/engine/state/memory.ts'
import { aLane, aTask } from '../../disk/conformance/builders.ts'
import { Driver, some } from '../../store/conformance/driver.ts'
import { TestClock, testPolicy } from '../../store/conformance/harness.ts'
import { MemoryDatabase } from '../../support/memory-database.ts'

const BOUNDS = { partitions: 1000, lanes: 8, keys: 1000 }
const LANES = 100

/**
 * Lanes that changed in entry 2, while the disk has rows up to entry 1. Counts how often a lane is visited.
 */
function setUp(turn: bigint | null = null) {
  const memory = new Memory({ task: 2, lane: LANES + 1, partition: 1, event: 1 }, 1)
  memory.addTask(aTask(1))
  for (let id = 1; id <= LANES; id += 1) memory.addLane(aLane(id, 1, { level: id, turn }), true).changedIn = 2
  const { isClean } = memory
  let looks = 0
  memory.isClean = (row) => {
    looks += 1
    return isClean(row)
  }
  return { memory, looks: () => looks }
}

test('unflushed lanes are visited once, and again after the flush', () => {
  const { memory, looks } = setUp()
  memory.evict(BOUNDS)
  expect(memory.lanes.size).toBe(LANES)
  const once = looks()
  for (let at = 0; at < 10; at += 1) memory.evict(BOUNDS)
  expect(looks()).toBe(once)
  memory.flushed(2, [])
  while (memory.lanes.size > BOUNDS.lanes) {
    const before = memory.lanes.size
    memory.evict(BOUNDS)
    expect(memory.lanes.size).toBeLessThan(before)
    // A little at a time.
    expect(before - memory.lanes.size).toBeLessThanOrEqual(BOUNDS.lanes / 4)
  }
})

test('a lane that was never in the order stays out of it, because it may be behind the virtual time', () => {
  const { memory } = setUp(1n)
  memory.evict(BOUNDS)
  expect(memory.order.size).toBe(0)
})

test('lanes that fell behind while they were closed are all served after a restart', async () => {
  const database = new MemoryDatabase()
  const clock = new TestClock()
  const start = async () => {
    const store = await openEngine({
      disk: database.disk(),
      policy: testPolicy,
      clock: clock.now,
      random: () => 0,
      secret: () => 'A'.repeat(16),
      limits: { lanes: 4 },
    })
    return new Driver({ store, reopen: async () => {}, dispose: async () => {} }, clock)
  }
  const tasks = Array.from({ length: 20 }, (_, at) => `t${at}`)
  const first = await start()
  for (const taskId of tasks) {
    await first.callBack(taskId, some(0, 2))
    await first.store.control({ verb: 'pause', taskId })
  }
  await first.callBack('ahead', some(0, 5))
  expect(await first.pullAll()).toHaveLength(5)
  const second = await start()
  // A lane is evicted at a time, so that most lanes do not catch up when their task is resumed.
  for (const _ of tasks) expect((await second.pull()).partitions).toEqual([])
  for (const taskId of tasks) await second.store.control({ verb: 'resume', taskId })
  const third = await start()
  for (const _ of tasks) await third.store.control({ verb: 'resume', taskId: 'unknown' })
  expect(await third.pullAll(1)).toHaveLength(2 * tasks.length)
})
