import { describe, expect, test } from 'vitest'
import { factsOf } from '../../../src/handoff/outbox.ts'
import type { TaskSettingsChange } from '../../../src/handoff/rules/policy.ts'
import { batchedCallBack, type Driver, some } from './driver.ts'
import { HOUR, type StoreHarness, storesOf, testPolicy } from './harness.ts'
import { log, subscribe, told } from './subscriber.ts'

const set = (store: Driver, settings: TaskSettingsChange) =>
  store.control({ verb: 'settings', taskId: 'a', settings })

/** A task that pauses itself when half of its last four attempts failed, with many partitions. */
const pausingTask = async (store: Driver): Promise<void> => {
  await store.callBack('a', some(0, 40))
  await set(store, { pauseAfterFailures: { share: 0.5, of: 4 } })
}

type Outcome = 'done' | 'failed' | 'released'

async function attempt(store: Driver, ...outcomes: Outcome[]): Promise<void> {
  for (const outcome of outcomes) await store.settle((await store.pullOne()).leaseId, { outcome })
}

const windowOf = async (store: Driver) => (await store.task('a')).facts.failureWindow
const because = '2 of the last 4 attempts failed or expired'

export function pauseAfterFailuresTopic(harness: StoreHarness): void {
  describe('a pause after failures', () => {
    const open = storesOf(harness)

    test('begins with the failure that reaches the share, also after a restart, and says why and since when', async () => {
      const store = await open()
      const { id } = await subscribe(store, { types: ['task.paused'] })
      await pausingTask(store)
      await attempt(store, 'failed', 'done', 'done')
      await store.reopen()
      expect(await windowOf(store)).toBe('100')
      store.clock.advance(1)
      await attempt(store, 'done')
      expect(await store.state('a')).toBe('open')
      await attempt(store, 'failed')
      expect([await store.state('a'), await windowOf(store)]).toEqual(['open', '0001'])
      const { leaseId } = await store.pullOne()
      await store.settle(leaseId, { outcome: 'failed' })
      const pausedAt = store.clock.now()
      await store.reopen()
      expect(await store.state('a')).toBe('paused')
      expect((await store.pull()).partitions).toEqual([])
      expect((await store.task('a')).facts.stamps?.paused).toEqual([pausedAt, null, because])
      const query = { taskId: 'a', name: null, before: Number.MAX_SAFE_INTEGER, limit: 1 }
      expect((await store.store.audited(query)).records).toMatchObject([
        { action: 'pause', at: pausedAt, name: null, address: null, request: { because } },
      ])
      expect(await told(store, id)).toEqual(['task.paused a'])
      const [event] = await log(store, id)
      expect(event && factsOf(event.message)).toMatchObject({ partitions: { total: 40, done: 3 }, because })
    })

    test('begins only when enough attempts have ended', async () => {
      const store = await open()
      await pausingTask(store)
      await attempt(store, 'failed', 'failed', 'failed')
      expect(await store.state('a')).toBe('open')
      await attempt(store, 'done')
      expect(await store.state('a')).toBe('open')
      await attempt(store, 'failed')
      expect(await store.state('a')).toBe('paused')
      expect((await store.task('a')).facts.stamps?.paused?.[2]).toBe(
        '3 of the last 4 attempts failed or expired',
      )
    })

    test('has the pulls of the same batch find nothing', async () => {
      const store = await open()
      await store.callBack('a', some(0, 3))
      await set(store, { pauseAfterFailures: { share: 1, of: 2 } })
      const { partitions } = await store.pull({ batch: 2 })
      await store.settleAll(partitions, { outcome: 'failed' })
      expect((await store.pull({ batch: 5 })).partitions).toEqual([])
      expect(await store.states('a')).toEqual({ '0-0': 'delayed', '0-1': 'delayed', '0-2': 'held' })
    })

    test('counts expiries, and neither releases, undone pulls nor revoked leases', async () => {
      const store = await open()
      await pausingTask(store)
      await attempt(store, 'released', 'released', 'released', 'released')
      await store.undo((await store.pullOne()).leaseId)
      await store.pull({ batch: 4, instance: 'w' })
      await store.store.revokeLeases({ instanceId: 'w', limit: 10 })
      expect([await store.state('a'), await windowOf(store)]).toEqual(['open', ''])
      await store.pull({ batch: 4 })
      await store.pass(testPolicy.leaseMillis + 1)
      expect([await store.state('a'), await windowOf(store)]).toEqual(['paused', '1111'])
      expect((await store.task('a')).facts.stamps?.paused?.[2]).toBe(
        '4 of the last 4 attempts failed or expired',
      )
    })

    test('counts an attempt once, however late its worker reports', async () => {
      const store = await open({ ...testPolicy, backoffMillis: HOUR, backoffMaxMillis: HOUR })
      await store.callBack('a', some(0, 10))
      await set(store, { pauseAfterFailures: { share: 1, of: 10 } })
      const leases = []
      for (let at = 0; at < 3; at += 1) leases.push((await store.pullOne()).leaseId)
      const [failed = '', done = '', renewed = ''] = leases
      await store.pass(testPolicy.leaseMillis + 1)
      expect(await windowOf(store)).toBe('111')
      expect(await store.settle(failed, { outcome: 'failed', final: true })).toBeNull()
      expect(await store.settle(done)).toBeNull()
      expect(await windowOf(store)).toBe('111')
      expect(await store.renew(renewed)).toMatchObject([{ refused: null }])
      expect(await windowOf(store)).toBe('11')
      expect(await store.settle(renewed)).toBeNull()
      expect(await windowOf(store)).toBe('110')
    })

    test('does not count a late report of a revoked lease', async () => {
      const store = await open()
      await pausingTask(store)
      const leases = []
      for (let at = 0; at < 2; at += 1) leases.push((await store.pullOne({ instance: 'w' })).leaseId)
      await store.store.revokeLeases({ instanceId: 'w', limit: 10 })
      const [failed = '', done = ''] = leases
      expect(await store.settle(failed, { outcome: 'failed' })).toBeNull()
      expect(await store.settle(done)).toBeNull()
      expect(await windowOf(store)).toBe('')
    })

    test.each<[string, (store: Driver) => Promise<unknown>]>([
      ['resume', (store) => store.control({ verb: 'resume', taskId: 'a' })],
      ['retry', (store) => store.retry('a')],
      ['a retry of named partitions', (store) => store.retry('a', { partitions: [{ level: 0, index: 0 }] })],
      ['another share', (store) => set(store, { pauseAfterFailures: { share: 0.6, of: 4 } })],
      [
        'a call-back with another number',
        (store) =>
          store.batch({
            callBacks: [
              {
                ...batchedCallBack('a', some(0, 1)),
                settings: { pauseAfterFailures: { share: 0.5, of: 5 } },
              },
            ],
          }),
      ],
      ['no such setting', (store) => set(store, { pauseAfterFailures: null })],
    ])('starts to count again after %s', async (_, change) => {
      const store = await open()
      await pausingTask(store)
      await attempt(store, 'done', 'done', 'failed')
      await set(store, { weight: 2, pauseAfterFailures: { share: 0.5, of: 4 } })
      expect(await windowOf(store)).toBe('001')
      await change(store)
      expect(await windowOf(store)).toBe('')
      await attempt(store, 'failed')
      expect(await store.state('a')).toBe('open')
    })

    test('ends with resume, and begins again after as many attempts', async () => {
      const store = await open()
      const { id } = await subscribe(store, { types: ['task.paused'] })
      await pausingTask(store)
      await attempt(store, 'failed', 'failed', 'failed', 'failed')
      const resumed = await store.control({ verb: 'resume', taskId: 'a' })
      expect(resumed).toMatchObject({ state: 'open', changed: 1 })
      expect((await store.task('a')).facts.stamps?.paused).toBeUndefined()
      await attempt(store, 'failed', 'failed', 'failed')
      expect(await store.state('a')).toBe('open')
      await attempt(store, 'failed')
      expect(await store.state('a')).toBe('paused')
      expect(await told(store, id)).toEqual(['task.paused a', 'task.paused a'])
    })

    test('of an operator has an event, too, which has no reason, and is not replaced', async () => {
      const store = await open()
      const { id } = await subscribe(store, { types: ['task.paused'] })
      await pausingTask(store)
      const { partitions } = await store.pull({ batch: 4 })
      const by = { name: 'ops', address: null, body: null }
      await store.control({ verb: 'pause', taskId: 'a', by })
      const pausedAt = store.clock.now()
      store.clock.advance(1000)
      for (const { lease } of partitions) await store.settle(lease?.id ?? '', { outcome: 'failed' })
      expect((await store.task('a')).facts.stamps?.paused).toEqual([pausedAt, 'ops'])
      expect(await told(store, id)).toEqual(['task.paused a'])
      const [event] = await log(store, id)
      expect(event && factsOf(event.message)).toMatchObject({ because: null })
    })
  })
}
