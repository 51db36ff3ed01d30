import { expect, test, vi } from 'vitest'
import { Memory } from '../../../src/handoff/engine/state/memory.ts'
import { mayServe } from '../../../src/handoff/rules/task.ts'
import { aTask } from '../../disk/conformance/builders.ts'
import { nameOf, one } from '../../store/conformance/driver.ts'
import { storesOf } from '../../store/conformance/harness.ts'
import { memoryHarness } from '../../store/memory-harness.ts'

vi.mock(import('../../../src/handoff/rules/task.ts'), async (importOriginal) => {
  const original = await importOriginal()
  return { ...original, mayServe: vi.fn(original.mayServe) }
})

const open = storesOf(memoryHarness())

test('a pull that names tasks looks through the lanes of a task only when its lowest lane is empty', async () => {
  const [TASKS, LEVELS, BATCH] = [20, 100, 200]
  const driver = await open()
  const tasks = Array.from({ length: TASKS }, (_, at) => `t${at}`)
  const levels = Array.from({ length: LEVELS }, (_, level) => one(level, 0))
  for (const taskId of tasks) await driver.callBack(taskId, levels)
  vi.mocked(mayServe).mockClear()
  const { partitions } = await driver.pull({ tasks, batch: BATCH })
  // The levels in order, and on each level all tasks.
  expect(partitions.map(({ level }) => level)).toEqual(
    Array.from({ length: BATCH }, (_, at) => Math.floor(at / TASKS)),
  )
  expect(new Set(partitions.map(nameOf)).size).toBe(BATCH)
  // Each task once, one task for each lane that is empty, and the lowest lane of each task per partition.
  const most = TASKS * LEVELS + BATCH * LEVELS + BATCH * TASKS
  expect(vi.mocked(mayServe).mock.calls.length).toBeLessThanOrEqual(most)
})

test('of pulls with names that nobody has, memory keeps nothing but a bounded number of filters', () => {
  const memory = new Memory({ task: 1, lane: 1, partition: 1, event: 1 }, 0)
  const { filterOrders, order } = memory
  expect(filterOrders.haveWork({ tables: ['a.none'], tasks: null })).toBe(false)
  expect(filterOrders.haveWork({ tables: null, tasks: ['none'] })).toBe(false)
  order.tables.use('a.known', memory.addTask(aTask(1)))
  const used = Array.from({ length: 500 }, (_, pull) => {
    const others = Array.from({ length: 49 }, (_, at) => `a.${pull}-${at}-`.padEnd(500, 'x'))
    const names = { tables: ['a.known', ...others], tasks: null }
    expect(filterOrders.haveWork(names)).toBe(true)
    const filterOrder = filterOrders.of(names)
    expect(filterOrder.next()).toBeUndefined()
    filterOrders.used(filterOrder)
    expect(others.filter((name) => order.tables.get(name) !== undefined)).toEqual([])
    return { names, filterOrder }
  })
  const kept = used.filter(({ names, filterOrder }) => filterOrders.of(names) === filterOrder)
  expect(kept.length).toBeLessThan(400)
  expect(kept.at(-1)).toBe(used.at(-1))
})
