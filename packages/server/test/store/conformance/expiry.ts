import { describe, expect, test } from 'vitest'
import { some } from './driver.ts'
import { MINUTE, type StoreHarness, storesOf, testPolicy } from './harness.ts'

export function expiryTopic(harness: StoreHarness): void {
  describe('expiry and sweep', () => {
    const open = storesOf(harness)

    test('a lease ends at its expiry, not before, and uses up an attempt', async () => {
      const store = await open()
      await store.callBack('a', some(0, 1))
      await store.pullOne({ instance: 'w' })
      expect(await store.pass(testPolicy.leaseMillis - 1)).toMatchObject({
        expired: 0,
        woken: 0,
        more: false,
        nextDueInMillis: 1,
      })
      expect(await store.pass(1)).toMatchObject({ expired: 1, parked: 0 })
      expect(await store.partition('a', 0, 0)).toMatchObject({
        state: 'delayed',
        attempts: 1,
        reason: expect.stringContaining('expired'),
      })
      await store.pass(testPolicy.backoffMillis)
      expect((await store.pullOne()).lease?.attempt).toBe(2)
    })

    test('the last attempt to expire parks', async () => {
      const store = await open({ maxAttempts: 2 })
      await store.callBack('a', some(0, 1))
      await store.pullOne()
      await store.pass(testPolicy.leaseMillis)
      await store.pass(testPolicy.backoffMillis)
      await store.pullOne()
      expect(await store.pass(testPolicy.leaseMillis)).toMatchObject({ expired: 1, parked: 1, woken: 0 })
      expect(await store.states('a')).toEqual({ '0-0': 'parked' })
      expect(await store.sweep()).toMatchObject({ nextDueInMillis: null })
    })

    test('during the grace period leases stay, while back-offs end', async () => {
      const store = await open()
      await store.callBack('a', some(0, 2))
      const failing = await store.pullOne()
      await store.pullOne()
      await store.settle(failing.leaseId, { outcome: 'failed' })
      store.clock.advance(60 * MINUTE)
      expect(await store.sweep(100, false)).toMatchObject({ expired: 0, woken: 1 })
      expect(await store.states('a')).toEqual({ '0-0': 'ready', '0-1': 'leased' })
    })

    test('a grace period that begins while a sweep waits for its turn applies to that sweep', async () => {
      const store = await open()
      await store.callBack('a', some(0, 1))
      const { leaseId } = await store.pullOne()
      store.clock.advance(60 * MINUTE)
      let mayExpire = true
      const running = store.callBack('b', some(0, 1))
      const waiting = store.store.sweep({ limit: 100, mayExpireLeases: () => mayExpire })
      mayExpire = false
      await running
      expect(await waiting).toMatchObject({ expired: 0 })
      expect(await store.renew(leaseId)).toMatchObject([{ refused: null }])
      expect(await store.states('a')).toEqual({ '0-0': 'leased' })
    })

    test('at most the limit of each kind is ended at a time, the earliest first', async () => {
      const store = await open()
      await store.callBack('a', some(0, 5))
      for (let pulled = 0; pulled < 5; pulled += 1) {
        await store.pullOne()
        store.clock.advance(MINUTE)
      }
      store.clock.advance(60 * MINUTE)
      expect(await store.sweep(2)).toMatchObject({ expired: 2, more: true, nextDueInMillis: 0 })
      expect(await store.states('a')).toEqual({
        '0-0': 'delayed',
        '0-1': 'delayed',
        '0-2': 'leased',
        '0-3': 'leased',
        '0-4': 'leased',
      })
      expect(await store.sweep(2)).toMatchObject({ expired: 2, more: true })
      expect(await store.sweep(2)).toMatchObject({ expired: 1 })
    })

    test('without a back-off, an expired partition is ready within the same sweep', async () => {
      const store = await open({ backoffMillis: 0, backoffMaxMillis: 0 })
      await store.callBack('a', some(0, 1))
      await store.pullOne()
      expect(await store.pass(testPolicy.leaseMillis)).toMatchObject({ expired: 1, woken: 1 })
      expect(await store.states('a')).toEqual({ '0-0': 'ready' })
    })

    test('a second sweep changes nothing', async () => {
      const store = await open()
      await store.callBack('a', some(0, 3))
      await store.pull({ batch: 3 })
      await store.pass(testPolicy.leaseMillis)
      const before = await store.partitions('a')
      expect(await store.sweep()).toMatchObject({ expired: 0, woken: 0 })
      expect(await store.partitions('a')).toEqual(before)
    })

    test('a partition whose lane closed meanwhile becomes held', async () => {
      const store = await open()
      await store.callBack('a', some(0, 1))
      await store.settle((await store.pullOne()).leaseId, { outcome: 'failed' })
      await store.control({ verb: 'pause', taskId: 'a' })
      await store.pass(20 * MINUTE)
      expect(await store.states('a')).toEqual({ '0-0': 'held' })
      expect((await store.pull()).partitions).toEqual([])
      await store.control({ verb: 'resume', taskId: 'a' })
      expect((await store.pullOne()).lease?.attempt).toBe(2)
    })

    test('leases and back-offs survive a restart with their times', async () => {
      const store = await open()
      await store.callBack('a', some(0, 2))
      await store.settle((await store.pullOne()).leaseId, { outcome: 'failed', retryAfterMillis: 5 * MINUTE })
      const { leaseId } = await store.pullOne()
      await store.reopen()
      await store.pass(5 * MINUTE)
      expect(await store.states('a')).toEqual({ '0-0': 'ready', '0-1': 'leased' })
      expect(await store.settle(leaseId)).toBeNull()
    })
  })
}
