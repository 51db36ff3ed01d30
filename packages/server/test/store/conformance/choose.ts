import { describe, expect, test } from 'vitest'
import { batchedPull, leaseOf, nameOf, one, settlement, some } from './driver.ts'
import { MINUTE, type StoreHarness, storesOf } from './harness.ts'

const sales = { computeTableName: 'results.sales' }
const orders = { computeTableName: 'results.orders' }
const SALES = ['results.sales']
const ORDERS = ['results.orders']

export function chooseTopic(harness: StoreHarness): void {
  describe('pull: filters', () => {
    const open = storesOf(harness)

    test('a pull that names a table gets nothing else', async () => {
      const store = await open()
      await store.callBack('a', [one(0, 0, orders), one(0, 1, sales), one(1, 0, sales), one(2, 0, orders)])
      await store.callBack('b', [one(0, 0, sales)])
      const { partitions } = await store.pull({ batch: 10, tables: SALES })
      expect(partitions.map(nameOf)).toEqual(['a-0-1', 'b-0-0', 'a-1-0'])
      expect((await store.pull({ batch: 10, tables: SALES })).partitions).toEqual([])
      expect((await store.pull({ batch: 10, tables: ['results.sale'] })).partitions).toEqual([])
      expect((await store.pullAll()).map(nameOf)).toEqual(['a-0-0', 'a-2-0'])
    })

    test('a caller that is limited to tables cannot use leases of others', async () => {
      const store = await open()
      await store.callBack('a', [one(0, 0, orders), one(0, 1, sales)])
      const leases = (await store.pull({ batch: 2 })).partitions.map(({ lease }) => leaseOf(lease?.id ?? ''))
      const settlements = leases.map((lease) => ({ lease, reported: settlement() }))
      const { settles, renews } = await store.batch({
        settles: [{ instance: null, settlements, tables: SALES }],
        renews: [{ leases, tables: ORDERS }],
      })
      expect(settles).toEqual([['lease_unknown', null]])
      expect(renews).toMatchObject([[{ refused: null }, { refused: 'lease_unknown' }]])
      expect(await store.states('a')).toEqual({ '0-0': 'leased', '0-1': 'done' })
    })

    test('a pull that names a task gets nothing else, lowest level first', async () => {
      const store = await open()
      await store.callBack('a', [one(1, 0), one(3, 0)])
      await store.callBack('b', [one(0, 0), one(2, 0)])
      expect((await store.pull({ batch: 10, tasks: ['c'] })).partitions).toEqual([])
      const { partitions } = await store.pull({ batch: 10, tasks: ['a'] })
      expect(partitions.map(nameOf)).toEqual(['a-1-0', 'a-3-0'])
      expect((await store.pull({ tasks: ['a'] })).partitions).toEqual([])
    })

    test('a pull that names tables and tasks gets partitions that match both', async () => {
      const store = await open()
      for (const task of ['a', 'b', 'c']) await store.callBack(task, [one(0, 0, sales), one(0, 1, orders)])
      const { partitions } = await store.pull({ batch: 10, tables: SALES, tasks: ['a', 'c', 'x'] })
      expect(partitions.map(nameOf)).toEqual(['a-0-0', 'c-0-0'])
    })

    test('of several tables or tasks the lowest level goes first, then they take turns by records', async () => {
      const store = await open()
      await store.callBack('a', some(1, 3, { ...sales, recordCount: 300 }))
      await store.callBack('b', some(1, 9, { ...orders, recordCount: 100 }))
      await store.callBack('c', [one(0, 0, { computeTableName: 'results.other' })])
      await store.callBack('d', some(0, 1, orders))
      const both = { tables: [...SALES, ...ORDERS] }
      expect(nameOf(await store.pullOne(both))).toBe('d-0-0')
      let [ofA, ofB] = [0, 0]
      for (let at = 0; at < 10; at += 1) {
        const { taskId, recordCount } = await store.pullOne(both)
        if (taskId === 'a') ofA += recordCount
        else ofB += recordCount
        expect(Math.abs(ofA - ofB)).toBeLessThanOrEqual(400)
      }
      await store.callBack('e', some(1, 2, { recordCount: 300 }))
      await store.callBack('f', some(1, 6, { recordCount: 100 }))
      const { partitions } = await store.pull({ batch: 100, tasks: ['e', 'f'] })
      expect(partitions.slice(0, 4).filter(({ taskId }) => taskId === 'e')).toHaveLength(1)
      expect(partitions).toHaveLength(8)
    })

    test('tasks share a table by records, and what others take does not count against them', async () => {
      const store = await open()
      await store.callBack('large', some(0, 20, { ...sales, recordCount: 300 }))
      await store.callBack('small', some(0, 60, { ...sales, recordCount: 100 }))
      await store.callBack('other', some(0, 50, { ...orders, recordCount: 100 }))
      // Pulls without a filter give each task a third, and a pull by task only to that task.
      await store.pull({ batch: 30 })
      await store.pull({ batch: 5, tasks: ['large'] })
      const { partitions } = await store.pull({ batch: 24, tables: SALES })
      const records = (task: string) =>
        partitions
          .filter(({ taskId }) => taskId === task)
          .reduce((sum, { recordCount }) => sum + recordCount, 0)
      expect(Math.abs(records('large') - records('small'))).toBeLessThanOrEqual(400)
    })

    test('tasks share a table that reaches its limit with each pull', async () => {
      const store = await open()
      for (const task of ['a', 'b', 'c']) await store.callBack(task, some(0, 10, sales))
      await store.store.setTable({ table: 'results.sales', maxLeases: 1 })
      const turns: string[] = []
      for (let at = 0; at < 9; at += 1) {
        const { taskId, leaseId } = await store.pullOne({ tables: SALES })
        turns.push(taskId)
        expect((await store.pull({ tables: SALES })).partitions).toEqual([])
        await store.settle(leaseId)
      }
      expect(turns).toEqual(['a', 'b', 'c', 'a', 'b', 'c', 'a', 'b', 'c'])
    })

    test('a task that comes later starts at the current position of its table', async () => {
      const store = await open()
      await store.callBack('early', some(0, 30, sales))
      await store.pull({ batch: 20, tables: SALES })
      await store.callBack('late', some(0, 30, sales))
      const { partitions } = await store.pull({ batch: 10, tables: SALES })
      const late = partitions.filter(({ taskId }) => taskId === 'late')
      expect(late.length).toBeGreaterThanOrEqual(4)
      expect(late.length).toBeLessThanOrEqual(6)
    })

    test('released, expired or retried partitions are found by their table', async () => {
      const store = await open()
      await store.callBack('a', [one(0, 0, orders), one(0, 1, sales), one(0, 2, orders), one(0, 3, sales)])
      const released = await store.pullOne({ tables: SALES })
      await store.pullOne({ tables: SALES })
      await store.settle(released.leaseId, { outcome: 'released' })
      expect(nameOf(await store.pullOne({ tables: SALES }))).toBe('a-0-1')
      expect((await store.pull({ tables: SALES })).partitions).toEqual([])
      await store.pass(20 * MINUTE)
      await store.pass(20 * MINUTE)
      const { partitions } = await store.pull({ batch: 9, tables: SALES })
      expect(partitions.map(nameOf).toSorted()).toEqual(['a-0-1', 'a-0-3'])
      expect((await store.pullAll()).map(nameOf)).toEqual(['a-0-0', 'a-0-2'])
    })

    test('a partition taken from the middle is neither handed out again nor lost', async () => {
      const store = await open()
      const mixed = Array.from({ length: 120 }, (_, index) => one(0, index, index % 3 === 0 ? sales : orders))
      await store.callBack('a', mixed)
      const bySales = (await store.pull({ batch: 7, tables: SALES })).partitions
      const first = (await store.pull({ batch: 50 })).partitions
      const moreSales = (await store.pull({ batch: 100, tables: SALES })).partitions
      const rest = await store.pullAll()
      expect(bySales.map(({ index }) => index)).toEqual([0, 3, 6, 9, 12, 15, 18])
      expect(first.slice(0, 4).map(({ index }) => index)).toEqual([1, 2, 4, 5])
      expect(rest.every(({ computeTableName }) => computeTableName === 'results.orders')).toBe(true)
      const all = [...bySales, ...first, ...moreSales, ...rest].map(({ index }) => index)
      expect(all.toSorted((a, b) => a - b)).toEqual(mixed.map(({ index }) => index))
    })

    test('a pause, a barrier and a cancel apply to pulls with a filter, too', async () => {
      const store = await open()
      await store.callBack('a', [one(0, 0, orders), one(1, 0, sales)])
      await store.callBack('b', some(0, 2, sales))
      await store.control({ verb: 'level-barrier', taskId: 'a', enabled: true })
      await store.control({ verb: 'pause', taskId: 'b' })
      for (const filter of [{ tables: SALES }, { tasks: ['b'] }])
        expect((await store.pull({ batch: 9, ...filter })).partitions).toEqual([])
      const { leaseId } = await store.pullOne({ tables: ORDERS })
      await store.settle(leaseId)
      expect(nameOf(await store.pullOne({ tables: SALES }))).toBe('a-1-0')
      await store.control({ verb: 'resume', taskId: 'b' })
      expect(nameOf(await store.pullOne({ tables: SALES }))).toBe('b-0-0')
      await store.control({ verb: 'cancel', taskId: 'b' })
      for (const filter of [{ tables: SALES }, { tasks: ['b'] }])
        expect((await store.pull({ batch: 9, ...filter })).partitions).toEqual([])
    })

    test('a pull sees call-backs of its own batch, with their tables', async () => {
      const store = await open()
      const { pulls, newlyReadyOf } = await store.batch({
        callBacks: [
          {
            callBack: { taskId: 'a', recordTotal: 4, partitions: [one(0, 0, orders), one(0, 1, sales)] },
            producer: null,
          },
        ],
        pulls: [batchedPull({ tables: SALES }), batchedPull({ tables: SALES })],
      })
      expect(pulls.map(({ partitions }) => partitions.map(nameOf))).toEqual([['a-0-1'], []])
      expect(newlyReadyOf?.toSorted()).toEqual([
        ['a', 'results.orders', 1],
        ['a', 'results.sales', 1],
      ])
    })

    test('a key repeated with another filter gets the leases of the first time', async () => {
      const store = await open()
      await store.callBack('a', [one(0, 0, orders), one(0, 1, sales)])
      const first = await store.pull({ key: 'k', tables: SALES })
      const again = await store.pull({ key: 'k', tables: ORDERS, batch: 5 })
      expect(again.repeated).toBe(true)
      expect(again.partitions.map(nameOf)).toEqual(first.partitions.map(nameOf))
    })

    test('a retry whose tag equals that of the fresh partitions of its lane is stored', async () => {
      const store = await open()
      await store.callBack('a', some(0, 3, sales))
      await store.callBack('b', some(0, 3, sales))
      const [, failed] = (await store.pull({ batch: 3, tables: SALES })).partitions
      expect(failed?.taskId).toBe('b')
      await store.settle(failed?.lease?.id ?? '', { outcome: 'failed', retryAfterMillis: 0 })
      await store.sweep()
      expect(await store.recount()).toEqual([])
    })

    test('many lanes of other tables do not keep a pull from its own, also after a restart', async () => {
      const store = await open()
      for (let at = 0; at < 40; at += 1) await store.callBack(`other-${at}`, some(0, 3, orders))
      await store.callBack('mine', [...some(0, 2, sales), ...some(4, 2, sales)])
      expect(nameOf(await store.pullOne({ tables: SALES }))).toBe('mine-0-0')
      await store.reopen()
      expect(nameOf(await store.pullOne({ tables: SALES }))).toBe('mine-0-1')
      expect(nameOf(await store.pullOne({ tasks: ['mine'] }))).toBe('mine-4-0')
      expect((await store.pullAll()).length).toBe(121)
    })
  })
}
