import { describe, expect, test } from 'vitest'
import { batchedPull, nameOf, some } from './driver.ts'
import { MINUTE, type StoreHarness, storesOf, testPolicy } from './harness.ts'

export function pullKeysTopic(harness: StoreHarness): void {
  describe('pull: idempotency keys', () => {
    const open = storesOf(harness)

    test('a repeat gets the same leases and never new ones', async () => {
      const store = await open()
      await store.callBack('a', some(0, 10))
      const first = await store.pull({ batch: 3, key: 'k' })
      expect(first).toMatchObject({ repeated: false })
      store.clock.advance(MINUTE)
      const again = await store.pull({ batch: 10, key: 'k' })
      expect(again.repeated).toBe(true)
      expect(again.partitions.map(nameOf)).toEqual(first.partitions.map(nameOf))
      expect(again.partitions.map(({ lease }) => lease?.id)).toEqual(
        first.partitions.map(({ lease }) => lease?.id),
      )
      expect(again.partitions[0]?.lease).toMatchObject({
        attempt: 1,
        fencingToken: first.partitions[0]?.lease?.fencingToken,
        expiresAt: first.partitions[0]?.lease?.expiresAt,
        expiresInMillis: 9 * MINUTE,
      })
    })

    test('settled, released or lost leases are not in a repeat', async () => {
      const store = await open()
      await store.callBack('a', some(0, 4))
      const { partitions } = await store.pull({ batch: 4, key: 'k' })
      const [done = '', failed = '', released = '', alive = ''] = partitions.map(
        ({ lease }) => lease?.id ?? '',
      )
      await store.settle(done)
      await store.settle(failed, { outcome: 'failed' })
      await store.settle(released, { outcome: 'released' })
      const again = await store.pull({ key: 'k' })
      expect(again.partitions.map(({ lease }) => lease?.id)).toEqual([alive])
      await store.pass(testPolicy.leaseMillis)
      expect(await store.pull({ key: 'k' })).toEqual({ partitions: [], repeated: true })
    })

    test('a lease past its expiry is not repeated even before it is swept', async () => {
      const store = await open()
      await store.callBack('a', some(0, 1))
      await store.pull({ key: 'k' })
      store.clock.advance(testPolicy.leaseMillis)
      expect(await store.pull({ key: 'k' })).toEqual({ partitions: [], repeated: true })
    })

    test('a repeat keeps the order of the hand-off, also of leases that expired and were renewed', async () => {
      const store = await open()
      await store.callBack('a', some(0, 12))
      const { partitions } = await store.pull({ batch: 12, key: 'k' })
      const ids = partitions.map(({ lease }) => lease?.id ?? '')
      // Back-offs end in any order, which is the order in which the partitions wait again.
      expect(await store.pass(testPolicy.leaseMillis)).toMatchObject({ expired: 12 })
      await store.pass(4 * MINUTE)
      await store.renew(...ids)
      const again = await store.pull({ batch: 12, key: 'k' })
      expect(again.repeated).toBe(true)
      expect(again.partitions.map(({ lease }) => lease?.id)).toEqual(ids)
    })

    test('an empty answer is not recorded: the key may still get something', async () => {
      const store = await open()
      expect(await store.pull({ key: 'k' })).toEqual({ partitions: [], repeated: false })
      await store.callBack('a', some(0, 1))
      expect((await store.pull({ key: 'k' })).partitions).toHaveLength(1)
    })

    test('pulls with the same key in one batch get the same leases, once', async () => {
      const store = await open()
      await store.callBack('a', some(0, 5))
      const { pulls } = await store.batch({
        pulls: [
          batchedPull({ batch: 2, key: 'k' }),
          batchedPull({ batch: 2 }),
          batchedPull({ batch: 2, key: 'k' }),
        ],
      })
      expect(pulls.map(({ repeated }) => repeated)).toEqual([false, false, true])
      expect(pulls[2]?.partitions).toEqual(pulls[0]?.partitions)
      expect(pulls[1]?.partitions.map(({ index }) => index)).toEqual([2, 3])
    })

    test('pulls with the same key that find nothing are both answered as if the key had never been used', async () => {
      const store = await open()
      const { pulls } = await store.batch({ pulls: [batchedPull({ key: 'k' }), batchedPull({ key: 'k' })] })
      // A repeat is answered at once; a pull that found nothing may wait, and so may its duplicate.
      expect(pulls).toEqual([
        { partitions: [], repeated: false },
        { partitions: [], repeated: false },
      ])
    })

    test('different keys are different pulls', async () => {
      const store = await open()
      await store.callBack('a', some(0, 2))
      const { pulls } = await store.batch({ pulls: [batchedPull({ key: 'k' }), batchedPull({ key: 'l' })] })
      expect(pulls.flatMap(({ partitions }) => partitions.map(({ index }) => index))).toEqual([0, 1])
    })

    test('a key survives a restart', async () => {
      const store = await open()
      await store.callBack('a', some(0, 2))
      const first = await store.pull({ key: 'k' })
      await store.reopen()
      expect(await store.pull({ key: 'k' })).toEqual({ partitions: first.partitions, repeated: true })
    })

    test('a key is kept until ten minutes after the last expiry', async () => {
      const store = await open()
      await store.callBack('a', some(0, 2))
      const { leaseId } = await store.pullOne({ key: 'k' })
      await store.settle(leaseId)
      store.clock.advance(testPolicy.leaseMillis + 10 * MINUTE - 1)
      await store.maintainAll()
      expect(await store.pull({ key: 'k' })).toMatchObject({ repeated: true })
      store.clock.advance(1)
      await store.maintainAll()
      expect(await store.pull({ key: 'k' })).toMatchObject({ repeated: false })
    })

    test('a key whose lease was renewed is kept as long as the lease is valid', async () => {
      const store = await open()
      await store.callBack('a', some(0, 2))
      const { leaseId } = await store.pullOne({ key: 'k' })
      for (let renewals = 0; renewals < 5; renewals += 1) {
        store.clock.advance(9 * MINUTE)
        await store.renew(leaseId)
        await store.maintainAll()
      }
      const again = await store.pull({ key: 'k' })
      expect(again.partitions.map(({ lease }) => lease?.id)).toEqual([leaseId])
    })

    test('a cancelled task has no leases to repeat', async () => {
      const store = await open()
      await store.callBack('a', some(0, 1))
      await store.pull({ key: 'k' })
      await store.control({ verb: 'cancel', taskId: 'a' })
      expect(await store.pull({ key: 'k' })).toEqual({ partitions: [], repeated: true })
    })
  })
}
