import { describe, expect, test } from 'vitest'
import type { TaskSettingsChange } from '../../../src/handoff/rules/policy.ts'
import { batchedCallBack, type Driver, leaseOf, nameOf, one, some } from './driver.ts'
import { HOUR, MINUTE, type StoreHarness, storesOf } from './harness.ts'

const set = (store: Driver, taskId: string, settings: TaskSettingsChange) =>
  store.control({ verb: 'settings', taskId, settings })

export function taskSettingsTopic(harness: StoreHarness): void {
  describe('settings of a task', () => {
    const open = storesOf(harness)

    test('a task has its own lease length, attempts and back-off, and other tasks keep theirs', async () => {
      const store = await open()
      await store.callBack('mine', some(0, 1))
      await store.callBack('other', some(0, 1))
      await set(store, 'mine', {
        leaseMillis: MINUTE,
        maxAttempts: 2,
        backoffMillis: 4000,
        backoffMaxMillis: 4000,
      })
      const now = store.clock.now()
      const [mine, other] = (await store.pull({ batch: 2 })).partitions
      expect([mine?.lease?.expiresAt, other?.lease?.expiresAt]).toEqual([now + MINUTE, now + 10 * MINUTE])
      const leaseId = mine?.lease?.id ?? ''
      expect((await store.renew(leaseId))[0]).toMatchObject({ expiresAt: now + MINUTE })
      await store.settle(leaseId, { outcome: 'failed' })
      const { dueAt } = await store.partition('mine', 0, 0)
      expect(dueAt).toBeGreaterThanOrEqual(now + 2000)
      expect(dueAt).toBeLessThanOrEqual(now + 4000)
      await store.pass(4000)
      await store.pullOne({ tasks: ['mine'] })
      await store.pass(MINUTE)
      expect((await store.partition('mine', 0, 0)).state).toBe('parked')
    })

    test('the attempts of the task apply when an operator revokes a lease', async () => {
      const store = await open({ maxAttempts: 2 })
      await store.callBack('few', some(0, 1))
      await store.callBack('many', some(0, 1))
      await set(store, 'few', { maxAttempts: 1 })
      await set(store, 'many', { maxAttempts: 3 })
      for (const states of [
        ['parked', 'ready'],
        ['parked', 'ready'],
        ['parked', 'parked'],
      ]) {
        await store.pull({ batch: 2, instance: 'w' })
        await store.store.revokeLeases({ instanceId: 'w', limit: 10 })
        const [few, many] = [await store.partition('few', 0, 0), await store.partition('many', 0, 0)]
        expect([few.state, many.state]).toEqual(states)
      }
    })

    test('settings may come before the first call-back, and survive a restart', async () => {
      const store = await open()
      const settings = { leaseMillis: MINUTE, weight: 2.5 }
      expect(await set(store, 'a', { ...settings, levelBarrier: true })).toMatchObject({
        kind: 'applied',
        changed: 1,
        settings,
        levelBarrier: true,
      })
      expect(await store.store.task('a')).toBeNull()
      expect(await store.store.taskSettings('other')).toBeNull()
      expect(await store.store.taskSettings('a')).toMatchObject({ settings, calledBack: false })
      expect(await store.control({ verb: 'pause', taskId: 'a' })).toEqual({ kind: 'task_unknown' })
      await store.reopen()
      store.clock.advance(5000)
      await store.callBack('a', [one(0, 0), one(1, 0)])
      expect(await store.store.taskSettings('a')).toMatchObject({ settings, calledBack: true })
      const { facts } = await store.task('a')
      expect(facts).toMatchObject({ settings, levelBarrier: true, firstCallBackAt: store.clock.now() })
      expect((await store.pull({ batch: 9 })).partitions.map(nameOf)).toEqual(['a-0-0'])
      expect(await set(store, 'a', { ...settings })).toMatchObject({ changed: 0, levelBarrier: true })
      expect(await set(store, 'a', {})).toMatchObject({ changed: 0, settings })
      expect(await set(store, 'a', { weight: null })).toMatchObject({
        changed: 1,
        settings: { leaseMillis: MINUTE },
      })
      expect(await set(store, 'a', { leaseMillis: null, levelBarrier: null })).toMatchObject({
        changed: 1,
        settings: null,
        levelBarrier: false,
      })
      expect((await store.task('a')).facts).toMatchObject({ settings: null, levelBarrier: false })
    })

    test('settings sent with a call-back apply to it and to later ones', async () => {
      const store = await open()
      const callBackWith = (settings: TaskSettingsChange, index: number) => ({
        ...batchedCallBack('a', [one(0, index), one(1, index)]),
        settings,
      })
      await store.batch({ callBacks: [callBackWith({ leaseMillis: MINUTE, levelBarrier: true }, 0)] })
      const { facts } = await store.task('a')
      expect(facts).toMatchObject({ settings: { leaseMillis: MINUTE }, levelBarrier: true, openLevel: 0 })
      await store.batch({ callBacks: [callBackWith({ levelBarrier: false, weight: 2 }, 1)] })
      const settings = { leaseMillis: MINUTE, weight: 2 }
      expect((await store.task('a')).facts).toMatchObject({ settings, levelBarrier: false })
      await store.callBack('a', [one(2, 0)])
      expect((await store.task('a')).facts.settings).toEqual(settings)
      await store.batch({ callBacks: [callBackWith({ weight: null, leaseMillis: null }, 2)] })
      expect((await store.task('a')).facts.settings).toBeNull()
    })

    test('a maximum back-off below the first one is refused, whichever was set before', async () => {
      const store = await open()
      await set(store, 'a', { backoffMillis: 5000 })
      const refused = { kind: 'backoff_max_shorter' }
      expect(await set(store, 'a', { backoffMaxMillis: 4000, weight: 2 })).toEqual(refused)
      const callBack = { ...batchedCallBack('a', some(0, 1)), settings: { backoffMaxMillis: 4000 } }
      expect(await store.batch({ callBacks: [callBack] })).toMatchObject({ callBacks: [refused] })
      expect(await store.store.taskSettings('a')).toMatchObject({
        settings: { backoffMillis: 5000 },
        calledBack: false,
      })
      await store.callBack('a', some(0, 1))
      expect(await set(store, 'a', { backoffMaxMillis: 4000 })).toEqual(refused)
      expect(await set(store, 'a', { backoffMaxMillis: 4000, backoffMillis: null })).toMatchObject({
        kind: 'applied',
        settings: { backoffMaxMillis: 4000 },
      })
    })

    test('of several call-backs in a batch, the settings of the last one apply', async () => {
      const store = await open()
      const callBackWith = (levelBarrier: boolean, index: number) => ({
        ...batchedCallBack('a', [one(0, index), one(1, index)]),
        settings: { levelBarrier },
      })
      await store.batch({ callBacks: [callBackWith(true, 0), callBackWith(false, 1)] })
      expect((await store.task('a')).facts).toMatchObject({ levelBarrier: false, openLevel: null })
      await store.batch({ callBacks: [callBackWith(false, 2), callBackWith(true, 3)] })
      expect((await store.task('a')).facts).toMatchObject({ levelBarrier: true, openLevel: 0 })
    })

    test.each([
      ['small', 2],
      ['large', 3000],
    ])('settings sent with a repeated call-back apply, too: a %s one', async (_, partitions) => {
      const store = await open()
      const callBack = batchedCallBack('a', [...some(0, partitions - 1), one(1, 0)])
      await store.batch({ callBacks: [{ ...callBack, settings: { levelBarrier: true } }] })
      store.clock.advance(5000)
      const { callBacks, newlyReady } = await store.batch({
        callBacks: [{ ...callBack, settings: { maxAttempts: 2, levelBarrier: false } }],
      })
      expect(callBacks).toEqual([{ kind: 'stored', accepted: 0, duplicates: partitions }])
      expect(newlyReady).toBeGreaterThan(0)
      expect((await store.task('a')).facts).toMatchObject({
        settings: { maxAttempts: 2 },
        levelBarrier: false,
        lastCallBackAt: store.clock.now(),
      })
    })

    test('no more than the limit is leased at a time; each lease that ends allows another', async () => {
      const store = await open()
      await store.callBack('limited', some(0, 10))
      await store.callBack('other', some(1, 10))
      await set(store, 'limited', { maxLeases: 2 })
      const first = await store.pull({ batch: 4 })
      expect(first.partitions.map(nameOf)).toEqual(['limited-0-0', 'limited-0-1', 'other-1-0', 'other-1-1'])
      expect((await store.pull({ tasks: ['limited'] })).partitions).toEqual([])
      expect((await store.pull({ tables: ['results.orders'] })).partitions.map(nameOf)).toEqual(['other-1-2'])
      await store.settle(first.partitions[0]?.lease?.id ?? '')
      expect(nameOf(await store.pullOne())).toBe('limited-0-2')
      await store.settle(first.partitions[1]?.lease?.id ?? '', { outcome: 'released' })
      expect(nameOf(await store.pullOne({ tables: ['results.orders'] }))).toBe('limited-0-1')
      expect((await store.pullOne()).taskId).toBe('other')
      await store.pass(11 * MINUTE)
      const later = (await store.pull({ batch: 3 })).partitions
      expect(later.map(({ taskId }) => taskId)).toEqual(['limited', 'limited', 'other'])
      await set(store, 'limited', { maxLeases: 4 })
      expect((await store.pull({ batch: 3 })).partitions.map(({ taskId }) => taskId)).toEqual([
        'limited',
        'limited',
        'other',
      ])
      await set(store, 'limited', { maxLeases: null })
      const { partitions } = await store.pull({ batch: 2 })
      expect(partitions.map(({ taskId }) => taskId)).toEqual(['limited', 'limited'])
    })

    test('a waiting pull is woken for each lease below the limit that is free', async () => {
      const store = await open()
      await store.callBack('a', some(0, 10))
      await set(store, 'a', { maxLeases: 3 })
      const { partitions } = await store.pull({ batch: 5 })
      const { newlyReady } = await store.settleAll(partitions)
      expect(newlyReady).toBe(3)
      const { leaseId } = await store.pullOne()
      const renews = [{ leases: [leaseOf(leaseId)] }]
      expect(await store.batch({ renews })).toMatchObject({ renews: [[{ refused: null }]], newlyReady: 0 })
      await store.pull({ batch: 2 })
      expect(await store.pass(HOUR)).toMatchObject({ expired: 3, woken: 3 })
    })

    test('tasks share by their weights, with a filter and without', async () => {
      const store = await open()
      await store.callBack('heavy', some(0, 90))
      await store.callBack('light', some(0, 90))
      await set(store, 'heavy', { weight: 3 })
      for (const filter of [{}, { tables: ['results.orders'] }, { tasks: ['heavy', 'light'] }]) {
        const { partitions } = await store.pull({ batch: 40, ...filter })
        const heavy = partitions.filter(({ taskId }) => taskId === 'heavy').length
        expect(heavy).toBeGreaterThanOrEqual(28)
        expect(heavy).toBeLessThanOrEqual(32)
      }
    })

    test('a cancelled task accepts no settings', async () => {
      const store = await open()
      await store.callBack('a', some(0, 1))
      await store.control({ verb: 'cancel', taskId: 'a' })
      expect(await set(store, 'a', { weight: 2 })).toEqual({ kind: 'task_cancelled' })
      const { callBacks } = await store.batch({
        callBacks: [{ ...batchedCallBack('a', some(0, 1)), settings: { weight: 2 } }],
      })
      expect(callBacks).toEqual([{ kind: 'task_cancelled' }])
      expect((await store.task('a')).facts.settings).toBeNull()
    })
  })
}
