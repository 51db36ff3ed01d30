import { afterEach, beforeEach, expect, test } from 'vitest'
import { readBacklog } from '../../src/handoff/counts/store-readings.ts'
import type { Store } from '../../src/handoff/store.ts'
import { batchedCallBack, some } from '../store/conformance/driver.ts'
import { type StoreUnderTest, TestClock, testPolicy } from '../store/conformance/harness.ts'
import { memoryHarness } from '../store/memory-harness.ts'

let under: StoreUnderTest
let asked: { state: string | null; limit: number }[]
let store: Pick<Store, 'tasks'>

beforeEach(async () => {
  under = await memoryHarness().open({ policy: testPolicy, clock: new TestClock() })
  asked = []
  store = {
    tasks: (query) => {
      asked.push({ state: query.state, limit: query.limit })
      return under.store.tasks(query)
    },
  }
})
afterEach(() => under.dispose())

async function callBack(taskId: string, count: number): Promise<void> {
  const callBacks = [batchedCallBack(taskId, some(0, count))]
  await under.store.runBatch({ settles: [], renews: [], undos: [], callBacks, pulls: [] })
}

test('an empty store has no backlog', async () => {
  const nothing = { total: 0, ready: 0, held: 0, leased: 0, delayed: 0, parked: 0, done: 0, cancelled: 0 }
  expect(await readBacklog(store)).toEqual({
    tasks: { open: 0, paused: 0, stalled: 0 },
    tasksWithParked: 0,
    partitions: nothing,
    records: nothing,
    demands: [],
    tasksWithOtherTables: 0,
    isComplete: true,
  })
})

test('tasks are summed page by page', async () => {
  for (const [taskId, count] of Object.entries({ a: 1, b: 2, c: 3, d: 4, e: 5 }))
    await callBack(taskId, count)
  await under.store.control({ verb: 'pause', taskId: 'b' })
  const { tasks, partitions, records, isComplete } = await readBacklog(store, { perPage: 2 })
  expect(tasks).toEqual({ open: 4, paused: 1, stalled: 0 })
  expect([partitions.ready, partitions.held]).toEqual([13, 2])
  expect([records.ready, records.held]).toEqual([1300, 200])
  expect(isComplete).toBe(true)
  expect(asked.map(({ state }) => state)).toEqual(['open', 'open', 'stalled', 'paused'])
})

test('at most the maximum of tasks is read, and the result says so', async () => {
  for (const [taskId, count] of Object.entries({ a: 1, b: 2, c: 3, d: 4, e: 5 }))
    await callBack(taskId, count)
  const { tasks, partitions, isComplete } = await readBacklog(store, { most: 3, perPage: 2 })
  expect(tasks.open).toBe(3)
  expect(partitions.ready).toBe(12)
  expect(isComplete).toBe(false)
  expect(asked.filter(({ state }) => state === 'open').map(({ limit }) => limit)).toEqual([2, 1, 1])
})

test('a number of tasks equal to the maximum is complete, and open tasks are read before paused ones', async () => {
  for (const taskId of ['a', 'b', 'c', 'd']) await callBack(taskId, 1)
  for (const taskId of ['b', 'c', 'd']) await under.store.control({ verb: 'pause', taskId })
  expect((await readBacklog(store, { most: 4, perPage: 2 })).isComplete).toBe(true)
  const { tasks, isComplete } = await readBacklog(store, { most: 2, perPage: 2 })
  expect(tasks).toEqual({ open: 1, stalled: 0, paused: 1 })
  expect(isComplete).toBe(false)
})

test('tasks without the named tables count as read', async () => {
  for (const taskId of ['a', 'b', 'c', 'd', 'e']) await callBack(taskId, 1)
  const filter = { tables: ['no.such'] }
  const some = await readBacklog(store, { most: 3, perPage: 2, filter })
  expect(some).toMatchObject({ tasks: { open: 0 }, isComplete: false })
  expect(asked.map(({ limit }) => limit)).toEqual([2, 1, 1])
  expect(await readBacklog(store, { most: 5, perPage: 2, filter })).toMatchObject({ isComplete: true })
})

test('a large task takes no more reads than a small one', async () => {
  await callBack('small', 1)
  await readBacklog(store)
  const before = asked.length
  await callBack('large', 1500)
  expect((await readBacklog(store)).partitions.ready).toBe(1501)
  expect(asked.length - before).toBe(before)
})
