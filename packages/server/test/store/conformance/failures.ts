import { MAX_LISTED_FAILURES } from '@baton/protocol'
import { describe, expect, test } from 'vitest'
import { byWeight } from '../../../src/handoff/rules/failures.ts'
import { type Driver, nameOf, one, some } from './driver.ts'
import { MINUTE, type StoreHarness, storesOf, testPolicy } from './harness.ts'

const failuresOf = async (store: Driver) => byWeight((await store.task('a')).failures)

/** Hands out the next partition, which fails. */
const fail = async (store: Driver, reason: string | null, final = false) => {
  const { leaseId } = await store.pullOne()
  await store.settle(leaseId, { outcome: 'failed', reason, final, retryAfterMillis: 0 })
  await store.sweep()
  return leaseId
}

const locked = 'Error: the table is locked by transaction '

export function failuresTopic(harness: StoreHarness): void {
  describe('failures', () => {
    const open = storesOf(harness)

    test('are grouped by the line that says what went wrong, with counts of attempts and of what is parked', async () => {
      const store = await open({ maxAttempts: 1000 })
      await store.callBack('a', [one(0, 0, { recordCount: 700 }), one(1, 0, { recordCount: 50 })])
      for (let at = 0; at < 3; at += 1) await fail(store, `${locked}${at}\n    at load (/a.js:${at}:1)`)
      await fail(store, null)
      await fail(store, `${locked}17`, true)
      await fail(store, 'no such column', true)
      const [most, final, none] = await failuresOf(store)
      expect(most).toMatchObject({
        outcome: 'failed',
        reason: 'Error: the table is locked by transaction #',
        count: 4,
        parked: { partitions: 1, records: 700 },
      })
      expect(none).toMatchObject({ reason: null, key: 'none', count: 1, parked: { partitions: 0 } })
      expect(final).toMatchObject({ reason: 'no such column', parked: { partitions: 1, records: 50 } })
      const before = await failuresOf(store)
      await store.reopen()
      expect(await failuresOf(store)).toEqual(before)
    })

    test('the rarest reasons are counted together, but those of parked partitions are kept', async () => {
      const store = await open({ maxAttempts: 1000 })
      await store.callBack('a', some(0, 2))
      for (let at = 0; at < 3; at += 1) await fail(store, 'locked')
      await fail(store, 'no space', true)
      const words = 'abcdefghijklmnopqrstuvwxyz'
      for (const letter of words) await fail(store, `row ${letter}${letter}`)
      const failures = await failuresOf(store)
      expect(failures.length).toBe(MAX_LISTED_FAILURES - 2)
      expect(failures.find(({ reason }) => reason === 'locked')?.count).toBe(3)
      expect(failures.find(({ reason }) => reason === 'no space')?.parked.partitions).toBe(1)
      expect(failures.reduce((sum, { count }) => sum + count, 0)).toBe(30)
      await store.reopen()
      expect(await failuresOf(store)).toEqual(failures)
    })

    test('a partition leaves its group when it is not parked any more', async () => {
      const store = await open({ maxAttempts: 1 })
      await store.callBack('a', some(0, 3))
      const parked = async () =>
        (await failuresOf(store)).map(({ key, parked: { partitions } }) => [key, partitions])
      const { leaseId: done } = await store.pullOne()
      const { leaseId: renewed } = await store.pullOne()
      const { leaseId: failed } = await store.pullOne()
      await store.pass(testPolicy.leaseMillis)
      expect(await parked()).toEqual([['expired', 3]])
      await store.settle(done)
      await store.renew(renewed)
      expect(await parked()).toEqual([['expired', 1]])
      // A late failure says why, so the partition goes to another group.
      await store.settle(failed, { outcome: 'failed', reason: 'locked' })
      const [late, expired] = await failuresOf(store)
      expect(expired).toMatchObject({ key: 'expired', count: 1, parked: { partitions: 0 } })
      expect(late).toMatchObject({ reason: 'locked', count: 1, parked: { partitions: 1 } })
      await store.retry('a')
      expect((await parked()).map(([, partitions]) => partitions)).toEqual([0, 0])
      await store.pass(MINUTE)
    })

    test('a retry of a reason concerns what is parked for it, on all levels, and nothing else', async () => {
      const store = await open({ maxAttempts: 1000 })
      await store.callBack('a', [...some(0, 2), ...some(1, 2)])
      for (const reason of ['locked by 1', 'no space', 'locked by 2', 'no such column'])
        await fail(store, reason, true)
      const keyOf = async (text: string) =>
        (await failuresOf(store)).find(({ reason }) => reason === text)?.key ?? ''
      const reason = await keyOf('locked by #')
      expect(await store.retry('a', { reason })).toMatchObject({ changed: 2, newlyReady: 2 })
      expect((await store.pullAll()).map(nameOf)).toEqual(['a-0-0', 'a-1-0'])
      expect(await store.retry('a', { reason })).toMatchObject({ changed: 0, more: false })
      const before = await store.task('a')
      expect(await store.retry('a', { reason: 'no-such-key' })).toEqual({ kind: 'reason_unknown' })
      expect(await store.task('a')).toEqual(before)
      expect((await failuresOf(store)).map(({ parked: { partitions } }) => partitions)).toEqual([1, 1, 0])
      await store.reopen()
      expect(await store.retry('a', { reason: await keyOf('no space') })).toMatchObject({ changed: 1 })
    })

    test('a retry of a reason goes on where its last step ended, over lanes and partitions parked for others', async () => {
      const store = await open({ maxAttempts: 1 })
      await store.callBack('a', [...some(0, 700), ...Array.from({ length: 1100 }, (_, at) => one(at + 1, 0))])
      const handed = await store.pullAll(1000)
      const settlements = handed.map(({ lease, level, index }) => ({
        leaseId: lease?.id ?? '',
        reason: (level === 0 ? index % 8 !== 7 : level % 500 === 499) ? 'locked' : 'no space',
      }))
      for (const { leaseId, reason } of settlements)
        await store.settle(leaseId, { outcome: 'failed', reason, retryAfterMillis: 0 })
      const locked = settlements.filter(({ reason }) => reason === 'locked').length
      const [most, rarer] = await failuresOf(store)
      expect([most?.parked.partitions, rarer?.parked.partitions]).toEqual([1800 - locked, locked])
      expect(await store.retry('a', { reason: rarer?.key ?? '' })).toMatchObject({ changed: locked })
      const left = await store.task('a')
      expect(left.facts.partitions).toMatchObject({ ready: locked, parked: 1800 - locked })
      const { records } = await store.store.audited({ taskId: 'a', name: null, before: 1e15, limit: 1 })
      expect(records).toMatchObject([{ action: 'retry', changed: locked }])
    })
  })
}
