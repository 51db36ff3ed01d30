import { describe, expect, test } from 'vitest'
import { batchedPull, type Driver, nameOf, one, some } from './driver.ts'
import { DAY, HOUR, MINUTE, type StoreHarness, storesOf } from './harness.ts'

async function everything(store: Driver, ...taskIds: string[]) {
  // The pace is in memory only.
  const tasks = await Promise.all(taskIds.map(async (id) => ({ ...(await store.task(id)), pace: null })))
  const partitions = await Promise.all(taskIds.map((taskId) => store.partitions(taskId)))
  return { tasks, partitions }
}

export function restartTopic(harness: StoreHarness): void {
  describe('restart', () => {
    const open = storesOf(harness)

    test('a restart changes nothing', async () => {
      const store = await open()
      await store.callBack('a', [...some(0, 6), ...some(1, 2)], 'producer')
      await store.callBack('b', [...some(0, 2), one(4, 0)])
      await store.settle((await store.pullOne()).leaseId, { records: 5 })
      await store.settle((await store.pullOne({ instance: 'w' })).leaseId, { outcome: 'failed', reason: 'x' })
      await store.settle((await store.pullOne()).leaseId, { outcome: 'failed', final: true })
      await store.pullOne({ instance: 'w', key: 'k' })
      await store.control({ verb: 'pause', taskId: 'b' })
      await store.control({ verb: 'level-barrier', taskId: 'a', enabled: true })
      const before = await everything(store, 'a', 'b')
      await store.reopen()
      expect(await everything(store, 'a', 'b')).toEqual(before)
    })

    test('the order continues: tasks keep their shares', async () => {
      const store = await open()
      const reference = await open()
      for (const each of [store, reference]) {
        await each.callBack('a', some(0, 30, { recordCount: 70 }))
        await each.callBack('b', some(0, 30, { recordCount: 30 }))
      }
      const expected = (await reference.pullAll(1)).map(nameOf)
      const names: string[] = []
      while (names.length < expected.length) {
        names.push(...(await store.pull({ batch: 7 })).partitions.map(nameOf))
        await store.reopen()
      }
      expect(names).toEqual(expected)
    })

    test('what a batch counted before it had to read rows is counted once', async () => {
      const store = await open()
      await store.callBack('a', [...some(0, 40), ...some(1, 3)])
      await store.callBack('b', some(0, 40))
      const { partitions } = await store.pull({ batch: 4, key: 'k' })
      // The settle counts; the repeated key reads its leases; the pull after it counts again.
      const pulls = [batchedPull({ key: 'k' }), batchedPull({ batch: 3 })]
      await store.settleAll(partitions.slice(0, 1), {}, { pulls })
      await store.settleAll(partitions.slice(1, 2))
      await store.reopen()
      expect(await store.recount()).toEqual([])
      const done = await Promise.all(
        ['a', 'b'].map(async (id) => (await store.task(id)).facts.partitions.done),
      )
      expect(done).toEqual([1, 1])
    })

    test('a lease from before a restart is settled after it', async () => {
      const store = await open()
      await store.callBack('a', some(0, 1))
      const { leaseId } = await store.pullOne()
      await store.reopen()
      expect(await store.renew(leaseId)).toMatchObject([{ refused: null }])
      expect(await store.settle(leaseId)).toBeNull()
      await store.reopen()
      expect(await store.settle(leaseId)).toBeNull()
      expect(await store.settle(leaseId, { outcome: 'failed' })).toBe('lease_settled')
    })

    test('a changed policy applies to new leases, and existing ones keep theirs', async () => {
      const store = await open()
      await store.callBack('a', some(0, 2))
      await store.pullOne()
      await store.reopen({
        delivery: 'at-least-once',
        leaseMillis: HOUR,
        leaseMillisPerThousandRecords: 0,
        maxAttempts: 1,
        backoffMillis: 0,
        backoffMaxMillis: 0,
        levelBarrier: true,
      })
      expect((await store.pullOne()).lease?.expiresInMillis).toBe(HOUR)
      await store.callBack('b', [one(0, 0), one(1, 0)])
      expect(await store.states('b')).toEqual({ '0-0': 'ready', '1-0': 'held' })
      expect((await store.task('a')).facts.levelBarrier).toBe(false)
      expect(await store.pass(10 * MINUTE)).toMatchObject({ expired: 1, parked: 1 })
      await store.pass(DAY)
    })

    test('closing waits for earlier requests', async () => {
      const store = await open()
      const asked = Array.from({ length: 10 }, (_, index) => store.callBack('a', [one(0, index)]))
      await store.reopen()
      for (const result of await Promise.all(asked)) expect(result).toMatchObject({ kind: 'stored' })
      expect(await store.partitions('a')).toHaveLength(10)
    })
  })
}
