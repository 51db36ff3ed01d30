import { describe, expect, test } from 'vitest'
import { formatLeaseId } from '../../../src/handoff/lease-id.ts'
import { leaseOf, some } from './driver.ts'
import { MINUTE, type StoreHarness, storesOf, testPolicy } from './harness.ts'

export function renewTopic(harness: StoreHarness): void {
  describe('renew', () => {
    const open = storesOf(harness)

    test('a renewed lease has its full length from now', async () => {
      const store = await open()
      await store.callBack('a', some(0, 1))
      const { leaseId } = await store.pullOne()
      store.clock.advance(9 * MINUTE)
      expect(await store.renew(leaseId)).toEqual([
        {
          refused: null,
          expiresAt: store.clock.now() + testPolicy.leaseMillis,
          expiresInMillis: testPolicy.leaseMillis,
        },
      ])
      await store.pass(testPolicy.leaseMillis - 1)
      expect(await store.states('a')).toEqual({ '0-0': 'leased' })
      await store.pass(1)
      expect(await store.states('a')).toEqual({ '0-0': 'delayed' })
    })

    test('a lease may be renewed again and again and stays the same attempt', async () => {
      const store = await open()
      await store.callBack('a', some(0, 1))
      const { leaseId } = await store.pullOne()
      for (let renewals = 0; renewals < 20; renewals += 1) {
        await store.pass(9 * MINUTE)
        expect(await store.renew(leaseId)).toMatchObject([{ refused: null }])
      }
      expect(await store.partition('a', 0, 0)).toMatchObject({ state: 'leased', attempts: 0 })
    })

    test('each lease of an array gets its own answer', async () => {
      const store = await open()
      await store.callBack('a', some(0, 3))
      const alive = await store.pullOne()
      const done = await store.pullOne()
      await store.settle(done.leaseId)
      const released = await store.pullOne()
      await store.settle(released.leaseId, { outcome: 'released' })
      await store.pullOne()
      const forged = formatLeaseId({ ...leaseOf(alive.leaseId), secret: 'A'.repeat(16) })
      expect(await store.renew(done.leaseId, alive.leaseId, released.leaseId, forged)).toMatchObject([
        { refused: 'lease_settled' },
        { refused: null },
        { refused: 'lease_lost' },
        { refused: 'lease_unknown' },
      ])
    })

    test('the answer says when the earliest of the renewed leases ends', async () => {
      const store = await open()
      await store.callBack('a', some(0, 1))
      const { leaseId } = await store.pullOne()
      const { nextDueInMillis } = await store.batch({ renews: [{ leases: [leaseOf(leaseId)] }] })
      expect(nextDueInMillis).toBe(testPolicy.leaseMillis)
    })

    test('a paused task does not stop its leases from being renewed and settled', async () => {
      const store = await open()
      await store.callBack('a', some(0, 2))
      const { leaseId } = await store.pullOne()
      await store.control({ verb: 'pause', taskId: 'a' })
      expect(await store.renew(leaseId)).toMatchObject([{ refused: null }])
      expect(await store.settle(leaseId)).toBeNull()
      expect(await store.states('a')).toEqual({ '0-0': 'done', '0-1': 'held' })
    })
  })
}
