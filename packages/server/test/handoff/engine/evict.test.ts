import { expect, test } from 'vitest'
import { Memory } from '../../../src/handoff/engine/state/memory.ts'
import { newPartition } from '../../../src/handoff/partition.ts'
import { aLane, aRow, aTask, leased, NOW, status, tally } from '../../disk/conformance/builders.ts'

const BOUNDS = { partitions: 100, keys: 100 }
const NOTHING = { tasks: [], lanes: [], partitions: [] }

/** The disk has rows up to entry 1. */
const empty = () => new Memory({ task: 1, lane: 1, partition: 1, event: 1 }, 1)

const finished = (id: number) => aTask(id, { state: 'done', finishedAt: NOW })

test('what is finished leaves memory when its last change is flushed, with its lane and task', () => {
  const memory = empty()
  const task = memory.addTask(finished(1))
  const lane = memory.addLane(aLane(1, 1, { partitions: tally({ done: 1 }) }), false)
  const partition = memory.addPartition({ ...aRow(1, 1), ...status({ state: 'done' }) })
  for (const row of [task, lane, partition]) row.changedIn = 2
  const changed = { tasks: [1], lanes: [1], partitions: [1] }
  memory.evict(changed, BOUNDS)
  expect([memory.tasks.size, memory.lanes.size, memory.partitions.size]).toEqual([1, 1, 1])
  memory.flushed(2, changed)
  // A transaction may use them until it ends.
  expect(memory.partitions.size).toBe(1)
  memory.evict(NOTHING, BOUNDS)
  expect([memory.tasks.size, memory.lanes.size, memory.partitions.size]).toEqual([0, 0, 0])
})

test('what a transaction only read leaves with it, unless it is open work', () => {
  const memory = empty()
  memory.addTask(aTask(1))
  memory.addLane(aLane(1, 1, { partitions: tally({ parked: 1 }) }), false)
  memory.addPartition({ ...aRow(1, 1), ...status({ state: 'parked' }) })
  memory.addLane(aLane(2, 1, { level: 1, partitions: tally({ leased: 1 }) }), false)
  memory.addPartition({ ...aRow(2, 2), ...leased({ dueAt: NOW }) })
  memory.evict({ tasks: [1], lanes: [1, 2], partitions: [1, 2] }, BOUNDS)
  expect([...memory.lanes.keys()]).toEqual([2])
  expect([...memory.partitions.keys()]).toEqual([2])
  // A stalled task costs its own row.
  expect(memory.tasks.size).toBe(1)
})

test('only so many waiting partitions are in memory, and those that are not on disk stay', () => {
  const memory = empty()
  memory.addTask(aTask(1))
  let id = 0
  for (let level = 1; level <= 20; level += 1) {
    const lane = memory.addLane(aLane(level, 1, { level, partitions: tally({ ready: 10 }) }), true)
    for (let at = 0; at < 10; at += 1) {
      id += 1
      const partition = memory.addPartition(newPartition(aRow(id, level)))
      if (level === 1) partition.changedIn = 2
      lane.buffers.fresh.add(partition)
    }
    memory.buffered(lane)
    memory.order.update(lane)
  }
  memory.evict(NOTHING, BOUNDS)
  expect(memory.partitions.size).toBeLessThanOrEqual(BOUNDS.partitions)
  expect(memory.lanes.get(1)?.buffers.fresh.items).toHaveLength(10)
  expect(memory.lanes.get(2)?.buffers.fresh.items).toHaveLength(0)
  expect(memory.lanes.get(2)?.buffers.fresh.isComplete).toBe(false)
  expect(memory.lanes.size).toBe(20)
})
