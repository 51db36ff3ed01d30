import { expect, test } from 'vitest'
import { Memory } from '../../../src/handoff/engine/state/memory.ts'
import { aLane, aTask } from '../../disk/conformance/builders.ts'

const BOUNDS = { partitions: 1000, lanes: 8, keys: 1000 }
const LANES = 100

/**
 * Lanes that changed in entry 2, while the disk has rows up to entry 1. Counts how often a lane is visited.
 */
function setUp() {
  const memory = new Memory({ task: 2, lane: LANES + 1, partition: 1, event: 1 }, 1)
  memory.addTask(aTask(1))
  for (let id = 1; id <= LANES; id += 1)
    memory.addLane(aLane(id, 1, { level: id, turn: null }), true).changedIn = 2
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
