import { describe, expect, test } from 'vitest'
import { formatLeaseId } from '../../../src/handoff/lease-id.ts'
import { batchedPull, leaseOf, one, settlement, some } from './driver.ts'
import { MINUTE, type StoreHarness, storesOf } from './harness.ts'

export function settleTopic(harness: StoreHarness): void {
  describe('settle', () => {
    const open = storesOf(harness)

    test('done finishes a partition permanently', async () => {
      const store = await open()
      await store.callBack('a', some(0, 1))
      const { leaseId } = await store.pullOne()
      expect(await store.settle(leaseId)).toBeNull()
      expect(await store.partition('a', 0, 0)).toMatchObject({ state: 'done', attempts: 1 })
      expect((await store.pull()).partitions).toEqual([])
    })

    test('the same outcome again is settled again, another one is refused', async () => {
      const store = await open()
      await store.callBack('a', some(0, 3))
      for (const outcome of ['done', 'failed', 'released'] as const) {
        const { leaseId } = await store.pullOne()
        expect(await store.settle(leaseId, { outcome, retryAfterMillis: MINUTE })).toBeNull()
        for (const second of ['done', 'failed', 'released'] as const) {
          expect(await store.settle(leaseId, { outcome: second })).toBe(
            second === outcome ? null : 'lease_settled',
          )
        }
      }
      expect(await store.states('a')).toEqual({ '0-0': 'done', '0-1': 'delayed', '0-2': 'delayed' })
    })

    test('within one array the first settlement of a lease wins', async () => {
      const store = await open()
      await store.callBack('a', some(0, 1))
      const { leaseId } = await store.pullOne()
      const lease = leaseOf(leaseId)
      const settlements = [
        { lease, reported: settlement({ outcome: 'failed', reason: 'first' }) },
        { lease, reported: settlement({ outcome: 'done' }) },
        { lease, reported: settlement({ outcome: 'failed', reason: 'third' }) },
      ]
      const { settles } = await store.batch({ settles: [{ instance: null, settlements }] })
      expect(settles).toEqual([[null, 'lease_settled', null]])
      expect(await store.partition('a', 0, 0)).toMatchObject({ attempts: 1, reason: 'first' })
    })

    test('failed uses up an attempt and stores the reason; the next lease is the next attempt', async () => {
      const store = await open()
      await store.callBack('a', some(0, 1))
      const { leaseId } = await store.pullOne()
      await store.settle(leaseId, { outcome: 'failed', reason: 'the table is locked' })
      expect(await store.partition('a', 0, 0)).toMatchObject({
        state: 'delayed',
        attempts: 1,
        reason: 'the table is locked',
      })
      await store.pass(20 * MINUTE)
      expect((await store.pullOne()).lease?.attempt).toBe(2)
    })

    test('failed with no attempt left, or as final, parks', async () => {
      const store = await open({ maxAttempts: 2 })
      await store.callBack('a', some(0, 2))
      const first = await store.pullOne()
      await store.settle(first.leaseId, { outcome: 'failed', final: true, reason: 'no such table' })
      const second = await store.pullOne()
      await store.settle(second.leaseId, { outcome: 'failed', retryAfterMillis: 0 })
      await store.sweep()
      await store.settle((await store.pullOne()).leaseId, { outcome: 'failed' })
      expect(await store.states('a')).toEqual({ '0-0': 'parked', '0-1': 'parked' })
      expect(await store.partition('a', 0, 0)).toMatchObject({ attempts: 1, reason: 'no such table' })
      expect((await store.task('a')).facts).toMatchObject({ attemptsWasted: 3 })
      await store.pass(60 * MINUTE)
      expect((await store.pull()).partitions).toEqual([])
    })

    test('a back-off requested by the worker replaces the usual one, down to part of a millisecond', async () => {
      const store = await open()
      await store.callBack('a', some(0, 2))
      await store.settle((await store.pullOne()).leaseId, { outcome: 'failed', retryAfterMillis: 7 * MINUTE })
      await store.settle((await store.pullOne()).leaseId, { outcome: 'failed', retryAfterMillis: 0.25 })
      await store.pass(7 * MINUTE - 1)
      expect(await store.states('a')).toEqual({ '0-0': 'delayed', '0-1': 'ready' })
      await store.pass(1)
      expect(await store.states('a')).toEqual({ '0-0': 'ready', '0-1': 'ready' })
    })

    test('records that differ from what was declared are kept and listed', async () => {
      const store = await open()
      await store.callBack('a', some(0, 3))
      for (const records of [100, 90, null]) await store.settle((await store.pullOne()).leaseId, { records })
      const { facts, mismatches } = await store.task('a')
      expect(facts).toMatchObject({ reportedDeclared: 200, reportedRecords: 190, mismatched: 1 })
      expect(mismatches).toEqual([{ level: 0, index: 1, spelling: null, declared: 100, reported: 90 }])
    })

    test('whatever number of records workers report, the task stays readable', async () => {
      const store = await open()
      await store.callBack('a', some(0, 3))
      for (let pulled = 0; pulled < 3; pulled += 1)
        await store.settle((await store.pullOne()).leaseId, { records: Number.MAX_SAFE_INTEGER })
      await store.reopen()
      const { facts } = await store.task('a')
      expect(facts).toMatchObject({ reportedRecords: Number.MAX_SAFE_INTEGER, mismatched: 3 })
    })

    test('a lease that was never granted is unknown, whether its secret, number or partition is wrong', async () => {
      const store = await open()
      await store.callBack('a', some(0, 1))
      const { leaseId } = await store.pullOne()
      const lease = leaseOf(leaseId)
      const forged = [
        { ...lease, secret: 'A'.repeat(16) },
        { ...lease, leaseNumber: lease.leaseNumber + 1 },
        { ...lease, partition: lease.partition + 1_000_000 },
      ]
      for (const id of forged.map(formatLeaseId)) {
        expect(await store.settle(id)).toBe('lease_unknown')
        expect(await store.renew(id)).toEqual([{ refused: 'lease_unknown' }])
        expect(await store.undo(id)).toBe(0)
      }
      expect(await store.states('a')).toEqual({ '0-0': 'leased' })
    })

    test('settling comes before pulling within a batch: a released partition can be handed out again', async () => {
      const store = await open()
      await store.callBack('a', some(0, 1))
      const released = [await store.pullOne()]
      const { settles, pulls } = await store.settleAll(
        released,
        { outcome: 'released' },
        { pulls: [batchedPull()] },
      )
      expect(settles).toEqual([[null]])
      expect(pulls[0]?.partitions).toHaveLength(1)
    })

    test('the last partition to become done finishes the task', async () => {
      const store = await open()
      await store.callBack('a', [one(0, 0), one(1, 0)])
      await store.settle((await store.pullOne()).leaseId)
      expect((await store.task('a')).facts.finishedAt).toBeNull()
      store.clock.advance(MINUTE)
      await store.settle((await store.pullOne()).leaseId)
      expect((await store.task('a')).facts.finishedAt).toBe(store.clock.now())
    })
  })
}
