import { describe, expect, test } from 'vitest'
import { statusOf } from '../../../src/handoff/instance-status.ts'
import type { LeaseRef } from '../../../src/handoff/lease-id.ts'
import {
  type InstancePage,
  type InstancePosition,
  type InstanceQuery,
  noTotals,
} from '../../../src/handoff/views/queries.ts'
import { leaseOf, settlement, some } from './driver.ts'
import { MINUTE, type StoreHarness, storesOf, testPolicy } from './harness.ts'

const seen = (instanceId: string, seenMillisAgo = { first: 0, last: 0 }) => ({
  instanceId,
  role: 'worker' as const,
  pulls: 0,
  seenMillisAgo,
  node: null,
})

export function instancesTopic(harness: StoreHarness): void {
  describe('instances', () => {
    const open = storesOf(harness)

    test('the work of an instance is counted in the same transaction: nothing is lost in a crash, nothing counted twice', async () => {
      const store = await open()
      await store.callBack('a', some(0, 4), 'p')
      await store.callBack('a', some(0, 5), 'p')
      const { partitions } = await store.pull({ instance: 'w', batch: 3 })
      const leases = partitions.map(({ lease }) => leaseOf(lease?.id ?? ''))
      const settle = (outcomes: readonly ('done' | 'failed' | 'released')[]) =>
        store.batch({
          settles: [
            {
              instance: 'w',
              settlements: outcomes.map((outcome, at) => ({
                lease: leases[at] as LeaseRef,
                reported: settlement({ outcome }),
              })),
            },
          ],
        })
      await settle(['done', 'failed', 'released'])
      // A repeat is answered and not counted.
      await settle(['done', 'failed', 'released'])
      await store.reopen()
      const did = { partitions: 3, records: 300, done: 1, failed: 1, released: 1 }
      expect((await store.store.instance('w'))?.totals).toEqual({ ...noTotals(), ...did })
      expect((await store.store.instance('p'))?.totals).toEqual({
        ...noTotals(),
        callBacks: 2,
        calledBack: 5,
      })
      await store.pull({ instance: 'w' })
      expect((await store.store.instance('w'))?.totals.partitions).toBe(4)
    })

    test('the leases of an instance are revoked at once, and each has used an attempt', async () => {
      const store = await open({ maxAttempts: 2 })
      await store.callBack('a', some(0, 4))
      const { partitions } = await store.pull({ instance: 'w', batch: 3 })
      await store.pull({ instance: 'v' })
      const revoked = await store.store.revokeLeases({ instanceId: 'w', limit: 100 })
      expect(revoked).toEqual({ revoked: 3, parked: 0, newlyReady: 3, more: false })
      expect(await store.states('a')).toEqual({
        '0-0': 'ready',
        '0-1': 'ready',
        '0-2': 'ready',
        '0-3': 'leased',
      })
      expect(await store.partition('a', 0, 0)).toMatchObject({
        attempts: 1,
        reason: 'an operator revoked the lease of attempt 1 from w',
        history: [{ attempt: 1, holder: 'w', outcome: 'revoked' }],
      })
      expect((await store.task('a')).facts.attemptsWasted).toBe(3)
      expect((await store.store.instance('w'))?.totals).toMatchObject({ revoked: 3, expired: 0 })
      expect(await store.renew(partitions[0]?.lease?.id ?? '')).toEqual([{ refused: 'lease_lost' }])
      // Like after an expiry: until another worker has the partition, the work counts.
      expect(await store.settle(partitions[0]?.lease?.id ?? '')).toBeNull()
      expect((await store.pullAll(1)).map(({ index, lease }) => [index, lease?.attempt])).toEqual([
        [1, 2],
        [2, 2],
      ])
      expect(await store.settle(partitions[1]?.lease?.id ?? '')).toBe('lease_lost')
      expect(await store.recount()).toEqual([])
    })

    test('a partition without attempts left is parked when its lease is revoked, in bounded steps', async () => {
      const store = await open({ maxAttempts: 1 })
      await store.callBack('a', some(0, 3))
      await store.pull({ instance: 'w', batch: 3 })
      const step = () => store.store.revokeLeases({ instanceId: 'w', limit: 2 })
      expect(await step()).toEqual({ revoked: 2, parked: 2, newlyReady: 0, more: true })
      expect(await step()).toEqual({ revoked: 1, parked: 1, newlyReady: 0, more: false })
      expect(await step()).toEqual({ revoked: 0, parked: 0, newlyReady: 0, more: false })
      expect(await store.state('a')).toBe('stalled')
    })

    test('the lease of one partition is revoked; what is not leased stays as it is', async () => {
      const store = await open({ maxAttempts: 1 })
      await store.callBack('a', some(0, 2))
      const { leaseId } = await store.pullOne({ instance: 'w' })
      const revoked = (taskId: string, level: number, index: number) =>
        store.store.revokeLease({ taskId, level, index })
      expect(await revoked('a', 0, 0)).toEqual({ revoked: 1, parked: 1, newlyReady: 0, more: false })
      expect(await store.renew(leaseId)).toEqual([{ refused: 'lease_lost' }])
      expect(await revoked('a', 0, 0)).toEqual({ revoked: 0, parked: 0, newlyReady: 0, more: false })
      expect(await revoked('a', 0, 1)).toMatchObject({ revoked: 0 })
      expect(await store.states('a')).toEqual({ '0-0': 'parked', '0-1': 'ready' })
      expect(await revoked('b', 0, 0)).toEqual({ unknown: 'task' })
      await store.control({ verb: 'settings', taskId: 'b', settings: { maxLeases: 1 } })
      expect(await revoked('b', 0, 0)).toEqual({ unknown: 'task' })
      expect(await revoked('a', 0, 2)).toEqual({ unknown: 'partition' })
      expect(await revoked('a', 1, 0)).toEqual({ unknown: 'partition' })
      expect(await store.settle(leaseId)).toBeNull()
      expect(await store.states('a')).toMatchObject({ '0-0': 'done' })
      expect(await store.recount()).toEqual([])
    })

    test('a late failure of a revoked lease is recorded and uses no second attempt', async () => {
      const store = await open()
      await store.callBack('a', some(0, 1))
      const { leaseId } = await store.pullOne({ instance: 'w' })
      await store.store.revokeLease({ taskId: 'a', level: 0, index: 0 })
      expect(await store.settle(leaseId, { outcome: 'failed', reason: 'locked' })).toBeNull()
      expect(await store.partition('a', 0, 0)).toMatchObject({
        state: 'ready',
        attempts: 1,
        reason: 'locked',
        history: [{ outcome: 'failed', reason: 'locked' }],
      })
    })

    test('a paused instance gets nothing and is told so, over a restart; others go on', async () => {
      const store = await open()
      await store.callBack('a', some(0, 3))
      const { partitions } = await store.pull({ instance: 'w', key: 'k' })
      const pausedAt = store.clock.now()
      const pause = (paused: boolean) =>
        store.store.pauseInstance({ instanceId: 'w', role: 'worker', paused })
      expect(await pause(true)).toBe(pausedAt)
      await store.reopen()
      store.clock.advance(MINUTE / 60)
      expect(await pause(true)).toBe(pausedAt)
      expect(await store.pull({ instance: 'w' })).toMatchObject({
        partitions: [],
        because: { code: 'instance_paused' },
      })
      // A repeat is about leases that it has.
      expect((await store.pull({ instance: 'w', key: 'k' })).partitions).toHaveLength(1)
      expect(await store.renew(partitions[0]?.lease?.id ?? '')).toMatchObject([{ refused: null }])
      expect((await store.pull({ instance: 'v' })).partitions).toHaveLength(1)
      expect((await store.pull()).partitions).toHaveLength(1)
      expect((await store.store.instance('w'))?.pausedAt).toBe(pausedAt)
      expect(await pause(false)).toBeNull()
      await store.reopen()
      await store.callBack('b', some(0, 1))
      expect((await store.pull({ instance: 'w' })).partitions).toHaveLength(1)
    })

    test('a silent holder is lost once its lease expires, until it is heard from again', async () => {
      const store = await open()
      await store.callBack('a', some(0, 2))
      await store.pull({ instance: 'w', batch: 2 })
      await store.store.recordHeartbeats([seen('w')])
      const status = async () => {
        const instance = await store.store.instance('w')
        return instance === null ? null : statusOf(instance)
      }
      expect(await status()).toBe('up')
      store.clock.advance(testPolicy.leaseMillis * 0.8 - 1)
      expect(await status()).toBe('up')
      store.clock.advance(1)
      expect(await status()).toBe('silent')
      await store.pass(testPolicy.leaseMillis * 0.2)
      expect(await status()).toBe('lost')
      await store.reopen()
      expect(await status()).toBe('lost')
      expect((await store.store.instance('w'))?.totals.expired).toBe(2)
      const { instances } = await store.store.instances({ after: null, limit: 9, status: 'lost' })
      expect(instances.map(({ instanceId }) => instanceId)).toEqual(['w'])
      await store.store.recordHeartbeats([seen('w')])
      expect(await status()).toBe('up')
    })

    test('a holder that is heard from is not lost when a lease of it expires', async () => {
      const store = await open()
      await store.callBack('a', some(0, 1))
      await store.pull({ instance: 'w' })
      store.clock.advance(testPolicy.leaseMillis / 2)
      await store.store.recordHeartbeats([seen('w')])
      await store.pass(testPolicy.leaseMillis / 2)
      const instance = await store.store.instance('w')
      expect(instance?.totals.expired).toBe(1)
      expect(instance === null ? null : statusOf(instance)).not.toBe('lost')
    })

    test('the leases of an instance are listed in pages, the first to expire first', async () => {
      const store = await open()
      await store.callBack('a', some(0, 3))
      const start = store.clock.now()
      await store.pull({ instance: 'w' })
      store.clock.advance(1000)
      await store.pull({ instance: 'w' })
      await store.pull({ instance: 'v' })
      const page = await store.store.instanceLeases({ instanceId: 'w', after: null, limit: 1 })
      expect(page.leases).toEqual([
        {
          taskId: 'a',
          level: 0,
          index: 0,
          spelling: null,
          computeTableName: 'results.orders',
          recordCount: 100,
          attempt: 1,
          leasedAt: start,
          expiresAt: start + testPolicy.leaseMillis,
        },
      ])
      const rest = await store.store.instanceLeases({ instanceId: 'w', after: page.next, limit: 1 })
      expect(rest).toMatchObject({ leases: [{ index: 1 }], next: null })
    })

    test('the last attempts of an instance are listed, the last to end first', async () => {
      const store = await open()
      const since = store.clock.now()
      await store.callBack('a', some(0, 60))
      const { partitions } = await store.pull({ instance: 'w', batch: 60 })
      const ids = partitions.map(({ lease }) => lease?.id ?? '')
      for (const id of ids.slice(0, 57)) await store.settle(id)
      await store.settle(ids[57] ?? '', { outcome: 'failed', reason: 'locked' })
      await store.settle(ids[58] ?? '', { outcome: 'released' })
      await store.pass(testPolicy.leaseMillis)
      const ended = await store.store.instanceAttempts('w')
      expect(ended.since).toBe(since)
      expect(ended.attempts).toHaveLength(50)
      expect(ended.attempts.slice(0, 4)).toMatchObject([
        { taskId: 'a', level: 0, index: 59, outcome: 'expired', attempt: 1, startedAt: since },
        { index: 58, outcome: 'released', attempt: 1 },
        { index: 57, outcome: 'failed', reason: 'locked' },
        { index: 56, outcome: 'done' },
      ])
      // A late report replaces the expiry.
      await store.settle(ids[59] ?? '', { outcome: 'failed', reason: 'out of memory' })
      const { attempts } = await store.store.instanceAttempts('w')
      expect(attempts.slice(0, 2)).toMatchObject([
        { index: 59, outcome: 'failed', reason: 'out of memory', attempt: 1 },
        { index: 58 },
      ])
      expect((await store.store.instanceAttempts('v')).attempts).toEqual([])
    })

    test('leases are counted while they are valid', async () => {
      const store = await open()
      await store.callBack('a', some(0, 3))
      const { partitions } = await store.pull({ batch: 3, instance: 'w' })
      const leases = async () => (await store.store.instance('w'))?.leases
      expect(await leases()).toBe(3)
      await store.settle(partitions[0]?.lease?.id ?? '')
      expect(await leases()).toBe(2)
      store.clock.advance(testPolicy.leaseMillis)
      expect(await leases()).toBe(0)
    })

    test('leases of a cancelled task are not counted', async () => {
      const store = await open()
      await store.callBack('a', some(0, 2))
      await store.callBack('b', some(0, 2))
      await store.pull({ batch: 4, instance: 'w' })
      await store.control({ verb: 'cancel', taskId: 'a' })
      expect((await store.store.instance('w'))?.leases).toBe(2)
      expect(await store.store.instances({ after: null, limit: 1 })).toMatchObject({
        instances: [{ leases: 2 }],
      })
    })

    test('a call-back that was refused adds no producer', async () => {
      const store = await open()
      await store.callBack('a', some(0, 1), 'p')
      await store.callBack('a', some(0, 1, { recordCount: 1 }), 'q')
      expect((await store.store.instance('q'))?.tasks ?? []).toEqual([])
    })

    test('the list may be sorted and searched: every page goes on where the last one ended', async () => {
      const store = await open()
      const start = store.clock.now()
      for (const [at, name] of ['w-b', 'w-d', 'w-a', 'w-c', 'x'].entries())
        await store.store.recordHeartbeats([seen(name, { first: 9 - at, last: 9 - at })])
      await store.callBack('a', some(0, 6))
      for (const [name, batch] of [
        ['w-c', 1],
        ['w-d', 2],
        ['x', 2],
      ] as const)
        await store.pull({ instance: name, batch })
      expect(store.clock.now()).toBe(start)
      const listed = async (query: Partial<InstanceQuery>) => {
        const names: string[] = []
        let after: InstancePosition | null = null
        do {
          const page: InstancePage = await store.store.instances({ limit: 2, ...query, after })
          expect(page.instances.length).toBeLessThanOrEqual(2)
          names.push(...page.instances.map(({ instanceId }) => instanceId))
          after = page.next
        } while (after !== null)
        return names.join(' ')
      }
      expect(await listed({ sort: 'leases' })).toBe('w-d x w-c w-a w-b')
      expect(await listed({ sort: 'leases', search: 'w-' })).toBe('w-d w-c w-a w-b')
      expect(await listed({ sort: 'lastSeenAt' })).toBe('x w-c w-a w-d w-b')
      expect(await listed({ search: '-c' })).toBe('w-c')
      expect(await listed({ status: 'up', search: 'w' })).toBe('w-a w-b w-c w-d')
      expect(await listed({ status: 'lost' })).toBe('')
    })
  })
}
