import { describe, expect, test } from 'vitest'
import type { LanesFrom, RowsOfLane, WaitingOfLane } from '../../../src/handoff/disk.ts'
import {
  aLane,
  aLaneTable,
  aRow,
  aTask,
  byId,
  ids,
  leased,
  NOW,
  rows,
  status,
  tablesByName,
  tally,
  write,
} from './builders.ts'
import { type DiskHarness, disksOf } from './harness.ts'

const A = 'results.a'
const B = 'results."ä b"'

export function readsTopic(harness: DiskHarness): void {
  describe('reads', () => {
    const create = disksOf(harness)

    test('of what does not exist find nothing', async () => {
      const { disk } = await create()
      const none = { lanes: [], tables: [] }
      expect(await disk.openTasks(0, 9)).toEqual([])
      expect(await disk.lanesWithWork(0, 9)).toEqual(none)
      expect(await disk.leases({ dueAt: 0, id: 0 }, 9)).toEqual([])
      expect(await disk.levels()).toEqual([])
      expect(await disk.tasksNamed(['x'])).toEqual([])
      expect(await disk.tasksById([1])).toEqual([])
      expect(await disk.lanesById([1])).toEqual(none)
      expect(await disk.lanesOf(1, [0])).toEqual(none)
      expect(await disk.lanesFrom({ task: 1, from: 0, having: 'any', limit: 9 })).toEqual(none)
      expect(await disk.partitionsById([1])).toEqual([])
      expect(await disk.partitionsNamed([{ lane: 1, indexes: [1] }])).toEqual([])
      expect(await disk.rows([{ lane: 1, tail: 9, state: null, afterIndex: -1, limit: 9 }])).toEqual([[]])
      expect(await disk.keys(['k'])).toEqual([])
      expect(await disk.dueBackoffs(NOW, 9)).toEqual({ due: [], nextAt: null })
    })

    test('find tasks that are not finished, have leases or back-offs, or an unfinished call-back', async () => {
      const { disk } = await create()
      const cancelled = { cancelled: true, state: 'cancelled', finishedAt: NOW } as const
      await write(disk, {
        tasks: byId(
          aTask(1),
          aTask(2, { state: 'done', finishedAt: NOW }),
          aTask(3, { ...cancelled, partitions: tally({ ready: 3 }) }),
          aTask(4, { ...cancelled, partitions: tally({ leased: 1 }) }),
          aTask(5, { ...cancelled, partitions: tally({ delayed: 1 }) }),
          aTask(6, { state: 'stalled' }),
          aTask(7, { state: 'done', finishedAt: NOW, staging: { first: 1, last: 2 } }),
        ),
      })
      expect(ids(await disk.openTasks(0, 9))).toEqual([1, 4, 5, 6, 7])
      expect(ids(await disk.openTasks(1, 2))).toEqual([4, 5])
      expect(ids(await disk.openTasks(7, 2))).toEqual([])
    })

    test('find lanes with ready, leased or delayed partitions, with their tables', async () => {
      const { disk } = await create()
      const lane = (id: number, counts: Parameters<typeof tally>[0], mixedAfter: number | null = null) =>
        aLane(id, 1, { level: id, partitions: tally(counts), mixedAfter })
      const tables = [aLaneTable(3, B, { cursor: 7, ready: 3, returned: 1 }), aLaneTable(3, A)]
      await write(disk, {
        lanes: byId(
          lane(1, { ready: 1 }),
          lane(2, { parked: 1, done: 4 }),
          lane(3, { leased: 1 }, 5),
          lane(4, { delayed: 1 }),
          lane(5, {}),
        ),
        laneTables: tablesByName(...tables),
      })
      const open = await disk.lanesWithWork(0, 9)
      expect(ids(open.lanes)).toEqual([1, 3, 4])
      expect(open.tables.toSorted((a, b) => (a.table < b.table ? -1 : 1))).toEqual(tables)
      expect(ids((await disk.lanesWithWork(1, 1)).lanes)).toEqual([3])
      expect((await disk.lanesWithWork(3, 9)).tables).toEqual([])
      await write(disk, { laneTables: tablesByName(aLaneTable(3, B, { ready: 9 })) })
      expect((await disk.lanesById([3])).tables.find(({ table }) => table === B)?.ready).toBe(9)
    })

    test('find leases in the order of their ends', async () => {
      const { disk } = await create()
      await disk.stage(rows(1, 1, 5))
      await write(disk, {
        partitions: new Map([
          [1, leased({ dueAt: NOW + 3 })],
          [2, leased({ dueAt: NOW })],
          [3, status({ state: 'delayed', leaseNumber: 1, dueAt: NOW })],
          [4, leased({ dueAt: NOW })],
        ]),
      })
      expect(ids(await disk.leases({ dueAt: 0, id: 0 }, 9))).toEqual([2, 4, 1])
      expect(ids(await disk.leases({ dueAt: NOW, id: 2 }, 1))).toEqual([4])
      expect(ids(await disk.leases({ dueAt: NOW, id: 4 }, 9))).toEqual([1])
    })

    test('find lanes by task and level, and partitions by index', async () => {
      const { disk } = await create()
      await disk.stage([aRow(1, 1, { index: 50 }), aRow(2, 1, { index: 40 }), aRow(3, 2, { index: 40 })])
      await write(disk, {
        tasks: byId(aTask(1), aTask(2)),
        lanes: byId(aLane(1, 1, { level: 2 }), aLane(2, 2)),
      })
      expect(ids((await disk.lanesOf(1, [0, 2])).lanes)).toEqual([1])
      expect(ids(await disk.tasksNamed(['task-2', 'task-9']))).toEqual([2])
      expect(ids(await disk.partitionsById([2, 1, 3, 4]))).toEqual([2, 1, 3])
      expect(ids(await disk.partitionsNamed([{ lane: 1, indexes: [40, 45, 50] }]))).toEqual([2, 1])
    })

    test('tell names apart exactly, whatever characters they have', async () => {
      const { disk } = await create()
      const awkward = ['ä', 'a\u0308', '💾', '\uFFFD', "'; DROP TABLE task; --", 'a%', 'a_', 'x'.repeat(250)]
      const names = ['a', 'A', 'a ', ...awkward]
      const tasks = names.map((taskId, at) => aTask(at + 1, { taskId }))
      await write(disk, { tasks: byId(...tasks) })
      const heartbeat = { role: 'worker' as const, pulls: 0, seenMillisAgo: { first: 0, last: 0 } }
      await disk.recordInstances(
        names.map((instanceId) => ({ ...heartbeat, instanceId, node: null })),
        NOW,
      )
      for (const [at, name] of names.entries()) {
        expect(ids(await disk.tasksNamed([name]))).toEqual([at + 1])
        expect((await disk.instances({ names: [name] })).map(({ instanceId }) => instanceId)).toEqual([name])
      }
    })

    test('find the next lanes of a task', async () => {
      const { disk } = await create()
      const counts = [
        tally({ ready: 1 }),
        tally({ parked: 2, done: 1 }),
        tally({ done: 3 }),
        tally({ leased: 1 }),
        tally({ cancelled: 2 }),
      ]
      await write(disk, {
        lanes: byId(
          ...counts.map((partitions, level) => {
            const purged = level === 2 ? 3 : level === 4 ? 1 : 0
            return aLane(level + 1, 1, { level, partitions, purged })
          }),
          aLane(9, 2, { level: 0, partitions: tally({ ready: 1 }) }),
        ),
      })
      const next = async (from: number, having: LanesFrom['having'], limit = 10) =>
        ids((await disk.lanesFrom({ task: 1, from, having, limit })).lanes)
      expect(await next(0, 'any')).toEqual([1, 2, 3, 4, 5])
      expect(await next(1, 'any', 2)).toEqual([2, 3])
      expect(await next(0, 'parked')).toEqual([2])
      expect(await next(2, 'parked')).toEqual([])
      expect(await next(0, 'rows')).toEqual([1, 2, 4, 5])
    })

    test('find what waits in lanes: what arrived by id, what came back by time', async () => {
      const { disk } = await create()
      await disk.stage([...rows(1, 1, 5), ...rows(2, 6, 2), ...rows(1, 8, 5)])
      const back = (dueAt: number) => status({ leaseNumber: 1, dueAt })
      await write(disk, {
        partitions: new Map([
          [1, back(NOW + 5)],
          [3, back(NOW + 1)],
          [4, back(NOW + 1)],
          [5, leased({ dueAt: NOW })],
          [8, status({ state: 'delayed', leaseNumber: 1, dueAt: NOW })],
        ]),
      })
      const asked = (changes: Partial<WaitingOfLane>): WaitingOfLane => ({
        lane: 1,
        returned: false,
        after: { dueAt: 0, id: 0 },
        upTo: 12,
        limit: 10,
        ...changes,
      })
      const returned = (dueAt: number, id: number, limit = 10) =>
        asked({ returned: true, after: { dueAt, id }, limit })
      const found = await disk.waiting([
        asked({ after: { dueAt: 0, id: 8 }, upTo: 11 }),
        asked({ after: { dueAt: 0, id: 8 }, limit: 2 }),
        asked({ lane: 2 }),
        asked({ lane: 3 }),
        returned(-1, -1),
        returned(-1, -1, 2),
        returned(NOW + 1, 3),
        returned(NOW + 5, 1),
      ])
      expect(found.map(ids)).toEqual([[9, 10, 11], [9, 10], [6, 7], [], [3, 4, 1], [3, 4], [4, 1], []])
      expect(found[2]?.[0]).toEqual({ ...aRow(6, 2), ...status() })
    })

    test('find what waits of one table of a lane that has several', async () => {
      const { disk } = await create()
      const tables = [A, B, A, B, B, A, B]
      await disk.stage(
        tables.map((computeTable, at) =>
          aRow(at + 1, 1, { index: at, computeTable, inMixedLane: at + 1 > 1 }),
        ),
      )
      await disk.stage([aRow(20, 2, { computeTable: B, inMixedLane: true })])
      await write(disk, {
        partitions: new Map([
          [4, status({ leaseNumber: 1, dueAt: 50 })],
          [5, status({ leaseNumber: 1, dueAt: 50 })],
          [3, status({ leaseNumber: 1, dueAt: 60 })],
        ]),
      })
      const all = { lane: 1, limit: 10, upTo: 7 }
      const [fresh, limited, back, later, other] = await disk.waiting([
        { ...all, table: B, returned: false, after: { dueAt: 0, id: 0 } },
        { ...all, table: A, returned: false, after: { dueAt: 0, id: 3 }, limit: 1 },
        { ...all, table: B, returned: true, after: { dueAt: -1, id: -1 } },
        { ...all, table: B, returned: true, after: { dueAt: 50, id: 4 } },
        { ...all, table: A, returned: true, after: { dueAt: -1, id: -1 } },
      ])
      const ready = (fresh ?? []).filter(({ dueAt }) => dueAt === null)
      expect(ids(ready)).toEqual([2, 7])
      expect([limited, back, later, other].map((one) => ids(one ?? []))).toEqual([[6], [4, 5], [5], [3]])
    })

    test('find the rows of a lane that count by index, of one state or of all', async () => {
      const { disk } = await create()
      const at = (id: number, index: number) => aRow(id, 1, { index })
      await disk.stage([at(1, 9), at(2, 8), at(3, 7), at(4, 6), at(5, 5), aRow(6, 2, { index: 1 })])
      await write(disk, {
        partitions: new Map([
          [2, status({ state: 'parked', leaseNumber: 1, failure: 'locked-1' })],
          [3, status({ state: 'done', leaseNumber: 1, failure: 'locked-1' })],
          [4, status({ state: 'parked', leaseNumber: 1, failure: 'expired' })],
          [5, status({ state: 'leased', leaseNumber: 1, dueAt: 9 })],
        ]),
      })
      const failed = async (state: 'parked' | 'ready' | 'done' | null, failure: string, afterIndex = -1) =>
        (await disk.rows([{ lane: 1, tail: 4, state, failure, afterIndex, limit: 10 }])).map(ids)[0]
      expect(await failed(null, 'locked-1')).toEqual([3, 2])
      expect(await failed(null, 'locked-1', 7)).toEqual([2])
      expect(await failed('parked', 'locked-1')).toEqual([2])
      expect(await failed('parked', 'expired')).toEqual([4])
      expect(await failed('done', 'locked-1')).toEqual([3])
      expect(await failed('parked', 'other')).toEqual([])
      const mixed = await disk.rows([
        { lane: 1, tail: 4, state: null, failure: 'locked-1', afterIndex: -1, limit: 1 },
        { lane: 1, tail: 4, state: 'parked', afterIndex: -1, limit: 9 },
      ])
      expect(mixed.map(ids)).toEqual([[3], [4, 2]])
      const some = async (state: RowsOfLane['state'], afterIndex = -1, limit = 10, tail = 4) =>
        (await disk.rows([{ lane: 1, tail, state, afterIndex, limit }])).map(ids)[0]
      expect(await some(null)).toEqual([4, 3, 2, 1])
      expect(await some(null, -1, 10, 5)).toEqual([5, 4, 3, 2, 1])
      expect(await some(null, 6, 2)).toEqual([3, 2])
      expect(await some('parked')).toEqual([4, 2])
      expect(await some('parked', 6)).toEqual([2])
      expect(await some('done')).toEqual([3])
      expect(await some('begun')).toEqual([4, 2])
      expect(await some('begun', -1, 10, 5)).toEqual([5, 4, 2])
      expect(await some('begun', 5, 1, 5)).toEqual([4])
      const several = await disk.rows([
        { lane: 2, tail: 9, state: null, afterIndex: -1, limit: 9 },
        { lane: 1, tail: 9, state: null, afterIndex: 8, limit: 9 },
        { lane: 1, tail: 9, state: null, afterIndex: 5, lastIndex: 7, limit: 9 },
        { lane: 1, tail: 9, state: 'begun', afterIndex: -1, lastIndex: 7, limit: 9 },
      ])
      expect(several.map(ids)).toEqual([[6], [1], [4, 3], [5, 4]])
    })
  })
}
