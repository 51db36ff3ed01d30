import { describe, expect, test } from 'vitest'
import { type Driver, some } from './driver.ts'
import { MINUTE, type StoreHarness, storesOf, testPolicy } from './harness.ts'

export function fencingTokensTopic(harness: StoreHarness): void {
  describe('fencing tokens', () => {
    const open = storesOf(harness)

    /** What happens between two leases of one partition. */
    const between: [what: string, end: (store: Driver, leaseId: string) => Promise<unknown>][] = [
      ['a release', (store, leaseId) => store.settle(leaseId, { outcome: 'released' })],
      ['an undo', (store, leaseId) => store.undo(leaseId)],
      ['a failure', (store, leaseId) => store.settle(leaseId, { outcome: 'failed', retryAfterMillis: 0 })],
      [
        'a retry of a parked partition',
        async (store, leaseId) => {
          await store.settle(leaseId, { outcome: 'failed', final: true })
          await store.retry('a')
        },
      ],
      [
        'a rerun',
        async (store, leaseId) => {
          await store.settle(leaseId)
          await store.retry('a', { done: true })
        },
      ],
    ]

    test.each(between)('a token grows over %s in the same millisecond', async (_, end) => {
      const store = await open()
      await store.callBack('a', some(0, 1))
      const first = await leased(store)
      await end(store, first.id)
      await store.sweep()
      expect((await leased(store)).fencingToken).toBe(first.fencingToken + 1)
    })

    test('after an expiry, a token is the time of the new lease', async () => {
      const store = await open()
      await store.callBack('a', some(0, 1))
      await leased(store)
      await store.pass(testPolicy.leaseMillis)
      await store.pass(10 * MINUTE)
      expect((await leased(store)).fencingToken).toBe(store.clock.now())
    })

    test('a token grows over a restart, also if the clock was set back', async () => {
      const store = await open()
      await store.callBack('a', some(0, 1))
      const first = await leased(store)
      await store.settle(first.id, { outcome: 'released' })
      await store.reopen()
      const second = await leased(store)
      expect(second.fencingToken).toBe(first.fencingToken + 1)
      await store.settle(second.id, { outcome: 'released' })
      store.clock.advance(-MINUTE)
      await store.reopen()
      expect((await leased(store)).fencingToken).toBe(second.fencingToken + 1)
    })

    test('a renewal, also of an expired lease, changes no token: a repeat of the pull has it', async () => {
      const store = await open()
      await store.callBack('a', some(0, 1))
      const first = await leased(store, 'k')
      await store.pass(testPolicy.leaseMillis)
      expect(await store.renew(first.id)).toMatchObject([{ refused: null }])
      await store.reopen()
      expect(await leased(store, 'k')).toMatchObject({ id: first.id, fencingToken: first.fencingToken })
    })
  })
}

async function leased(store: Driver, key: string | null = null) {
  const { lease } = await store.pullOne({ key })
  if (lease === null) throw new Error('the partition came without a lease')
  return lease
}
