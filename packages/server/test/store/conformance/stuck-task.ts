import { describe, expect, test } from 'vitest'
import { type TaskState, taskState } from '../../../src/handoff/rules/task.ts'
import { type Driver, nameOf, one, some } from './driver.ts'
import { HOUR, type StoreHarness, storesOf, testPolicy } from './harness.ts'
import { MANY } from './lanes.ts'
import { barrier, park } from './level-barrier.ts'

export function stuckTaskTopic(harness: StoreHarness): void {
  describe('a task that only an operator can continue', () => {
    const open = storesOf(harness)

    /** One partition of level 0 is parked, and two of level 1 wait for it. */
    const stuck = async () => {
      const store = await open({ levelBarrier: true })
      await store.callBack('a', [one(0, 0), ...some(1, 2)])
      await park(store)
      return store
    }
    const inState = async (store: Driver, state: TaskState) => {
      const query = { state, parked: false, before: null, limit: 5, search: null }
      return (await store.store.tasks(query)).tasks.map(({ facts }) => facts.taskId)
    }

    test('is stalled, in its view, in the list and in events', async () => {
      const store = await open({ levelBarrier: true })
      await store.callBack('a', [one(0, 0), ...some(1, 2)])
      const { next } = await store.store.changes({ after: null, limit: 5 })
      expect(await store.state('a')).toBe('open')
      await park(store)
      expect(await store.state('a')).toBe('stalled')
      expect((await store.task('a')).facts).toMatchObject({ generation: 1, finishedAt: null })
      expect(await inState(store, 'stalled')).toEqual(['a'])
      expect(await inState(store, 'open')).toEqual([])
      const { tasks } = await store.store.changes({ after: next, limit: 5 })
      expect(tasks.map(({ facts, openLane }) => taskState(facts, openLane))).toEqual(['stalled'])
      await store.reopen()
      expect(await store.state('a')).toBe('stalled')
    })

    test('is open while anything of it is leased, delayed or ready, on whatever level', async () => {
      const store = await open({ levelBarrier: true })
      await store.callBack('a', some(1, 2))
      const [running, failed] = [await store.pullOne(), await store.pullOne()]
      await store.callBack('a', some(0, 2))
      await park(store)
      expect(await store.state('a')).toBe('open')
      await park(store)
      expect(await store.state('a')).toBe('open')
      await store.settle(failed.leaseId, { outcome: 'failed' })
      await store.settle(running.leaseId, { outcome: 'released' })
      expect(await store.state('a')).toBe('open')
      expect(await inState(store, 'open')).toEqual(['a'])
      await store.pass(HOUR)
      expect(await store.states('a')).toEqual({
        '0-0': 'parked',
        '0-1': 'parked',
        '1-0': 'held',
        '1-1': 'held',
      })
      expect(await store.state('a')).toBe('stalled')
      expect(await inState(store, 'stalled')).toEqual(['a'])
    })

    test('is stalled also after the last attempt expired', async () => {
      const store = await open({ levelBarrier: true, maxAttempts: 1 })
      await store.callBack('a', [one(0, 0), one(1, 0)])
      const { leaseId } = await store.pullOne()
      await store.pass(testPolicy.leaseMillis)
      expect(await inState(store, 'stalled')).toEqual(['a'])
      // The previous holder may still settle it as done.
      await store.settle(leaseId)
      expect(await inState(store, 'open')).toEqual(['a'])
      expect(await store.state('a')).toBe('open')
    })

    test('is not stalled while more of the level has to be read ahead', async () => {
      const store = await open({ levelBarrier: true })
      await store.callBack('a', [...some(0, MANY), one(1, 0)])
      let left = MANY
      while (left > 0) {
        const { partitions } = await store.pull({ batch: 400 })
        await store.settleAll(partitions, { outcome: 'failed', final: true })
        left -= partitions.length
        expect(await store.state('a')).toBe(left === 0 ? 'stalled' : 'open')
        expect(await inState(store, 'stalled')).toEqual(left === 0 ? ['a'] : [])
      }
    })

    test('is not stalled while resumed partitions have still to be read ahead', async () => {
      const store = await open()
      // Enough lower levels that a step may end before it reaches the open one.
      await store.callBack(
        'a',
        Array.from({ length: 1100 }, (_, level) => one(level, 0)),
      )
      await store.settleAll(await store.pullAll())
      await store.callBack('a', [...some(1100, 4), one(1101, 0)])
      await barrier(store, true)
      await park(store)
      await store.control({ verb: 'pause', taskId: 'a' })
      expect(await store.store.control({ verb: 'resume', taskId: 'a' })).toMatchObject({ state: 'open' })
      expect(await store.state('a')).toBe('open')
      expect(await inState(store, 'open')).toEqual(['a'])
      await store.maintainAll()
      for (let left = 3; left > 0; left -= 1) await park(store)
      expect(await inState(store, 'stalled')).toEqual(['a'])
    })

    test.each<[string, (store: Driver) => Promise<unknown>, TaskState]>([
      ['a retry', (store) => store.retry('a'), 'open'],
      ['skip-parked', (store) => store.control({ verb: 'skip-parked', taskId: 'a' }), 'open'],
      ['removing the barrier', (store) => barrier(store, false), 'open'],
      ['a call-back for the same level', (store) => store.callBack('a', [one(0, 7)]), 'open'],
      ['a pause', (store) => store.control({ verb: 'pause', taskId: 'a' }), 'paused'],
      ['a cancel', (store) => store.control({ verb: 'cancel', taskId: 'a' }), 'cancelled'],
      ['a call-back for a higher level', (store) => store.callBack('a', [one(7, 0)]), 'stalled'],
      ['setting the barrier again', (store) => barrier(store, true), 'stalled'],
      [
        'a seal',
        (store) => store.control({ verb: 'seal', taskId: 'a', expectedPartitions: null }),
        'stalled',
      ],
      ['a resume', (store) => store.control({ verb: 'resume', taskId: 'a' }), 'stalled'],
    ])('has the right state after %s', async (_, request, state) => {
      const store = await stuck()
      const answer = (await request(store)) as { state?: TaskState }
      expect(answer.state ?? state).toBe(state)
      expect(await store.state('a')).toBe(state)
      expect(await inState(store, state)).toEqual(['a'])
      expect((await store.task('a')).facts.generation).toBe(1)
    })

    test('a call-back for a lower level opens it, and it is stalled again when that is done', async () => {
      const store = await open({ levelBarrier: true })
      await store.callBack('a', [one(3, 0), one(4, 0)])
      await park(store)
      expect(await store.state('a')).toBe('stalled')
      await store.callBack('a', [one(1, 0)])
      expect(await inState(store, 'open')).toEqual(['a'])
      const lower = await store.pullOne()
      expect(nameOf(lower)).toBe('a-1-0')
      await store.settle(lower.leaseId)
      expect(await store.state('a')).toBe('stalled')
      expect(await inState(store, 'stalled')).toEqual(['a'])
    })

    test('a skipped level does not count, the next one with parked partitions does', async () => {
      const store = await open({ levelBarrier: true })
      await store.callBack('a', [one(0, 0), ...some(1, 2), one(2, 0)])
      await park(store)
      await store.control({ verb: 'skip-parked', taskId: 'a' })
      await park(store)
      expect(await store.state('a')).toBe('open')
      await store.settle((await store.pullOne()).leaseId)
      expect(await store.state('a')).toBe('stalled')
      expect(await store.control({ verb: 'skip-parked', taskId: 'a' })).toMatchObject({ state: 'open' })
      await store.settle((await store.pullOne()).leaseId)
      expect(await store.state('a')).toBe('stalled')
      expect(await store.retry('a')).toMatchObject({ state: 'open' })
    })

    test('is stalled by setting a barrier, and after a pause', async () => {
      const store = await open()
      await store.callBack('a', [one(0, 0), ...some(1, MANY)])
      await park(store)
      expect(await store.state('a')).toBe('open')
      await store.control({ verb: 'pause', taskId: 'a' })
      expect(await barrier(store, true)).toMatchObject({ state: 'paused' })
      expect(await store.control({ verb: 'resume', taskId: 'a' })).toMatchObject({ state: 'stalled' })
      expect(await inState(store, 'stalled')).toEqual(['a'])
      expect(await barrier(store, false)).toMatchObject({ state: 'open' })
      expect(await barrier(store, true)).toMatchObject({ state: 'stalled' })
      expect(await inState(store, 'stalled')).toEqual(['a'])
    })
  })
}
