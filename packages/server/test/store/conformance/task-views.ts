import { describe, expect, test } from 'vitest'
import type { TaskQuery } from '../../../src/handoff/views/queries.ts'
import { progressView } from '../../../src/handoff/views/view-state.ts'
import { type Driver, one, some } from './driver.ts'
import { MINUTE, type StoreHarness, storesOf } from './harness.ts'

/** The names of tasks, read page by page. */
async function list(store: Driver, query: Partial<TaskQuery>): Promise<string[]> {
  const names: string[] = []
  let before: number | null = null
  do {
    const every = { state: null, parked: false, search: null, limit: 2 }
    const page = await store.store.tasks({ ...every, ...query, before })
    names.push(...page.tasks.map(({ facts }) => facts.taskId))
    before = page.next
  } while (before !== null)
  return names
}

export function taskViewsTopic(harness: StoreHarness): void {
  describe('task views', () => {
    const open = storesOf(harness)

    test('a task shows partitions and records by state, in total and per level', async () => {
      const store = await open()
      await store.callBack('a', [...some(0, 3, { recordCount: 10 }), ...some(1, 2, { recordCount: 7 })])
      await store.settle((await store.pullOne()).leaseId)
      await store.settle((await store.pullOne()).leaseId, { outcome: 'failed' })
      await store.pullOne()
      const record = await store.task('a')
      const none = { ready: 0, held: 0, leased: 0, delayed: 0, parked: 0, done: 0, cancelled: 0 }
      expect(record.lanes).toMatchObject([
        {
          level: 0,
          partitions: { ...none, done: 1, delayed: 1, leased: 1 },
          records: { ...none, done: 10, delayed: 10, leased: 10 },
        },
        { level: 1, partitions: { ...none, ready: 2 }, records: { ...none, ready: 14 } },
      ])
      const shown = progressView(record)
      expect(shown.partitions).toEqual({ ...none, total: 5, done: 1, delayed: 1, leased: 1, ready: 2 })
      expect(shown.records).toEqual({ ...none, total: 44, done: 10, delayed: 10, leased: 10, ready: 14 })
    })

    test('a task shows its compute tables and its first and last call-back', async () => {
      const store = await open()
      const start = store.clock.now()
      await store.callBack('a', [
        one(0, 0, { computeTableName: 'x.one' }),
        one(0, 1, { computeTableName: 'x.two' }),
      ])
      store.clock.advance(MINUTE)
      await store.callBack('a', [one(0, 2, { computeTableName: 'x.one' })])
      const { facts, computeTables } = await store.task('a')
      expect([...computeTables].toSorted()).toEqual(['x.one', 'x.two'])
      expect(facts).toMatchObject({ firstCallBackAt: start, lastCallBackAt: start + MINUTE })
    })

    test('tasks are found by id and by table', async () => {
      const store = await open()
      const of = (...names: string[]) => names.map((name, at) => one(0, at, { computeTableName: name }))
      await store.callBack('a', of('x.one'))
      await store.callBack('b', of('x.one', 'x.two'))
      await store.callBack('c', of('x.two'))
      await store.callBack('a2', of('x.one'))
      await store.store.control({ verb: 'pause', taskId: 'a2' })
      expect(await list(store, { tasks: ['a', 'c', 'nobody'] })).toEqual(['c', 'a'])
      expect(await list(store, { tasks: ['a', 'a2'], state: 'open' })).toEqual(['a'])
      expect(await list(store, { tables: ['x.one'] })).toEqual(['a2', 'b', 'a'])
      expect(await list(store, { tables: ['x.one'], limit: 1 })).toEqual(['a2', 'b', 'a'])
      expect(await list(store, { tables: ['x.two', 'x.three'], tasks: ['a', 'c'] })).toEqual(['c'])
      expect(await list(store, { tables: ['x'] })).toEqual([])
      const query = { state: null, parked: false, search: null, limit: 9, before: null }
      // A page reads as many tasks as it may contain, also if few match.
      const newest = await store.store.tasks({ ...query, tables: ['x'], limit: 1 })
      expect(newest).toMatchObject({ tasks: [], next: expect.any(Number) })
      const mixed = async (tables: readonly string[]) =>
        (await store.store.tasks({ ...query, tables })).tasks.map(({ facts, hasOtherTables }) => [
          facts.taskId,
          hasOtherTables,
        ])
      expect(await mixed(['x.two'])).toEqual([
        ['c', false],
        ['b', true],
      ])
      expect((await mixed(['x.one', 'x.two'])).every(([, others]) => others === false)).toBe(true)
    })

    test('what was finished lately is counted from the call-back on, and anew after a restart', async () => {
      const store = await open()
      await store.callBack('a', some(0, 4, { recordCount: 10 }))
      expect((await store.task('a')).pace).toBeNull()
      store.clock.advance(2000)
      await store.settle((await store.pullOne()).leaseId)
      await store.settle((await store.pullOne()).leaseId)
      store.clock.advance(3000)
      await store.settle((await store.pullOne()).leaseId)
      store.clock.advance(1000)
      const seen = { partitions: 3, records: 30, seconds: 6, idleMillis: 1000 }
      expect((await store.task('a')).pace).toEqual(seen)
      await store.reopen()
      expect((await store.task('a')).pace).toBeNull()
    })

    test('a cancelled task has nothing parked', async () => {
      const store = await open()
      await store.callBack('a', some(0, 1200))
      await store.settleAll(await store.pullAll(1000), { outcome: 'failed', final: true })
      expect(await list(store, { parked: true })).toEqual(['a'])
      await store.control({ verb: 'cancel', taskId: 'a' })
      expect(progressView(await store.task('a')).partitions.parked).toBe(0)
      expect(await list(store, { parked: true })).toEqual([])
    })

    test('a task is stalled when only parked partitions are left, and open again when they are retried', async () => {
      const store = await open()
      await store.callBack('a', some(0, 2))
      await store.settle((await store.pullOne()).leaseId, { outcome: 'failed', final: true })
      expect(await store.state('a')).toBe('open')
      await store.settle((await store.pullOne()).leaseId)
      expect(await store.state('a')).toBe('stalled')
      expect(await list(store, { state: 'stalled' })).toEqual(['a'])
      await store.retry('a')
      expect(await store.state('a')).toBe('open')
    })

    test('an unknown task is null in every view', async () => {
      const store = await open()
      expect(await store.store.task('a')).toBeNull()
      const query = { taskId: 'a', state: null, level: null, after: null, limit: 10 }
      expect(await store.store.partitions(query)).toBeNull()
    })

    test('task ids of any text are distinguished exactly', async () => {
      const store = await open()
      const ids = [
        'a',
        'A',
        'a ',
        'ä',
        'a\u0308',
        '💾',
        "'; DROP TABLE task; --",
        'a%',
        'a_',
        'x'.repeat(500),
      ]
      for (const id of ids) expect(await store.callBack(id, some(0, 1))).toMatchObject({ accepted: 1 })
      for (const id of ids) expect((await store.task(id)).facts.taskId).toBe(id)
      expect((await store.pullAll()).map(({ taskId }) => taskId).toSorted()).toEqual(ids.toSorted())
    })
  })
}
