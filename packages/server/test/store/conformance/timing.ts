import { describe, expect, test } from 'vitest'
import { countOf, quantileOf } from '../../../src/handoff/rules/durations.ts'
import { paceOf } from '../../../src/handoff/views/eta.ts'
import { overdueOf } from '../../../src/handoff/views/time-left.ts'
import { some } from './driver.ts'
import { MINUTE, type StoreHarness, storesOf, testPolicy } from './harness.ts'

export function timingTopic(harness: StoreHarness): void {
  describe('how long attempts take', () => {
    const open = storesOf(harness)

    test('is counted by task and level, and survives a restart', async () => {
      const store = await open()
      await store.callBack('a', [...some(0, 4), ...some(1, 1)])
      for (const millis of [1000, 1000, 1000, 1000, 8000]) {
        const { leaseId } = await store.pullOne()
        store.clock.advance(millis)
        await store.settle(leaseId)
      }
      await store.reopen()
      const { timing, lanes } = await store.task('a')
      expect(countOf(timing?.durations ?? [])).toBe(5)
      const median = quantileOf(timing?.durations ?? [], 0.5) ?? 0
      expect(median).toBeGreaterThan(800)
      expect(median).toBeLessThan(1250)
      expect(lanes.map(({ busyMillis, attemptsDone }) => [busyMillis, attemptsDone])).toEqual([
        [4000, 4],
        [8000, 1],
      ])
    })

    test('the view has the leased and delayed partitions of its own task', async () => {
      const store = await open()
      await store.callBack('a', some(0, 3))
      await store.callBack('b', some(0, 1))
      const start = store.clock.now()
      const [first, second] = (await store.pull({ instance: 'w', batch: 4 })).partitions.filter(
        ({ taskId }) => taskId === 'a',
      )
      await store.settle(first?.lease?.id ?? '', { outcome: 'failed', retryAfterMillis: 5 * MINUTE })
      store.clock.advance(1000)
      await store.renew(second?.lease?.id ?? '')
      const { timing } = await store.task('a')
      const under = timing?.underWay.toSorted((a, b) => a.index - b.index) ?? []
      expect(under).toMatchObject([
        { index: first?.index, state: 'delayed', dueAt: start + 5 * MINUTE },
        { index: second?.index, state: 'leased', holder: 'w', leasedAt: start, renewed: true },
        { state: 'leased', dueAt: start + testPolicy.leaseMillis, renewed: false, recordCount: 100 },
      ])
      const { tasks } = await store.store.tasks({
        state: null,
        parked: false,
        before: null,
        limit: 9,
        search: null,
      })
      expect(tasks.map(({ facts, timing: seen }) => [facts.taskId, seen?.underWay.length])).toEqual([
        ['b', 1],
        ['a', 3],
      ])
    })

    test('the lease length and the back-off of the task apply to it', async () => {
      const store = await open()
      await store.callBack('a', some(0, 1))
      await store.callBack('b', some(0, 1))
      const settings = { backoffMillis: 4000, backoffMaxMillis: 8000 }
      await store.control({ verb: 'settings', taskId: 'a', settings: { leaseMillis: 60 * MINUTE } })
      await store.control({ verb: 'settings', taskId: 'b', settings: { leaseMillis: MINUTE, ...settings } })
      const { leaseId } = await store.pullOne({ tasks: ['b'] })
      await store.pullOne({ tasks: ['a'] })
      store.clock.advance(MINUTE / 2)
      await store.renew(leaseId)
      expect((await store.task('a')).timing?.underWay).toMatchObject([{ renewed: false }])
      const { timing } = await store.task('b')
      expect(timing).toMatchObject({ underWay: [{ renewed: true }], backoffMillis: 3000 })
    })

    test('the time left is not too short while a dead worker holds the last partition', async () => {
      const store = await open()
      await store.callBack('a', some(0, 31))
      await store.pull({ instance: 'dead' })
      for (let at = 0; at < 30; at += 1) {
        const { leaseId } = await store.pullOne({ instance: 'alive' })
        store.clock.advance(1000)
        await store.settle(leaseId)
      }
      const record = await store.task('a')
      const { etaSeconds, etaWaitsFor } = paceOf(record, record.now)
      const untilExpiry = (testPolicy.leaseMillis - 30_000) / 1000
      expect(etaSeconds).toBeGreaterThan(untilExpiry)
      expect(etaWaitsFor).toBe('lease')
      expect(overdueOf(record.facts, record.timing as never, record.now)).toMatchObject([
        { partition: { holder: 'dead', index: 0 } },
      ])
    })
  })
}
