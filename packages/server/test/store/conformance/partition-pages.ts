import { describe, expect, test } from 'vitest'
import type { PartitionPosition, PartitionQuery } from '../../../src/handoff/views/queries.ts'
import { partitionView } from '../../../src/handoff/views/view-state.ts'
import { type Driver, one, some } from './driver.ts'
import { HOUR, MINUTE, type StoreHarness, storesOf } from './harness.ts'
import { MANY } from './lanes.ts'

type Filter = Partial<
  Pick<PartitionQuery, 'state' | 'level' | 'indexes' | 'name' | 'holder' | 'reason' | 'order'>
>

async function pagesOf(store: Driver, filter: Filter, limit: number): Promise<string[]> {
  const names: string[] = []
  let after: PartitionPosition | null = null
  do {
    const query = { taskId: 'a', state: null, level: null, ...filter, after, limit }
    const page = await store.store.partitions(query)
    if (page === null) throw new Error('the task is unknown')
    expect(page.partitions.length).toBeLessThanOrEqual(limit)
    if (filter.state != null)
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
        expect(first?.next).toEqual({ part: 'all', level: 0, at: 1 })
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

    test('partitions are found by their name, and by the beginning of names', async () => {
      const store = await open()
      const spelled = { ...one(1, 7), spelling: 'a-1-007' }
      await store.callBack('a', [...some(0, 25), one(0, 100), one(0, 1700), spelled, ...some(10, 2)])
      for (const limit of [1, 3, 100]) {
        const named = (name: string, filter: Filter = {}) => pagesOf(store, { name, ...filter }, limit)
        expect(await named('a-0-17')).toEqual(['0-17'])
        expect(await named('a-0-99')).toEqual([])
        expect(await named('a-1-007')).toEqual(['1-7'])
        expect(await named('a-1-7')).toEqual(['1-7'])
        expect(await named('a-0-2*')).toEqual(['0-2', '0-20', '0-21', '0-22', '0-23', '0-24'])
        expect(await named('a-0-17*')).toEqual(['0-17', '0-1700'])
        expect(await named('a-0-17*', { indexes: { first: 100, last: 9999 }, level: 0 })).toEqual(['0-1700'])
        expect(await named('a-1-00*')).toEqual(['1-7'])
        expect(await named('a-1-7*')).toEqual([])
        expect(await named('a-1*')).toEqual(['1-7', '10-0', '10-1'])
        expect(await named('a-1*', { level: 10 })).toEqual(['10-0', '10-1'])
        expect(await named('a-0*')).toHaveLength(27)
        for (const prefix of ['*', 'a*', 'a-*']) expect(await named(prefix)).toHaveLength(30)
        for (const prefix of ['b*', 'a-x*', 'a-0-1-*', 'a-0x*']) expect(await named(prefix)).toEqual([])
      }
    })

    test('partitions are found by the instance that holds them', async () => {
      const store = await open()
      await store.callBack('a', [...some(0, 6), ...some(1, 3)])
      await store.callBack('b', some(0, 2))
      const pulled = await store.pull({ batch: 8, instance: 'w-1' })
      await store.pull({ batch: 2, instance: 'w-2' })
      await store.settle(pulled.partitions[0]?.lease?.id ?? '')
      const held = (await store.partitions('a'))
        .filter(({ holder, state }) => holder === 'w-1' && state === 'leased')
        .map(({ level, index }) => `${level}-${index}`)
      expect(held.length).toBeGreaterThan(2)
      for (const limit of [1, 2, 100]) {
        expect(await pagesOf(store, { holder: 'w-1' }, limit)).toEqual(held)
        expect(await pagesOf(store, { holder: 'w-1', order: 'unfinished' }, limit)).toEqual(held)
        expect(await pagesOf(store, { holder: 'w-1', level: 0, name: 'a-0-3*' }, limit)).toEqual(
          held.filter((name) => name === '0-3'),
        )
        expect(await pagesOf(store, { holder: 'w-1', state: 'parked' }, limit)).toEqual([])
        expect(await pagesOf(store, { holder: 'nobody' }, limit)).toEqual([])
      }
      await store.control({ verb: 'cancel', taskId: 'a' })
      expect(await pagesOf(store, { holder: 'w-1' }, 9)).toEqual([])
    })

    test('unfinished ones come first on request: what was handed out before what waits', async () => {
      const store = await open()
      await store.callBack('a', [...some(0, 6), one(1, 5), one(1, 2), ...some(2, 2)])
      await store.settle((await store.pullOne()).leaseId)
      await store.settle((await store.pullOne()).leaseId, { outcome: 'failed' })
      await store.settle((await store.pullOne()).leaseId, { outcome: 'failed', final: true })
      await store.pullOne()
      await store.settle((await store.pullOne()).leaseId, { outcome: 'released' })
      const begun = ['0-1', '0-2', '0-3', '0-4']
      const fresh = ['0-5', '1-5', '1-2', '2-0', '2-1']
      for (const limit of [1, 2, 3, 100]) {
        const unfinished = (filter: Filter = {}) => pagesOf(store, { order: 'unfinished', ...filter }, limit)
        expect(await unfinished()).toEqual([...begun, ...fresh, '0-0'])
        expect(await unfinished({ level: 0 })).toEqual([...begun, '0-5', '0-0'])
        expect(await unfinished({ level: 1 })).toEqual(['1-5', '1-2'])
        expect(await unfinished({ state: 'done' })).toEqual(['0-0'])
        expect(await unfinished({ state: 'parked' })).toEqual(['0-2'])
        expect(await unfinished({ state: 'ready' })).toEqual(['0-4', ...fresh])
        expect(await unfinished({ name: 'a-0-*' })).toEqual([...begun, '0-5', '0-0'])
        const within = { level: 0, indexes: { first: 2, last: 5 } }
        expect(await unfinished(within)).toEqual(['0-2', '0-3', '0-4', '0-5'])
      }
      await store.control({ verb: 'pause', taskId: 'a' })
      expect(await pagesOf(store, { order: 'unfinished', state: 'held' }, 2)).toEqual(['0-4', ...fresh])
      await store.control({ verb: 'cancel', taskId: 'a' })
      expect(await pagesOf(store, { order: 'unfinished' }, 3)).toEqual(await pagesOf(store, {}, 100))
    })

    test('partitions are found by the group of their last failure', async () => {
      const store = await open()
      await store.callBack('a', [...some(0, 7), ...some(1, 2)])
      const fail = async (reason: string, final = false) =>
        store.settle((await store.pullOne()).leaseId, { outcome: 'failed', reason, final })
      await fail('locked by transaction 17')
      await fail('no such table', true)
      await fail('locked by transaction 18', true)
      await store.settle((await store.pullOne()).leaseId)
      store.clock.advance(HOUR)
      await store.sweep()
      const again = await store.pullOne()
      expect(again).toMatchObject({ level: 0, index: 0 })
      const { failures } = await store.task('a')
      const keyOf = (text: string) => failures.find(({ reason }) => reason?.includes(text))?.key ?? ''
      const [locked, none] = [keyOf('locked'), keyOf('no such')]
      expect(new Set([locked, none, '']).size).toBe(3)
      for (const limit of [1, 2, 100]) {
        const of = (reason: string, filter: Filter = {}) => pagesOf(store, { reason, ...filter }, limit)
        expect(await of(locked)).toEqual(['0-0', '0-2'])
        expect(await of(none)).toEqual(['0-1'])
        expect(await of('unknown')).toEqual([])
        expect(await of(locked, { order: 'unfinished' })).toEqual(['0-0', '0-2'])
        expect(await of(locked, { state: 'parked' })).toEqual(['0-2'])
        expect(await of(locked, { state: 'leased' })).toEqual(['0-0'])
        expect(await of(locked, { name: 'a-0-2*' })).toEqual(['0-2'])
        expect(await of(locked, { level: 1 })).toEqual([])
        expect(await of(locked, { state: 'parked', level: 0, indexes: { first: 0, last: 1 } })).toEqual([])
      }
      await store.settle(again.leaseId)
      expect(await pagesOf(store, { reason: locked, order: 'unfinished' }, 1)).toEqual(['0-2', '0-0'])
      expect(await pagesOf(store, { reason: locked, state: 'done' }, 1)).toEqual(['0-0'])
    })

    test('unfinished ones come first where pulls by table took partitions ahead of others', async () => {
      const store = await open()
      const array = some(0, 9).map((each) => ({ ...each, computeTableName: `s.t${each.index % 3}` }))
      await store.callBack('a', array)
      await store.settle((await store.pullOne({ tables: ['s.t1'] })).leaseId)
      await store.pullOne({ tables: ['s.t1'] })
      await store.settle((await store.pullOne()).leaseId)
      expect(await pagesOf(store, { order: 'unfinished' }, 2)).toEqual([
        '0-4',
        '0-2',
        '0-3',
        '0-5',
        '0-6',
        '0-7',
        '0-8',
        '0-0',
        '0-1',
      ])
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
