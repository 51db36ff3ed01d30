import { describe, expect, test } from 'vitest'
import { type Driver, nameOf, some } from './driver.ts'
import { HOUR, type StoreHarness, storesOf } from './harness.ts'
import { MANY, pullLevels } from './lanes.ts'

const rerunOfAll = { verb: 'retry', taskId: 'a', level: null, partitions: null, done: true } as const

async function finishAll(store: Driver, records: number | null = null) {
  const handed = await store.pullAll(500)
  await store.settleAll(handed, { records })
  return handed
}

export function rerunTopic(harness: StoreHarness): void {
  describe('rerun: done partitions, only on explicit request', () => {
    const open = storesOf(harness)

    test('a finished task runs again as its next generation, as if just called back', async () => {
      const store = await open()
      await store.callBack('a', some(0, 3))
      const [old] = await finishAll(store, 90)
      expect(await store.retry('a', { done: true })).toMatchObject({ kind: 'applied', changed: 3 })
      const { facts, mismatches } = await store.task('a')
      expect(facts).toMatchObject({ generation: 2, finishedAt: null, reportedRecords: 0, mismatched: 0 })
      expect(mismatches).toEqual([])
      expect(await store.settle(old?.lease?.id ?? '')).toBe('lease_lost')
      expect((await store.pullAll(1)).map(nameOf)).toEqual(['a-0-0', 'a-0-1', 'a-0-2'])
    })

    test('without the explicit request, done stays done', async () => {
      const store = await open()
      await store.callBack('a', some(0, 3))
      await finishAll(store)
      expect(await store.retry('a', { level: 0 })).toMatchObject({ changed: 0 })
      expect((await store.pull()).partitions).toEqual([])
    })

    test.each([700, 2000])(
      'partitions that are rerun after %i others go before a higher level',
      async (count) => {
        const store = await open()
        await store.callBack('a', [...some(0, count), ...some(1, 500)])
        const { leaseId } = await store.pullOne()
        await store.settle(leaseId)
        await store.retry('a', { done: true })
        expect(await pullLevels(store, count)).toEqual([0])
      },
    )

    test('one level or named partitions can be rerun', async () => {
      const store = await open()
      await store.callBack('a', [...some(0, 2), ...some(1, 2)])
      await finishAll(store)
      await store.retry('a', { done: true, level: 1 })
      await store.retry('a', { done: true, partitions: [{ level: 0, index: 1 }] })
      expect((await store.pullAll(1)).map(nameOf)).toEqual(['a-0-1', 'a-1-0', 'a-1-1'])
    })

    test('a sealed and done task is final', async () => {
      const store = await open()
      await store.callBack('a', some(0, 1))
      await store.control({ verb: 'seal', taskId: 'a', expectedPartitions: null })
      await finishAll(store)
      expect(await store.retry('a', { done: true })).toEqual({ kind: 'task_sealed' })
    })

    test('thousands are rerun exactly once, in steps that survive a restart', async () => {
      const store = await open()
      await store.callBack('a', [...some(0, MANY), ...some(1, MANY)])
      await finishAll(store)
      await store.store.control(rerunOfAll)
      await store.reopen()
      await store.maintainAll()
      expect((await store.task('a')).facts.partitions.done).toBe(0)
      const names = (await finishAll(store)).map(nameOf)
      expect(new Set(names).size).toBe(names.length)
      expect(names).toHaveLength(2 * MANY)
      await store.maintainAll()
      expect((await store.task('a')).facts.partitions.done).toBe(2 * MANY)
    })

    test('a task is not done while more of it is to run again', async () => {
      const store = await open()
      await store.callBack('a', some(0, MANY))
      await finishAll(store)
      await store.store.control(rerunOfAll)
      await finishAll(store)
      const { facts } = await store.task('a')
      expect(facts.partitions.done).toBe(MANY)
      expect(facts).toMatchObject({ generation: 2, finishedAt: null })
      expect(await store.state('a')).toBe('open')
      expect(await store.recount()).toEqual([])
      await store.reopen()
      expect(await store.state('a')).toBe('open')
      await store.maintainAll()
      await finishAll(store)
      expect(await store.state('a')).toBe('done')
      expect((await store.task('a')).facts).toMatchObject({ generation: 2, finishedAt: store.clock.now() })
    })

    test('a task may be paused and cancelled during a rerun', async () => {
      const store = await open()
      await store.callBack('a', some(0, MANY))
      await finishAll(store)
      await store.store.control(rerunOfAll)
      await finishAll(store)
      expect(await store.control({ verb: 'pause', taskId: 'a' })).toMatchObject({ state: 'paused' })
      expect(await store.control({ verb: 'cancel', taskId: 'a' })).toMatchObject({ state: 'cancelled' })
      await store.maintainAll()
      expect((await store.task('a')).facts.partitions).toMatchObject({ done: MANY, cancelled: 0 })
    })

    test('done partitions are included also after the clock was set back', async () => {
      const store = await open()
      await store.callBack('a', some(0, 3))
      await finishAll(store)
      store.clock.advance(-HOUR)
      expect(await store.retry('a', { done: true })).toMatchObject({ changed: 3 })
      expect(await store.pullAll()).toHaveLength(3)
    })

    test('a request whose steps were finished by maintenance does not start again', async () => {
      const store = await open()
      await store.callBack('a', some(0, MANY))
      await finishAll(store)
      let result = await store.store.control(rerunOfAll)
      await store.maintainAll()
      await finishAll(store)
      // The caller repeats the request while it reports more steps.
      while (result.kind === 'applied' && result.more) result = await store.store.control(rerunOfAll)
      expect((await store.task('a')).facts.partitions.done).toBe(MANY)
    })

    test('partitions finished after the request are not included', async () => {
      const store = await open()
      await store.callBack('a', [...some(0, MANY), ...some(1, 1)])
      const handed = await store.pullAll(1000)
      const last = handed.pop()
      await store.settleAll(handed)
      await store.retry('a', { done: true })
      store.clock.advance(1)
      await store.settle(last?.lease?.id ?? '')
      await store.maintainAll()
      expect((await store.task('a')).facts.partitions.done).toBe(1)
    })

    test('a request for one level is not lost while another level is in progress', async () => {
      const store = await open()
      await store.callBack('a', [...some(0, MANY), ...some(1, 5)])
      await finishAll(store)
      const request = { verb: 'retry', taskId: 'a', partitions: null, done: true } as const
      await store.store.control({ ...request, level: 0 })
      await store.control({ ...request, level: 1 })
      await store.maintainAll()
      expect((await store.task('a')).facts.partitions.done).toBe(0)
    })
  })
}
