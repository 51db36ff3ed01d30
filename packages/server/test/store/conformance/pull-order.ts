import { describe, expect, test } from 'vitest'
import { batchedPull, type Driver, nameOf, one, some } from './driver.ts'
import { type StoreHarness, storesOf } from './harness.ts'

export function pullOrderTopic(harness: StoreHarness): void {
  describe('pull: order, batches and budgets', () => {
    const open = storesOf(harness)

    test('an empty store hands out nothing', async () => {
      const store = await open()
      expect(await store.pull({ batch: 10 })).toEqual({ partitions: [], repeated: false })
    })

    test('a pull returns the descriptor as it was called back, under a lease', async () => {
      const store = await open()
      await store.callBack('orders', [one(2, 5, { recordCount: 123, computeTableName: 'schema.table' })])
      const { lease, ...descriptor } = await store.pullOne()
      expect(descriptor).toMatchObject({
        taskId: 'orders',
        level: 2,
        index: 5,
        recordCount: 123,
        computeTableName: 'schema.table',
        spelling: null,
      })
      expect(lease).toMatchObject({
        attempt: 1,
        fencingToken: store.clock.now(),
        expiresAt: store.clock.now() + 600_000,
        expiresInMillis: 600_000,
      })
    })

    test('a leased partition is not handed out again', async () => {
      const store = await open()
      await store.callBack('orders', some(0, 1))
      await store.pullOne()
      expect((await store.pull()).partitions).toEqual([])
    })

    test('the lowest level goes first, across tasks and arrays', async () => {
      const store = await open()
      await store.callBack('a', [one(1, 0), one(2, 0)])
      await store.callBack('b', [one(0, 0), one(2, 0)])
      await store.callBack('a', [one(0, 0)])
      const names = (await store.pullAll(1)).map(nameOf)
      expect(names).toEqual(['b-0-0', 'a-0-0', 'a-1-0', 'a-2-0', 'b-2-0'])
    })

    test('a single task keeps the order of its call-backs, whatever the indexes and sizes', async () => {
      const store = await open()
      await store.callBack('a', [one(0, 9, { recordCount: 5000 }), one(0, 3, { recordCount: 0 })])
      await store.callBack('a', [one(0, 7), one(0, 1, { recordCount: 2_000_000_000 })])
      await store.callBack('a', [one(0, 2)])
      expect((await store.pullAll(2)).map(({ index }) => index)).toEqual([9, 3, 7, 1, 2])
    })

    test('tasks on one level take turns by records, not by partitions', async () => {
      const store = await open()
      await store.callBack('large', some(0, 4, { recordCount: 300 }))
      await store.callBack('small', some(0, 12, { recordCount: 100 }))
      const names = (await store.pullAll(1)).map(({ taskId }) => taskId)
      // Each large partition of 300 corresponds to three small ones of 100.
      for (let end = 4; end <= names.length; end += 4) {
        expect(names.slice(end - 4, end).filter((name) => name === 'large')).toHaveLength(1)
      }
    })

    test.each([
      ['', async () => {}],
      [', also after a restart', (store: Driver) => store.reopen()],
    ])('after a level drained, all tasks start equal%s', async (_, happens) => {
      const store = await open()
      await store.callBack('early', some(0, 20, { recordCount: 1000 }))
      await store.pullAll()
      await happens(store)
      await store.callBack('late', some(0, 6))
      await store.callBack('early', some(0, 6, {}, 20))
      const names = (await store.pullAll(1)).map(({ taskId }) => taskId)
      for (let end = 2; end <= names.length; end += 2)
        expect(names.slice(end - 2, end).toSorted()).toEqual(['early', 'late'])
    })

    test('the first task on a drained level waits no longer than later ones', async () => {
      const store = await open()
      await store.callBack('giant', [one(0, 0, { recordCount: 1_000_000 })])
      await store.pullAll()
      for (const taskId of ['a', 'b', 'c']) await store.callBack(taskId, some(0, 3, { recordCount: 10 }))
      const names = (await store.pullAll(1)).map(({ taskId }) => taskId)
      expect(names.join('')).toBe('abcabcabc')
    })

    test('a batch gets the requested number, in the order of single pulls', async () => {
      const store = await open()
      const single = await open()
      for (const each of [store, single]) {
        await each.callBack('a', some(0, 5, { recordCount: 10 }))
        await each.callBack('b', some(0, 5, { recordCount: 25 }))
        await each.callBack('b', some(1, 2))
      }
      const batches = [await store.pull({ batch: 7 }), await store.pull({ batch: 7 })]
      expect(batches.map(({ partitions }) => partitions.length)).toEqual([7, 5])
      expect(batches.flatMap(({ partitions }) => partitions).map(nameOf)).toEqual(
        (await single.pullAll(1)).map(nameOf),
      )
    })

    test('a record budget ends the batch once it is reached; the first partition is always included', async () => {
      const store = await open()
      await store.callBack('a', some(0, 10, { recordCount: 100 }))
      const counts = async (records: number) => (await store.pull({ batch: 50, records })).partitions.length
      expect(await counts(250)).toBe(3)
      expect(await counts(0)).toBe(1)
      expect(await counts(100)).toBe(1)
      expect(await counts(101)).toBe(2)
      expect(await counts(1_000_000)).toBe(3)
    })

    test('an empty partition counts nothing towards a budget', async () => {
      const store = await open()
      await store.callBack('a', some(0, 5, { recordCount: 0 }))
      expect((await store.pull({ batch: 50, records: 1 })).partitions).toHaveLength(5)
    })

    test('pulls of one batch are served first come first served, none of them twice', async () => {
      const store = await open()
      await store.callBack('a', some(0, 5))
      const pulls = [{ batch: 2 }, { batch: 1, records: 1 }, { batch: 10 }, { batch: 1 }].map(batchedPull)
      const answers = await store.batch({ pulls })
      expect(answers.pulls.map(({ partitions }) => partitions.map(({ index }) => index))).toEqual([
        [0, 1],
        [2],
        [3, 4],
        [],
      ])
    })

    test('a larger partition gets a longer lease if the policy has this, up to twelve hours', async () => {
      const store = await open({ leaseMillisPerThousandRecords: 1000 })
      await store.callBack('a', [one(0, 0, { recordCount: 5000 }), one(0, 1, { recordCount: 10 ** 12 })])
      for (const millis of [605_000, 12 * 3_600_000]) {
        const { index, lease } = await store.pullOne()
        expect(lease?.expiresInMillis).toBe(millis)
        // What is answered is also what is stored.
        expect((await store.partition('a', 0, index)).dueAt).toBe(lease?.expiresAt)
      }
    })

    test('the answer says when the earliest of its leases ends', async () => {
      const store = await open({ leaseMillisPerThousandRecords: 1000 })
      await store.callBack('a', [one(0, 0, { recordCount: 9000 }), one(0, 1, { recordCount: 1000 })])
      const answers = await store.batch({ pulls: [batchedPull({ batch: 2 })] })
      expect(answers.nextDueInMillis).toBe(601_000)
      expect((await store.batch({ pulls: [batchedPull()] })).nextDueInMillis).toBeNull()
    })
  })
}
