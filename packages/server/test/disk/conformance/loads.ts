import { describe, expect, test } from 'vitest'
import {
  aLane,
  aRow,
  aTask,
  BEYOND_DOUBLE,
  byId,
  ids,
  images,
  leased,
  NOW,
  rows,
  status,
  tally,
} from './builders.ts'
import { type DiskHarness, disksOf } from './harness.ts'

export function loadsTopic(harness: DiskHarness): void {
  describe('loads', () => {
    const create = disksOf(harness)

    test('read nothing for an empty request', async () => {
      const { disk } = await create()
      const tables = { laneTables: [], tableTimes: [] }
      const nothing = { tasks: [], lanes: [], levels: [], ...tables, partitions: [], keys: [], order: [] }
      expect(await disk.load({})).toEqual({ ...nothing, nextLanes: [], rows: [], fresh: [], returned: [] })
      expect(
        await disk.load({
          taskNames: ['x'],
          tasks: [1],
          lanes: [1],
          levels: [1],
          lanesOf: [{ task: 1, levels: [0] }],
          nextLanes: [{ task: 1, from: 0, having: 'any', limit: 5 }],
          partitions: [1],
          named: [{ lane: 1, indexes: [1] }],
          rows: [{ lane: 1, tail: 9, state: null, afterIndex: -1, limit: 5 }],
          keys: ['k'],
          order: { after: null, limit: 5 },
          fresh: [{ lane: 1, after: 0, tail: 9, limit: 5 }],
          returned: [{ lane: 1, line: 'released', after: null, limit: 5 }],
        }),
      ).toEqual({ ...nothing, nextLanes: [[]], rows: [[]], fresh: [[]], returned: [[]] })
    })

    test('read a partition with its lane, task and level, if they have rows', async () => {
      const { disk } = await create()
      const level = { level: 2, virtual: 1n, served: 2n }
      await disk.stage([...rows(1, 1, 2), aRow(3, 9)])
      await disk.flush(
        images({
          tasks: byId(aTask(1), aTask(2)),
          lanes: byId(aLane(1, 1, { level: 2 }), aLane(2, 2)),
          levels: new Map([[2, level]]),
        }),
        0,
      )
      const loaded = await disk.load({ partitions: [2, 1, 3, 4] })
      expect(ids(loaded.partitions)).toEqual([2, 1, 3])
      expect([...new Set(ids(loaded.lanes))]).toEqual([1])
      expect([...new Set(ids(loaded.tasks))]).toEqual([1])
      expect(loaded.levels[0]).toEqual(level)
      const ofTask = await disk.load({
        taskNames: ['task-2', 'task-9'],
        lanesOf: [{ task: 2, levels: [0, 1] }],
      })
      expect([...new Set(ids(ofTask.tasks))]).toEqual([2])
      expect(ids(ofTask.lanes)).toEqual([2])
      expect(ofTask.levels).toEqual([])
    })

    test('find partitions by their index', async () => {
      const { disk } = await create()
      await disk.stage([aRow(1, 1, { index: 50 }), aRow(2, 1, { index: 40 }), aRow(3, 2, { index: 40 })])
      const { partitions } = await disk.load({ named: [{ lane: 1, indexes: [40, 45, 50] }] })
      expect(ids(partitions)).toEqual([2, 1])
    })

    test('read lanes in the order of the hand-off', async () => {
      const { disk } = await create()
      const lane = (id: number, level: number, turn: bigint | null) => aLane(id, id, { level, turn })
      await disk.flush(
        images({
          lanes: byId(
            lane(1, 1, 0n),
            lane(2, 0, BEYOND_DOUBLE + 1n),
            lane(3, 0, BEYOND_DOUBLE),
            lane(4, 0, null),
            lane(5, 0, BEYOND_DOUBLE),
            lane(6, 0, -3n),
            lane(7, Number.MAX_SAFE_INTEGER, 1n),
          ),
        }),
        0,
      )
      const order = async (after: { level: number; turn: bigint; lane: number } | null, limit: number) =>
        (await disk.load({ order: { after, limit } })).order
      expect(await order(null, 10)).toEqual([6, 3, 5, 2, 1, 7])
      expect(await order(null, 2)).toEqual([6, 3])
      expect(await order({ level: 0, turn: BEYOND_DOUBLE, lane: 3 }, 2)).toEqual([5, 2])
      expect(await order({ level: 0, turn: BEYOND_DOUBLE, lane: 4 }, 10)).toEqual([5, 2, 1, 7])
      expect(await order({ level: 0, turn: BEYOND_DOUBLE + 1n, lane: 2 }, 10)).toEqual([1, 7])
      expect(await order({ level: Number.MAX_SAFE_INTEGER, turn: 1n, lane: 7 }, 10)).toEqual([])
      expect(ids((await disk.load({ order: { after: null, limit: 2 } })).lanes)).toEqual([6, 3])
    })

    test('read the next lanes of a task', async () => {
      const { disk } = await create()
      const counts = [
        tally({ ready: 1 }),
        tally({ parked: 2, done: 1 }),
        tally({ done: 3 }),
        tally({ leased: 1 }),
        tally({ cancelled: 2 }),
      ]
      await disk.flush(
        images({
          tasks: byId(aTask(1), aTask(2)),
          lanes: byId(
            ...counts.map((partitions, level) => {
              const purged = level === 2 ? 3 : level === 4 ? 1 : 0
              return aLane(level + 1, 1, { level, partitions, purged, turn: level % 3 === 0 ? 5n : null })
            }),
            aLane(9, 2, { level: 0, partitions: tally({ ready: 1 }) }),
          ),
        }),
        0,
      )
      const next = async (
        from: number,
        having: 'unfinished' | 'parked' | 'waiting' | 'rows' | 'any',
        limit = 10,
      ) => (await disk.load({ nextLanes: [{ task: 1, from, having, limit }] })).nextLanes[0]
      expect(await next(0, 'any')).toEqual([1, 2, 3, 4, 5])
      expect(await next(1, 'any', 2)).toEqual([2, 3])
      expect(await next(0, 'unfinished')).toEqual([1, 2, 4])
      expect(await next(2, 'unfinished')).toEqual([4])
      expect(await next(0, 'parked')).toEqual([2])
      expect(await next(2, 'parked')).toEqual([])
      expect(await next(0, 'rows')).toEqual([1, 2, 4, 5])
      expect(await next(0, 'waiting')).toEqual([1, 4])
      expect(await next(1, 'waiting')).toEqual([4])
    })

    test('read the untouched partitions of a lane, up to its tail', async () => {
      const { disk } = await create()
      await disk.stage([...rows(1, 1, 5), ...rows(2, 6, 2), ...rows(1, 8, 5)])
      const fresh = async (after: number, tail: number, limit: number) => {
        const loaded = await disk.load({ fresh: [{ lane: 1, after, tail, limit }] })
        expect(ids(loaded.partitions)).toEqual(loaded.fresh[0])
        return loaded.fresh[0]
      }
      expect(await fresh(0, 12, 100)).toEqual([1, 2, 3, 4, 5, 8, 9, 10, 11, 12])
      expect(await fresh(3, 10, 100)).toEqual([4, 5, 8, 9, 10])
      expect(await fresh(3, 10, 2)).toEqual([4, 5])
      expect(await fresh(10, 10, 2)).toEqual([])
    })

    test('read released and retried partitions, in the order of their lines', async () => {
      const { disk } = await create()
      await disk.stage(rows(1, 1, 9))
      const retry = (dueAt: number | null) => status({ line: 'retry', term: 1, dueAt })
      await disk.flush(
        images({
          partitions: new Map([
            [1, retry(NOW + 5)],
            [2, retry(null)],
            [3, retry(NOW + 1)],
            [4, retry(NOW + 1)],
            [5, leased({ line: 'retry', dueAt: NOW })],
            [6, status({ line: 'released', term: 1 })],
            [7, status({ line: 'released', term: 1 })],
            [8, status({ state: 'delayed', line: 'retry', term: 1, dueAt: NOW })],
          ]),
        }),
        0,
      )
      const line = async (
        name: 'released' | 'retry',
        after: { dueAt: number; id: number } | null,
        limit = 10,
      ) => (await disk.load({ returned: [{ lane: 1, line: name, after, limit }] })).returned[0]
      expect(await line('retry', null)).toEqual([2, 3, 4, 1])
      expect(await line('retry', null, 2)).toEqual([2, 3])
      expect(await line('retry', { dueAt: 0, id: 2 })).toEqual([3, 4, 1])
      expect(await line('retry', { dueAt: NOW + 1, id: 3 })).toEqual([4, 1])
      expect(await line('retry', { dueAt: NOW + 5, id: 1 })).toEqual([])
      expect(await line('released', null)).toEqual([6, 7])
      expect(await line('released', { dueAt: 0, id: 6 })).toEqual([7])
    })

    test('read the rows of a lane that count by index, of one state or of all', async () => {
      const { disk } = await create()
      const at = (id: number, index: number) => aRow(id, 1, { index })
      await disk.stage([at(1, 9), at(2, 8), at(3, 7), at(4, 6), at(5, 5), aRow(6, 2, { index: 1 })])
      await disk.flush(
        images({
          partitions: new Map([
            [2, status({ state: 'parked', term: 1 })],
            [3, status({ state: 'done', term: 1 })],
            [4, status({ state: 'parked', term: 1 })],
          ]),
        }),
        0,
      )
      const some = async (state: 'parked' | 'done' | null, afterIndex = -1, limit = 10, tail = 4) =>
        (await disk.load({ rows: [{ lane: 1, tail, state, afterIndex, limit }] })).rows[0]
      expect(await some(null)).toEqual([4, 3, 2, 1])
      expect(await some(null, -1, 10, 5)).toEqual([5, 4, 3, 2, 1])
      expect(await some(null, 6, 2)).toEqual([3, 2])
      expect(await some('parked')).toEqual([4, 2])
      expect(await some('parked', 6)).toEqual([2])
      expect(await some('done')).toEqual([3])
    })

    test('read several parts at once, each in its order', async () => {
      const { disk } = await create()
      await disk.stage([...rows(1, 1, 3), ...rows(2, 4, 3)])
      const loaded = await disk.load({
        fresh: [
          { lane: 2, after: 0, tail: 6, limit: 2 },
          { lane: 3, after: 0, tail: 6, limit: 2 },
          { lane: 1, after: 1, tail: 6, limit: 2 },
        ],
        partitions: [6],
      })
      expect(loaded.fresh).toEqual([[4, 5], [], [2, 3]])
      expect(ids(loaded.partitions).toSorted()).toEqual([2, 3, 4, 5, 6])
    })
  })
}
