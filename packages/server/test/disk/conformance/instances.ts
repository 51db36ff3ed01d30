import { MAX_PRODUCER_TASKS } from '@baton/protocol'
import { describe, expect, test } from 'vitest'
import type { Heartbeat } from '../../../src/handoff/heartbeats.ts'
import { noTotals } from '../../../src/handoff/views/queries.ts'
import { aTask, byId, NOW, tally, write } from './builders.ts'
import { type DiskHarness, disksOf } from './harness.ts'

const seen = (instanceId: string, changes: Partial<Heartbeat> = {}): Heartbeat => ({
  instanceId,
  role: 'worker',
  pulls: 0,
  seenMillisAgo: { first: 0, last: 0 },
  node: null,
  ...changes,
})

export function instancesTopic(harness: DiskHarness): void {
  describe('instances', () => {
    const create = disksOf(harness)

    test('add up their heartbeats', async () => {
      const { disk } = await create()
      await disk.recordInstances([seen('w', { pulls: 2 })], NOW)
      const ago = { first: 400, last: 100 }
      await disk.recordInstances([seen('w', { pulls: 1, seenMillisAgo: ago })], NOW + 1000)
      expect(await disk.instance('w')).toEqual({
        instanceId: 'w',
        role: 'worker',
        firstSeenAt: NOW,
        lastSeenAt: NOW + 900,
        totals: { ...noTotals(), pulls: 3 },
        lostUnlessSeenSince: null,
        pausedAt: null,
        node: null,
        tasks: [],
      })
      expect(await disk.instance('x')).toBeNull()
      // Of another node, whose heartbeat is written later.
      await disk.recordInstances([seen('w', { seenMillisAgo: { first: 800, last: 800 } })], NOW + 1500)
      expect((await disk.instance('w'))?.lastSeenAt).toBe(NOW + 900)
    })

    test('have sums that stop at the largest number', async () => {
      const { disk } = await create()
      const most = { pulls: Number.MAX_SAFE_INTEGER }
      await disk.recordInstances([seen('w', most), seen('w', most)], NOW)
      await disk.recordInstances([seen('w', most)], NOW)
      expect((await disk.instance('w'))?.totals.pulls).toBe(Number.MAX_SAFE_INTEGER)
    })

    test('stay nodes when a client uses their name', async () => {
      const { disk } = await create()
      const node = { version: '1.2.3', startedAt: NOW - 5, draining: false, load: 12 }
      await disk.recordInstances([seen('n', { role: 'service', node })], NOW)
      await disk.recordInstances([seen('n', { pulls: 1 })], NOW + 10)
      const record = await disk.instance('n')
      expect(record).toMatchObject({ role: 'service', node, lastSeenAt: NOW, totals: { pulls: 1 } })
      const draining = { ...node, draining: true }
      await disk.recordInstances([seen('n', { role: 'service', node: draining })], NOW + 20)
      expect(await disk.instance('n')).toMatchObject({ node: draining, lastSeenAt: NOW + 20 })
    })

    test('exist before their heartbeat once they pull, and an existing row is not replaced', async () => {
      const { disk } = await create()
      await disk.recordInstances([seen('old', { pulls: 4 })], NOW)
      const changed = (instanceId: string) =>
        [instanceId, { instanceId, role: 'producer' as const, at: NOW + 5 }] as const
      await write(disk, { instances: new Map([changed('old'), changed('new')]) })
      expect(await disk.instance('new')).toMatchObject({
        role: 'producer',
        firstSeenAt: NOW + 5,
        lastSeenAt: NOW + 5,
        totals: noTotals(),
      })
      expect(await disk.instance('old')).toMatchObject({ role: 'worker', totals: { pulls: 4 } })
    })

    test('add the totals of a flush to existing totals or to none', async () => {
      const { disk } = await create()
      await disk.recordInstances([seen('old', { pulls: 4 })], NOW)
      const added = (instanceId: string, done: number, lostUnlessSeenSince: number | null = null) =>
        [
          instanceId,
          {
            instanceId,
            role: 'worker' as const,
            at: NOW + 5,
            totals: { ...noTotals(), done },
            lostUnlessSeenSince,
          },
        ] as const
      await write(disk, { totals: new Map([added('old', 2), added('new', 3, NOW + 9)]) })
      await write(disk, { totals: new Map([added('old', 0, NOW), added('new', 4, NOW + 2)]) })
      await write(disk, { totals: new Map([added('new', 0)]) })
      expect(await disk.instance('old')).toMatchObject({
        lastSeenAt: NOW,
        totals: { pulls: 4, done: 2 },
        lostUnlessSeenSince: NOW,
      })
      expect(await disk.instance('new')).toMatchObject({
        firstSeenAt: NOW + 5,
        totals: { done: 7 },
        lostUnlessSeenSince: NOW + 9,
      })
    })

    test('are paged by name, or the last seen first', async () => {
      const { disk } = await create()
      await disk.recordInstances([seen('c'), seen('a')], NOW)
      await disk.recordInstances([seen('b')], NOW + 1)
      type Asked = Extract<Parameters<typeof disk.instances>[0], { sort: string }>
      const names = async (sort: Asked['sort'], after: Asked['after'], limit: number) =>
        (await disk.instances({ sort, after, limit })).map(({ instanceId }) => instanceId)
      expect(await names('name', null, 10)).toEqual(['a', 'b', 'c'])
      expect(await names('name', null, 2)).toEqual(['a', 'b'])
      expect(await names('name', { value: 0, name: 'b' }, 2)).toEqual(['c'])
      expect(await names('lastSeenAt', null, 2)).toEqual(['b', 'c'])
      expect(await names('lastSeenAt', { value: NOW, name: 'c' }, 2)).toEqual(['a'])
    })

    test('are paused by a flush, which a later heartbeat or flush leaves so', async () => {
      const { disk } = await create()
      await disk.recordInstances([seen('w')], NOW)
      const changed = (instanceId: string, pausedAt?: number | null) =>
        [instanceId, { instanceId, role: 'worker' as const, at: NOW, pausedAt }] as const
      await write(disk, { instances: new Map([changed('w', NOW + 1), changed('new', NOW + 2)]) })
      await write(disk, { instances: new Map([changed('w')]) })
      await disk.recordInstances([seen('w')], NOW + 3)
      const paused = async () => (await disk.pausedInstances()).toSorted((a, b) => a.pausedAt - b.pausedAt)
      expect(await paused()).toEqual([
        { instanceId: 'w', pausedAt: NOW + 1 },
        { instanceId: 'new', pausedAt: NOW + 2 },
      ])
      expect(await disk.instance('w')).toMatchObject({ pausedAt: NOW + 1, lastSeenAt: NOW + 3 })
      await write(disk, { instances: new Map([changed('w', null)]) })
      expect(await paused()).toEqual([{ instanceId: 'new', pausedAt: NOW + 2 }])
    })

    test('are active if they were seen recently or are lost, and are read by name', async () => {
      const { disk } = await create()
      await disk.recordInstances([seen('holder'), seen('gone'), seen('lost')], NOW)
      const totals = { instanceId: 'lost', role: 'worker' as const, at: NOW, totals: noTotals() }
      const lost = new Map([['lost', { ...totals, lostUnlessSeenSince: NOW + 1 }]])
      await disk.recordInstances([seen('a'), seen('z')], NOW + 900)
      await write(disk, { totals: lost })
      const active = async (since: number, limit = 9) => (await disk.activeInstances(since, limit)).toSorted()
      expect(await active(NOW + 900)).toEqual(['a', 'lost', 'z'])
      expect(await active(NOW + 900, 2)).toHaveLength(2)
      expect(await active(NOW + 901)).toEqual(['lost'])
      const named = await disk.instances({ names: ['z', 'holder', 'x'] })
      expect(named.map(({ instanceId }) => instanceId).toSorted()).toEqual(['holder', 'z'])
    })

    test('have the newest tasks that they called back', async () => {
      const { disk } = await create()
      await disk.recordInstances([seen('p')], NOW)
      const produced = (task: number, at: number) => [`${task}:p`, { task, instance: 'p', at }] as const
      const records = tally({ done: 30, ready: 70 })
      const tasks = Array.from({ length: MAX_PRODUCER_TASKS + 2 }, (_, at) =>
        aTask(at + 1, { partitions: tally({ done: 3, leased: 4 }), records }),
      )
      await write(disk, {
        tasks: byId(...tasks),
        produced: new Map(tasks.map(({ id }) => produced(id, NOW + id))),
      })
      await write(disk, { produced: new Map([produced(1, NOW + 500)]) })
      const found = (await disk.instance('p'))?.tasks
      expect(found).toHaveLength(MAX_PRODUCER_TASKS)
      expect(found?.slice(0, 2)).toEqual([
        {
          taskId: 'task-1',
          state: 'open',
          owners: [],
          lastCallBackAt: NOW + 500,
          partitions: { total: 7, done: 3 },
          records: { total: 100, done: 30 },
        },
        expect.objectContaining({ taskId: `task-${tasks.length}` }),
      ])
      // A list does not read them: it may have a thousand producers.
      const listed = await disk.instances({ sort: 'name', after: null, limit: 9 })
      expect(listed.map(({ instanceId, tasks: shown }) => [instanceId, shown])).toEqual([['p', undefined]])
    })

    test('are forgotten when unseen for long, unless they hold a lease or are paused', async () => {
      const { disk } = await create()
      const node = (draining: boolean) => ({ version: '1', startedAt: 1, draining, load: 12 })
      await disk.recordInstances(
        [
          seen('gone'),
          seen('gone-too'),
          seen('holder'),
          seen('up', { role: 'service', node: node(false) }),
          seen('ended', { role: 'service', node: node(true) }),
        ],
        NOW,
      )
      await disk.recordInstances([seen('fresh')], NOW + 10)
      const paused = { instanceId: 'paused', role: 'worker' as const, at: NOW, pausedAt: NOW }
      await write(disk, { instances: new Map([['paused', paused]]) })
      const left = async () =>
        (await disk.instances({ sort: 'name', after: null, limit: 9 })).map(({ instanceId }) => instanceId)
      const forget = (unseenSince: number, endedSince: number, limit: number) =>
        disk.forgetInstances({ unseenSince, endedSince, holders: new Set(['holder']), most: 9, limit })
      expect(await forget(NOW, NOW + 1, 9)).toBe(1)
      expect(await left()).toEqual(['fresh', 'gone', 'gone-too', 'holder', 'paused', 'up'])
      expect(await forget(NOW + 1, NOW, 1)).toBe(1)
      expect(await forget(NOW + 1, NOW, 9)).toBe(2)
      expect(await forget(NOW + 1, NOW, 9)).toBe(0)
      expect(await left()).toEqual(['fresh', 'holder', 'paused'])
    })

    test('are forgotten beyond a number, those seen longest ago first', async () => {
      const { disk } = await create()
      for (const [at, name] of ['a', 'b', 'c', 'd', 'e'].entries())
        await disk.recordInstances([seen(name)], NOW + at)
      const paused = { instanceId: 'paused', role: 'worker' as const, at: NOW, pausedAt: NOW }
      await write(disk, { instances: new Map([['paused', paused]]) })
      const forget = (most: number, limit: number) =>
        disk.forgetInstances({ unseenSince: 0, endedSince: 0, holders: new Set(), most, limit })
      expect(await forget(6, 9)).toBe(0)
      expect(await forget(3, 1)).toBe(1)
      expect(await forget(3, 9)).toBe(1)
      expect(await forget(3, 9)).toBe(0)
      const left = await disk.instances({ sort: 'name', after: null, limit: 9 })
      expect(left.map(({ instanceId }) => instanceId)).toEqual(['c', 'd', 'e', 'paused'])
    })
  })
}
