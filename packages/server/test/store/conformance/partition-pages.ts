import { describe, expect, test } from 'vitest'
import type { PartitionState } from '../../../src/handoff/rules/life-cycle.ts'
import { partitionView } from '../../../src/handoff/views/view-state.ts'
import { type Driver, one, some } from './driver.ts'
import { MINUTE, type StoreHarness, storesOf } from './harness.ts'
import { MANY } from './lanes.ts'

interface Filter {
  readonly state?: PartitionState
  readonly level?: number
}

async function pagesOf(store: Driver, filter: Filter, limit: number): Promise<string[]> {
  const names: string[] = []
  let after: { level: number; index: number } | null = null
  do {
    const query = { taskId: 'a', state: null, level: null, ...filter, after, limit }
    const page = await store.store.partitions(query)
    if (page === null) throw new Error('the task is unknown')
    expect(page.partitions.length).toBeLessThanOrEqual(limit)
    if (filter.state !== undefined)
      for (const record of page.partitions) expect(partitionView(page.facts, record).state).toBe(filter.state)
    names.push(...page.partitions.map(({ level, index }) => `${level}-${index}`))
    after = page.next
  } while (after !== null)
  return names
}

export function partitionPagesTopic(harness: StoreHarness): void {
  describe('pages of partitions', () => {
    const open = storesOf(harness)

    test('partitions are listed by level and index, each once, whatever the size of the page', async () => {
      const store = await open()
      const array = [one(0, 9), one(0, 2), one(1, 0), ...some(4, 5, {}, 3), one(4, Number.MAX_SAFE_INTEGER)]
      await store.callBack('a', array)
      const expected = array
        .toSorted((a, b) => a.level - b.level || a.index - b.index)
        .map(({ level, index }) => `${level}-${index}`)
      for (const limit of [1, 2, 3, 4, 100]) expect(await pagesOf(store, {}, limit)).toEqual(expected)
    })

    test('nothing follows the last page, also where it is full', async () => {
      const store = await open()
      await store.callBack('a', [...some(0, 2), ...some(1, 2)])
      for (const state of [null, 'ready'] as const) {
        const query = { taskId: 'a', state, level: null, limit: 2 }
        const first = await store.store.partitions({ ...query, after: null })
        expect(first?.next).toEqual({ level: 0, index: 1 })
        expect(await store.store.partitions({ ...query, after: first?.next ?? null })).toMatchObject({
          partitions: [
            { level: 1, index: 0 },
            { level: 1, index: 1 },
          ],
          next: null,
        })
      }
    })

    test('partitions are filtered by level and by the shown state', async () => {
      const store = await open()
      await store.callBack('a', [...some(0, 6), ...some(1, 2)])
      await store.settle((await store.pullOne()).leaseId)
      await store.settle((await store.pullOne()).leaseId, { outcome: 'failed' })
      await store.settle((await store.pullOne()).leaseId, { outcome: 'failed', final: true })
      await store.pullOne()
      for (const limit of [1, 3]) {
        expect(await pagesOf(store, { state: 'done' }, limit)).toEqual(['0-0'])
        expect(await pagesOf(store, { state: 'delayed' }, limit)).toEqual(['0-1'])
        expect(await pagesOf(store, { state: 'parked' }, limit)).toEqual(['0-2'])
        expect(await pagesOf(store, { state: 'leased' }, limit)).toEqual(['0-3'])
        expect(await pagesOf(store, { state: 'ready' }, limit)).toEqual(['0-4', '0-5', '1-0', '1-1'])
        expect(await pagesOf(store, { state: 'held' }, limit)).toEqual([])
        expect(await pagesOf(store, { state: 'ready', level: 1 }, limit)).toEqual(['1-0', '1-1'])
        expect(await pagesOf(store, { level: 7 }, limit)).toEqual([])
      }
      await store.control({ verb: 'level-barrier', taskId: 'a', enabled: true })
      expect(await pagesOf(store, { state: 'ready' }, 2)).toEqual(['0-4', '0-5'])
      expect(await pagesOf(store, { state: 'held' }, 2)).toEqual(['1-0', '1-1'])
      await store.control({ verb: 'cancel', taskId: 'a' })
      expect(await pagesOf(store, { state: 'cancelled' }, 4)).toHaveLength(7)
      expect(await pagesOf(store, { state: 'leased' }, 4)).toEqual([])
    })

    test('a partition is shown with its holder, its times, the last reason and the reported records', async () => {
      const store = await open()
      const start = store.clock.now()
      await store.callBack('a', some(0, 2))
      store.clock.advance(MINUTE)
      const { leaseId } = await store.pullOne({ instance: 'worker-1' })
      expect(await store.partition('a', 0, 0)).toMatchObject({
        state: 'leased',
        holder: 'worker-1',
        calledBackAt: start,
        dueAt: start + 11 * MINUTE,
        attempts: 0,
        reason: null,
        reportedRecords: null,
        settledAt: null,
      })
      store.clock.advance(MINUTE)
      await store.settle(leaseId, { records: 98 })
      expect(await store.partition('a', 0, 0)).toMatchObject({
        state: 'done',
        dueAt: null,
        settledAt: start + 2 * MINUTE,
        reportedRecords: 98,
      })
    })

    test('a filter that matches little among thousands still finds it, page by page', async () => {
      const store = await open()
      await store.callBack('a', [...some(0, 2 * MANY), ...some(1, 2 * MANY)])
      const leases = await store.pullAll(1000)
      const last = leases.findLast(({ level }) => level === 1)
      await store.settle(last?.lease?.id ?? '')
      expect(await pagesOf(store, { state: 'done' }, 10)).toEqual([`1-${2 * MANY - 1}`])
    })
  })
}
