import { describe, expect, test } from 'vitest'
import { type Driver, nameOf, one, some } from './driver.ts'
import { DAY, HOUR, MINUTE, type StoreHarness, storesOf, testPolicy } from './harness.ts'
import { MANY } from './lanes.ts'

async function finishAll(store: Driver): Promise<void> {
  await store.settleAll(await store.pullAll(1000), { records: 100 })
}

export function retentionTopic(harness: StoreHarness): void {
  describe('retention', () => {
    const open = storesOf(harness)

    test('a finished task loses its partitions after the retention, and keeps its summary', async () => {
      const store = await open()
      await store.callBack('a', [...some(0, 3), one(1, 0)])
      await finishAll(store)
      const before = await store.task('a')
      await store.maintainAll()
      expect(await store.partitions('a')).toHaveLength(4)
      store.clock.advance(7 * DAY + 1)
      await store.maintainAll()
      expect(await store.partitions('a')).toEqual([])
      const { facts, lanes } = await store.task('a')
      expect(facts).toEqual({ ...before.facts, purgedAt: store.clock.now() })
      expect(lanes).toEqual(before.lanes)
    })

    test('a late repeat is answered as duplicates, new partitions in it are not ignored', async () => {
      const store = await open()
      await store.callBack('a', some(0, 3))
      await finishAll(store)
      await store.maintainAll(-1)
      expect(await store.callBack('a', some(0, 3, { recordCount: 5 }))).toMatchObject({
        kind: 'stored',
        accepted: 0,
        duplicates: 3,
      })
      expect((await store.pull()).partitions).toEqual([])
      expect(await store.callBack('a', [...some(0, 4), one(1, 0)])).toMatchObject({
        accepted: 2,
        duplicates: 3,
      })
      expect((await store.task('a')).facts).toMatchObject({ generation: 2, purgedAt: null })
      expect((await store.pullAll(1)).map(nameOf)).toEqual(['a-0-3', 'a-1-0'])
    })

    test('a task that was purged, reopened and finished is purged again', async () => {
      const store = await open()
      await store.callBack('a', some(0, 3))
      await finishAll(store)
      await store.maintainAll(-1)
      await store.callBack('a', some(0, 5))
      await finishAll(store)
      await store.maintainAll(-1)
      expect(await store.partitions('a')).toEqual([])
      expect((await store.task('a')).facts.partitions.done).toBe(5)
    })

    test('the retention of a task starts again when it is reopened and finished, however fast', async () => {
      const store = await open()
      await store.callBack('a', some(0, 3))
      await finishAll(store)
      store.clock.advance(7 * DAY + 1)
      await store.maintainAll()
      await store.callBack('a', some(0, 4))
      await store.settle((await store.pullOne()).leaseId)
      // Has nothing new, and reopens nothing.
      await store.callBack('a', some(0, 4))
      const finishedAt = store.clock.now()
      await store.maintainAll()
      expect((await store.task('a')).facts).toMatchObject({ generation: 2, finishedAt, purgedAt: null })
      expect(await store.partitions('a')).toHaveLength(1)
      store.clock.advance(7 * DAY)
      await store.callBack('a', some(0, 4))
      expect((await store.task('a')).facts).toMatchObject({ generation: 2, finishedAt })
      store.clock.advance(1)
      await store.maintainAll()
      expect(await store.partitions('a')).toEqual([])
    })

    test('an open, paused or stalled task is never purged', async () => {
      const store = await open()
      await store.callBack('stalled', some(0, 1))
      await store.settle((await store.pullOne()).leaseId, { outcome: 'failed', final: true })
      await store.callBack('paused', some(0, 1))
      await store.control({ verb: 'pause', taskId: 'paused' })
      await store.callBack('open', some(0, 2))
      await store.settle((await store.pullOne()).leaseId)
      store.clock.advance(100 * DAY)
      await store.maintainAll()
      for (const [taskId, count] of [
        ['stalled', 1],
        ['paused', 1],
        ['open', 2],
      ] as const)
        expect(await store.partitions(taskId)).toHaveLength(count)
    })

    test('a cancelled task is purged once its leases have ended, and blocks nothing until then', async () => {
      const store = await open()
      await store.callBack('cancelled', some(0, 3))
      await store.pull({ batch: 2 })
      await store.control({ verb: 'cancel', taskId: 'cancelled' })
      store.clock.advance(1)
      await store.callBack('done', some(0, 1))
      await finishAll(store)
      store.clock.advance(1)
      await store.maintainAll(0)
      expect(await store.partitions('done')).toEqual([])
      expect(await store.partitions('cancelled')).toHaveLength(3)
      await store.pass(testPolicy.leaseMillis)
      await store.maintainAll(0)
      expect(await store.partitions('cancelled')).toEqual([])
    })

    test('a long cancelled task is purged correctly if its retention ends while it is being rewritten', async () => {
      const store = await open()
      await store.callBack('a', Array.from({ length: 30 }, (_, level) => some(level, 100)).flat())
      await store.store.control({ verb: 'cancel', taskId: 'a' })
      store.clock.advance(8 * DAY)
      await store.maintainAll()
      expect(await store.partitions('a')).toEqual([])
      expect((await store.task('a')).facts.partitions.cancelled).toBe(3000)
    })

    test('thousands of partitions are purged in small steps, with pulls in between', async () => {
      const store = await open()
      await store.callBack('a', some(0, MANY))
      await finishAll(store)
      await store.callBack('b', some(0, 10))
      let steps = 0
      while ((await store.maintain(-1)).more) {
        steps += 1
        await store.pull()
      }
      expect(steps).toBeGreaterThanOrEqual(Math.floor(MANY / 1000))
      expect(await store.partitions('a')).toEqual([])
    })

    test('running a purged task again is refused; its leases are unknown', async () => {
      const store = await open()
      await store.callBack('a', some(0, 1))
      const { leaseId } = await store.pullOne()
      await store.settle(leaseId)
      await store.maintainAll(-1)
      expect(await store.retry('a', { done: true })).toEqual({ kind: 'task_purged' })
      expect(await store.settle(leaseId)).toBe('lease_unknown')
    })

    test('a task counts as purged from the first step on: its remaining partitions are incomplete', async () => {
      const store = await open()
      await store.callBack('a', some(0, MANY))
      await finishAll(store)
      const { finishedAt } = (await store.task('a')).facts
      store.clock.advance(7 * DAY + 1)
      await store.maintain()
      const purgedAt = store.clock.now()
      const left = await store.partitions('a')
      expect(left.length).toBeGreaterThan(0)
      expect(left.length).toBeLessThan(MANY)
      expect((await store.task('a')).facts).toMatchObject({ finishedAt, purgedAt })
      expect(await store.retry('a', { done: true })).toEqual({ kind: 'task_purged' })
      // The rest is removed, also after a restart with a longer retention.
      await store.reopen()
      store.clock.advance(1)
      await store.maintainAll(100 * DAY)
      expect(await store.partitions('a')).toEqual([])
      expect((await store.task('a')).facts).toMatchObject({ finishedAt, purgedAt })
    })

    test('a task that is called back in the middle of its purge keeps what is left', async () => {
      const store = await open()
      await store.callBack('a', some(0, MANY))
      await finishAll(store)
      await store.maintain(-1)
      const left = (await store.partitions('a')).length
      await store.callBack('a', some(1, 1))
      await store.maintainAll(-1)
      expect((await store.task('a')).facts).toMatchObject({ generation: 2, purgedAt: null })
      expect(await store.partitions('a')).toHaveLength(left + 1)
      await finishAll(store)
      await store.maintainAll()
      expect(await store.partitions('a')).toHaveLength(left + 1)
      await store.maintainAll(-1)
      expect(await store.partitions('a')).toEqual([])
    })

    test('clients unseen for a week are forgotten, unless they hold a lease', async () => {
      const store = await open({ leaseMillis: 30 * DAY, leaseMillisPerThousandRecords: 0 })
      await store.callBack('a', some(0, 1), 'producer')
      await store.pullOne({ instance: 'holder' })
      await store.pull({ instance: 'nobody' })
      await store.store.recordHeartbeats([
        {
          instanceId: 'idle',
          role: 'worker',
          pulls: 0,
          seenMillisAgo: { first: 0, last: 0 },
          node: null,
        },
      ])
      store.clock.advance(6 * DAY)
      await store.maintainAll()
      expect(await store.store.instance('idle')).not.toBeNull()
      store.clock.advance(DAY + MINUTE)
      await store.maintainAll()
      expect(await store.store.instance('idle')).toBeNull()
      expect(await store.store.instance('producer')).toBeNull()
      expect(await store.store.instance('holder')).not.toBeNull()
    })

    test('a node that stopped gracefully is forgotten after an hour, a crashed one after a week', async () => {
      const store = await open()
      const heartbeat = { role: 'service' as const, pulls: 0, seenMillisAgo: { first: 0, last: 0 } }
      const node = { version: '1.2.3', startedAt: store.clock.now(), draining: false, load: 12 }
      const ended = { ...heartbeat, node: { ...node, draining: true } }
      await store.store.recordHeartbeats([
        { ...ended, instanceId: 'ended' },
        { ...ended, instanceId: 'restarted' },
        { ...heartbeat, node, instanceId: 'died' },
      ])
      store.clock.advance(MINUTE)
      await store.store.recordHeartbeats([{ ...heartbeat, node, instanceId: 'restarted' }])
      const known = async () => {
        await store.maintainAll()
        const { instances } = await store.store.instances({ after: null, limit: 9 })
        return instances.map(({ instanceId }) => instanceId)
      }
      store.clock.advance(HOUR - 2 * MINUTE)
      expect(await known()).toEqual(['died', 'ended', 'restarted'])
      store.clock.advance(2 * MINUTE)
      expect(await known()).toEqual(['died', 'restarted'])
      store.clock.advance(6 * DAY)
      expect(await known()).toEqual(['died', 'restarted'])
      store.clock.advance(DAY)
      expect(await known()).toEqual([])
    })

    test('the work of one instance is never attributed to another after it was forgotten', async () => {
      const store = await open()
      await store.callBack('a', some(0, 1))
      await store.settle((await store.pullOne({ instance: 'first' })).leaseId)
      expect(await store.partition('a', 0, 0)).toMatchObject({ holder: 'first' })
      store.clock.advance(8 * DAY)
      await store.maintainAll(100 * DAY)
      await store.callBack('b', some(0, 1))
      await store.pullOne({ instance: 'second' })
      store.clock.advance(HOUR)
      expect(await store.partition('a', 0, 0)).toMatchObject({ holder: 'first' })
    })
  })
}
