import { describe, expect, test } from 'vitest'
import { attemptViews } from '../../../src/handoff/views/view-state.ts'
import { type Driver, some } from './driver.ts'
import { MINUTE, type StoreHarness, storesOf, testPolicy } from './harness.ts'

const attemptsOf = async (store: Driver) => {
  const { facts } = await store.task('a')
  return attemptViews(facts, await store.partition('a', 0, 0))
}

const outcomesOf = async (store: Driver) => (await attemptsOf(store)).map(({ outcome }) => outcome)

const fail = async (store: Driver, reason: string) => {
  const { leaseId } = await store.pullOne({ instance: 'w1' })
  store.clock.advance(1000)
  await store.settle(leaseId, { outcome: 'failed', reason, retryAfterMillis: 0 })
  await store.sweep()
}

export function historyTopic(harness: StoreHarness): void {
  describe('the history of attempts', () => {
    const open = storesOf(harness)

    test('each attempt has its holder, start, end, outcome and reason; the running one has no end', async () => {
      const store = await open()
      await store.callBack('a', some(0, 1))
      const start = store.clock.now()
      expect(await attemptsOf(store)).toEqual([])
      await fail(store, 'the table is locked')
      await store.pullOne({ instance: 'w2' })
      const failed = {
        attempt: 1,
        holder: 'w1',
        startedAt: start,
        endedAt: start + 1000,
        outcome: 'failed',
        reason: 'the table is locked',
        records: null,
      }
      const running = {
        attempt: 2,
        holder: 'w2',
        startedAt: start + 1000,
        endedAt: null,
        outcome: null,
        reason: null,
        records: null,
      }
      expect(await attemptsOf(store)).toEqual([failed, running])
    })

    test('a partition that is done at its first attempt has no history, and shows who did it and when', async () => {
      const store = await open()
      await store.callBack('a', some(0, 1))
      const startedAt = store.clock.now()
      const { leaseId } = await store.pullOne({ instance: 'w1' })
      store.clock.advance(5000)
      await store.settle(leaseId, { records: 90 })
      expect((await store.partition('a', 0, 0)).history).toBeNull()
      expect(await attemptsOf(store)).toEqual([
        {
          attempt: 1,
          holder: 'w1',
          startedAt,
          endedAt: startedAt + 5000,
          outcome: 'done',
          reason: null,
          records: 90,
        },
      ])
    })

    test('released and expired attempts are listed, an undone pull is not', async () => {
      const store = await open()
      await store.callBack('a', some(0, 1))
      await store.undo((await store.pullOne()).leaseId)
      expect(await attemptsOf(store)).toEqual([])
      await store.settle((await store.pullOne()).leaseId, { outcome: 'released', reason: 'shutting down' })
      await store.pullOne()
      await store.pass(testPolicy.leaseMillis)
      const told = (await attemptsOf(store)).map(({ attempt, outcome, reason }) => [attempt, outcome, reason])
      expect(told).toEqual([
        [1, 'released', 'shutting down'],
        [1, 'expired', 'the lease of attempt 1 expired before it was settled'],
      ])
    })

    test('a late settle or renew replaces the expiry: a renewal withdraws it, a failure sets the reason, done finishes it', async () => {
      const store = await open()
      await store.callBack('a', some(0, 1))
      const expire = async () => {
        const { leaseId } = await store.pullOne()
        await store.pass(testPolicy.leaseMillis)
        return leaseId
      }
      const renewed = await expire()
      expect((await store.task('a')).failures).toMatchObject([{ key: 'expired', count: 1 }])
      await store.renew(renewed)
      expect(await outcomesOf(store)).toEqual([null])
      expect((await store.task('a')).failures).toEqual([])
      await store.settle(renewed, { outcome: 'released' })
      const failed = await expire()
      await store.settle(failed, { outcome: 'failed', reason: 'late' })
      expect(await outcomesOf(store)).toEqual(['released', 'failed'])
      expect((await store.task('a')).failures).toMatchObject([{ outcome: 'failed', reason: 'late' }])
      await store.pass(20 * MINUTE)
      await store.settle(await expire())
      expect(await outcomesOf(store)).toEqual(['released', 'failed', 'done'])
    })

    test('the latest ten are kept, and survive a retry, a rerun and a restart', async () => {
      const store = await open({ maxAttempts: 3 })
      await store.callBack('a', some(0, 1))
      for (let round = 0; round < 4; round += 1) {
        for (let at = 0; at < 3; at += 1) await fail(store, `round ${round}, attempt ${at}`)
        await store.retry('a')
      }
      await store.settle((await store.pullOne()).leaseId)
      await store.retry('a', { done: true })
      await store.maintainAll()
      await store.reopen()
      const told = await attemptsOf(store)
      expect(told).toHaveLength(10)
      expect(told[0]).toMatchObject({ reason: 'round 1, attempt 0' })
      expect(told.at(-1)).toMatchObject({ outcome: 'done' })
    })
  })
}
