import { expect, test } from 'vitest'
import { Memory } from '../../../src/handoff/engine/state/memory.ts'
import { aLane, aRow, aTask, status } from '../../disk/conformance/builders.ts'

const BOUNDS = { partitions: 1000, lanes: 64, keys: 100 }

/** A cache with finished tasks of one partition each, all of them flushed. */
function memoryWith(tasks: number): Memory {
  const memory = new Memory({ task: 1, lane: 1, partition: 1, event: 1 }, 0)
  for (let id = 1; id <= tasks; id += 1) add(memory, id)
  return memory
}

function add(memory: Memory, id: number): void {
  memory.addTask(aTask(id, { taskId: `t${id}` }))
  memory.addLane(aLane(id, id, { cursor: id, tail: id }), true)
  memory.addPartition({ ...aRow(id, id), ...status({ state: 'done' }) })
}

test('finished partitions within their limit do not keep lanes and tasks beyond theirs', () => {
  const memory = memoryWith(BOUNDS.lanes + 1)
  memory.evict(BOUNDS)
  expect(memory.lanes.size).toBeLessThanOrEqual(BOUNDS.lanes)
  expect(memory.tasks.size).toBeLessThanOrEqual(BOUNDS.lanes)
})

test('lanes that cannot be evicted are not visited again in each transaction', () => {
  const memory = memoryWith(BOUNDS.lanes)
  let looks = 0
  memory.isClean = () => {
    looks += 1
    return false
  }
  const transactions = 4 * BOUNDS.lanes
  for (let at = 1; at <= transactions; at += 1) {
    add(memory, BOUNDS.lanes + at)
    memory.evict(BOUNDS)
  }
  // Each pass visits all lanes, so a pass in each transaction would be hundreds of visits per lane.
  expect(looks / transactions).toBeLessThan(150)
})
