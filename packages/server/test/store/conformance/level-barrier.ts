import { describe, expect, test } from 'vitest'
import { waitingFor } from '../../../src/handoff/views/view-state.ts'
import { batchedPull, type Driver, leaseOf, nameOf, one, settlement, some } from './driver.ts'
import { HOUR, type StoreHarness, storesOf, testPolicy } from './harness.ts'
import { MANY } from './lanes.ts'

export const barrier = (store: Driver, enabled: boolean) =>
  store.control({ verb: 'level-barrier', taskId: 'a', enabled })

/** More than a store skips in one transaction. */
const LEVELS = 510

export const park = async (store: Driver) =>
  store.settle((await store.pullOne()).leaseId, { outcome: 'failed', final: true })

export function levelBarrierTopic(harness: StoreHarness): void {
  describe('level barrier', () => {
    const open = storesOf(harness)

    test('a level is held until every lower one of its task is done', async () => {
      const store = await open({ levelBarrier: true })
      await store.callBack('a', [...some(0, 2), one(1, 0), one(5, 0)])
      expect(await store.states('a')).toEqual({
        '0-0': 'ready',
        '0-1': 'ready',
        '1-0': 'held',
        '5-0': 'held',
      })
      const [first, second] = [await store.pullOne(), await store.pullOne()]
      expect((await store.pull()).partitions).toEqual([])
      await store.settle(first.leaseId)
      expect((await store.pull()).partitions).toEqual([])
      await store.settle(second.leaseId)
      const third = await store.pullOne()
      expect(nameOf(third)).toBe('a-1-0')
      expect((await store.pull()).partitions).toEqual([])
      await store.settle(third.leaseId)
      expect(nameOf(await store.pullOne())).toBe('a-5-0')
    })

    test('the view says what higher levels wait for, unless nothing waits', async () => {
      const store = await open({ levelBarrier: true })
      const waited = async () => waitingFor(await store.task('a'))
      await store.callBack('a', [one(1, 0)])
      await store.settle((await store.pullOne()).leaseId)
      await store.callBack('a', [one(0, 0)])
      expect(await waited()).toBeNull()
      await store.callBack('a', [one(1, 1)])
      expect(await waited()).toEqual({ level: 0, parked: 0, unfinished: 1 })
      await store.settle((await store.pullOne()).leaseId)
      expect(await waited()).toBeNull()
    })

    test('the barrier holds only its own task: other tasks continue', async () => {
      const store = await open({ levelBarrier: true })
      await store.callBack('a', [one(0, 0), one(1, 0)])
      await store.callBack('b', [one(1, 0)])
      expect((await store.pullAll(1)).map(nameOf)).toEqual(['a-0-0', 'b-1-0'])
    })

    test('the settle that opens a level reports ready partitions, and a pull in its batch gets one', async () => {
      const store = await open({ levelBarrier: true })
      await store.callBack('a', [one(0, 0), ...some(1, 2)])
      const answers = await store.settleAll([await store.pullOne()], {}, { pulls: [batchedPull()] })
      expect(answers.newlyReady).toBeGreaterThanOrEqual(2)
      expect(answers.pulls[0]?.partitions.map(nameOf)).toEqual(['a-1-0'])
    })

    test('a pull in a batch with a repeated settle gets one, too', async () => {
      const store = await open({ levelBarrier: true })
      await store.callBack('a', [...some(0, 2), one(2, 0)])
      const [first, second] = [await store.pullOne(), await store.pullOne()]
      await store.settle(first.leaseId)
      await store.callBack('b', [one(1, 0)])
      const pulls = [batchedPull({ batch: 10 })]
      const answers = await store.settleAll([first, second], {}, { pulls })
      expect(answers.pulls[0]?.partitions.map(nameOf)).toEqual(['b-1-0', 'a-2-0'])
    })

    test('a partition released into a level that the same batch opens is reported as ready, too', async () => {
      const store = await open({ levelBarrier: true })
      await store.callBack('a', [one(1, 0)])
      const higher = leaseOf((await store.pullOne()).leaseId)
      await store.callBack('a', [one(0, 0)])
      const lower = leaseOf((await store.pullOne()).leaseId)
      const settlements = [
        { lease: higher, reported: settlement({ outcome: 'released' }) },
        { lease: lower, reported: settlement() },
      ]
      const answers = await store.batch({ settles: [{ instance: null, settlements }] })
      expect(answers.newlyReady).toBeGreaterThanOrEqual(1)
      expect(nameOf(await store.pullOne())).toBe('a-1-0')
    })

    test('a later call-back for a lower level closes it again; valid leases continue', async () => {
      const store = await open({ levelBarrier: true })
      await store.callBack('a', some(2, 3))
      const running = await store.pullOne()
      await store.callBack('a', some(1, 1))
      expect(await store.states('a')).toEqual({
        '1-0': 'ready',
        '2-0': 'leased',
        '2-1': 'held',
        '2-2': 'held',
      })
      expect(await store.settle(running.leaseId)).toBeNull()
      const lower = await store.pullOne()
      expect(nameOf(lower)).toBe('a-1-0')
      expect((await store.pull()).partitions).toEqual([])
      await store.settle(lower.leaseId)
      expect((await store.pullAll(1)).map(nameOf)).toEqual(['a-2-1', 'a-2-2'])
    })

    test('partitions released before a level closed are handed out when it opens again, also after a view', async () => {
      for (const looks of [false, true]) {
        const store = await open({ levelBarrier: true })
        const look = async () => looks && (await store.task('a'))
        await store.callBack('a', some(1, 20))
        const [first, ...others] = await store.pullAll(1)
        await look()
        for (const { lease } of others) await store.settle(lease?.id ?? '')
        await look()
        await store.settle(first?.lease?.id ?? '', { outcome: 'released' })
        await store.callBack('a', some(0, 1))
        const lower = await store.pullOne()
        expect(nameOf(lower)).toBe('a-0-0')
        await store.settle(lower.leaseId)
        expect(nameOf(await store.pullOne())).toBe('a-1-0')
      }
    })

    test('parked partitions keep a level closed; skip-parked opens it, and reports what became ready', async () => {
      const store = await open({ levelBarrier: true })
      await store.callBack('a', [one(0, 0), one(1, 0)])
      await park(store)
      expect((await store.pull()).partitions).toEqual([])
      expect(await store.control({ verb: 'skip-parked', taskId: 'a' })).toMatchObject({
        kind: 'applied',
        changed: 1,
        newlyReady: 1,
      })
      expect(await store.control({ verb: 'skip-parked', taskId: 'a' })).toMatchObject({ changed: 0 })
      expect(nameOf(await store.pullOne())).toBe('a-1-0')
    })

    test('a parked partition that is retried keeps the next level closed until it is done', async () => {
      const store = await open({ levelBarrier: true })
      await store.callBack('a', [one(0, 0), one(1, 0)])
      await park(store)
      await store.retry('a')
      const again = await store.pullOne()
      expect(nameOf(again)).toBe('a-0-0')
      expect((await store.pull()).partitions).toEqual([])
      await store.settle(again.leaseId)
      expect(nameOf(await store.pullOne())).toBe('a-1-0')
    })

    test('a skipped level closes the others again when its parked partition is retried', async () => {
      const store = await open({ levelBarrier: true })
      await store.callBack('a', [one(0, 0), ...some(1, 3)])
      await park(store)
      await store.control({ verb: 'skip-parked', taskId: 'a' })
      await store.pullOne()
      await store.retry('a')
      expect(await store.states('a')).toEqual({
        '0-0': 'ready',
        '1-0': 'leased',
        '1-1': 'held',
        '1-2': 'held',
      })
    })

    test('a late settle of a parked partition as done opens the next level', async () => {
      const store = await open({ levelBarrier: true, maxAttempts: 1 })
      await store.callBack('a', [one(0, 0), one(1, 0)])
      const { leaseId } = await store.pullOne()
      await store.pass(testPolicy.leaseMillis)
      await store.settle(leaseId)
      expect(nameOf(await store.pullOne())).toBe('a-1-0')
    })

    test('a barrier is set and removed for one task, and both may be repeated', async () => {
      const store = await open()
      await store.callBack('a', [one(0, 0), one(1, 0), one(2, 0)])
      expect(await barrier(store, true)).toMatchObject({ kind: 'applied', changed: 1 })
      expect(await barrier(store, true)).toMatchObject({ changed: 0 })
      expect(await store.states('a')).toEqual({ '0-0': 'ready', '1-0': 'held', '2-0': 'held' })
      await store.pullOne()
      expect((await store.pull()).partitions).toEqual([])
      expect(await barrier(store, false)).toMatchObject({ changed: 1, newlyReady: 2 })
      expect(await barrier(store, false)).toMatchObject({ changed: 0 })
      expect((await store.pullAll(1)).map(nameOf)).toEqual(['a-1-0', 'a-2-0'])
    })

    test('a paused task behind a barrier is held until both end', async () => {
      const store = await open({ levelBarrier: true })
      await store.callBack('a', [one(0, 0), one(1, 0)])
      const { leaseId } = await store.pullOne()
      await store.control({ verb: 'pause', taskId: 'a' })
      await store.settle(leaseId)
      expect((await store.pull()).partitions).toEqual([])
      await store.control({ verb: 'resume', taskId: 'a' })
      expect(nameOf(await store.pullOne())).toBe('a-1-0')
    })

    test('levels of thousands are closed and opened in bounded steps, and nothing is handed out too early', async () => {
      const store = await open()
      await store.callBack('a', [...some(1, MANY), ...some(2, MANY)])
      await barrier(store, true)
      await store.callBack('a', some(0, 1))
      const { partitions } = await store.pull({ batch: 100 })
      expect(partitions.map(nameOf)).toEqual(['a-0-0'])
      await store.reopen()
      expect((await store.pull({ batch: 100 })).partitions).toEqual([])
      await store.settle(partitions[0]?.lease?.id ?? '')
      const levels = (await store.pullAll(1000)).map(({ level }) => level)
      expect(levels).toHaveLength(MANY)
      expect(new Set(levels)).toEqual(new Set([1]))
    })

    test('a level with thousands of released partitions closes and opens again: none is handed out meanwhile, none is lost', async () => {
      const store = await open({ levelBarrier: true })
      await store.callBack('a', some(1, MANY))
      for (const batch of [900, 900, 700]) {
        const { partitions } = await store.pull({ batch })
        await store.settleAll(partitions, { outcome: 'released', retryAfterMillis: HOUR })
      }
      await store.pass(HOUR)
      await store.callBack('a', some(0, 1))
      const lower = await store.pullOne()
      expect(nameOf(lower)).toBe('a-0-0')
      expect((await store.pull({ batch: 100 })).partitions).toEqual([])
      const answers = await store.settleAll([lower], {}, { pulls: [batchedPull({ batch: 100 })] })
      const taken = [...(answers.pulls[0]?.partitions ?? []), ...(await store.pullAll(500))].map(nameOf)
      expect(taken).toHaveLength(MANY)
      expect(new Set(taken).size).toBe(MANY)
    })

    test('if a barrier is removed before it was set completely, each level continues in its order', async () => {
      const store = await open()
      await store.callBack('a', Array.from({ length: 40 }, (_, level) => some(level, 20)).flat())
      await store.control({ verb: 'pause', taskId: 'a' })
      await store.control({ verb: 'resume', taskId: 'a' })
      await store.maintainAll()
      // One step only.
      await store.store.control({ verb: 'level-barrier', taskId: 'a', enabled: true })
      await barrier(store, false)
      await store.maintainAll()
      const names = (await store.pullAll(7)).map(({ level, index }) => `${level}-${index}`)
      expect(names).toEqual(Array.from({ length: 800 }, (_, at) => `${Math.floor(at / 20)}-${at % 20}`))
    })

    test('one skip-parked skips hundreds of levels, a bounded number at a time', async () => {
      const store = await open()
      await store.callBack(
        'a',
        Array.from({ length: LEVELS }, (_, level) => one(level, 0)),
      )
      await store.settleAll(await store.pullAll(1000), { outcome: 'failed', final: true })
      await store.callBack('a', [one(LEVELS, 0)])
      await barrier(store, true)
      expect((await store.pull()).partitions).toEqual([])
      expect(await store.control({ verb: 'skip-parked', taskId: 'a' })).toMatchObject({ changed: LEVELS })
      expect(nameOf(await store.pullOne())).toBe(`a-${LEVELS}-0`)
      expect(await store.control({ verb: 'skip-parked', taskId: 'a' })).toMatchObject({ changed: 0 })
    })

    test('the last lease of a skipped level opens the next when it expires without attempts left', async () => {
      const store = await open({ levelBarrier: true, maxAttempts: 1 })
      await store.callBack('a', [...some(0, 2), one(1, 0)])
      await park(store)
      await store.pullOne()
      await store.control({ verb: 'skip-parked', taskId: 'a' })
      expect((await store.pull()).partitions).toEqual([])
      const swept = await store.pass(testPolicy.leaseMillis)
      expect(swept).toMatchObject({ parked: 1 })
      expect(swept.woken).toBeGreaterThanOrEqual(1)
      expect(nameOf(await store.pullOne())).toBe('a-1-0')
    })
  })
}
