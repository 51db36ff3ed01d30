import { MAX_LISTED_GAPS, MAX_LISTED_LEVELS, MAX_LISTED_TABLES } from '@baton/protocol'
import { describe, expect, test } from 'vitest'
import { aLane, aRow, aTask, byId, NOW, status, tally, write } from './builders.ts'
import { type DiskHarness, disksOf } from './harness.ts'

export function viewsTopic(harness: DiskHarness): void {
  describe('views', () => {
    const create = disksOf(harness)

    test('show a task in detail', async () => {
      const { disk } = await create()
      const task = aTask(1, { levelBarrier: true, openLevel: 2, mismatched: 1 })
      const lanes = [aLane(3, 1, { level: 7 }), aLane(4, 1, { level: 2, tag: 5n })]
      await disk.stage([
        aRow(1, 4, { index: 5, spelling: '05' }),
        aRow(2, 4, { index: 6 }),
        aRow(3, 3, { index: 1 }),
      ])
      const reported = (reportedRecords: number) => status({ state: 'done', leaseNumber: 1, reportedRecords })
      await write(disk, {
        tasks: byId(task, aTask(2)),
        lanes: byId(...lanes, aLane(5, 2)),
        partitions: new Map([
          [1, reported(99)],
          [2, reported(100)],
          [3, reported(1)],
        ]),
        tables: new Map([
          [1, new Set(['z', 'a'])],
          [2, new Set(['b'])],
        ]),
        ranges: [{ lane: 4, first: 5, last: 6 }],
      })
      await write(disk, { tables: new Map([[1, new Set(['a', 'm'])]]) })
      expect(await disk.taskDetail('task-1')).toEqual({
        task,
        openLane: lanes[1],
        lanes: [
          { lane: lanes[1], ranges: [{ first: 5, last: 6 }], lastIndex: 6 },
          { lane: lanes[0], ranges: [], lastIndex: 0 },
        ],
        laneCount: 2,
        computeTables: ['z', 'a', 'm'],
        mismatches: [
          { level: 2, index: 5, spelling: '05', declared: 100, reported: 99 },
          { level: 7, index: 1, spelling: null, declared: 100, reported: 1 },
        ],
      })
      expect(await disk.taskDetail('task-3')).toBeNull()
      expect(await disk.taskDetail('task-2')).toMatchObject({ openLane: null, computeTables: ['b'] })
    })

    test('truncate lists', async () => {
      const { disk } = await create()
      const levels = MAX_LISTED_LEVELS + 2
      const lanes = Array.from({ length: levels }, (_, level) => aLane(level + 1, 1, { level }))
      const ranges = Array.from({ length: 40 }, (_, at) => ({ lane: 1, first: 10 * at, last: 10 * at + 1 }))
      const tables = new Set(
        Array.from({ length: MAX_LISTED_TABLES + 3 }, (_, at) => `t${String(at).padStart(3, '0')}`),
      )
      await write(disk, {
        tasks: byId(aTask(1)),
        lanes: byId(...lanes),
        ranges,
        tables: new Map([[1, tables]]),
      })
      const detail = await disk.taskDetail('task-1')
      expect(detail?.lanes).toHaveLength(MAX_LISTED_LEVELS)
      expect(detail?.laneCount).toBe(levels)
      expect(detail?.computeTables).toEqual([...tables].slice(0, MAX_LISTED_TABLES))
      expect(detail?.lanes[0]?.ranges).toHaveLength(MAX_LISTED_GAPS + 1)
      expect(detail?.lanes[0]?.lastIndex).toBe(391)
    })

    test('page through tasks, newest first', async () => {
      const { disk } = await create()
      const lane = aLane(1, 3, { level: 6 })
      await write(disk, {
        tasks: byId(
          aTask(1, { state: 'done' }),
          aTask(2, { partitions: tally({ parked: 1 }) }),
          aTask(3, { levelBarrier: true, openLevel: 6 }),
          aTask(4, { state: 'cancelled', cancelled: true, partitions: tally({ parked: 1 }) }),
          aTask(5, { state: 'stalled', partitions: tally({ parked: 1 }) }),
        ),
        lanes: byId(lane),
      })
      type Which = 'all' | 'parked' | { state: 'open' | 'done' }
      const page = async (before: number, limit: number, which: Which = 'all') =>
        (await disk.taskPage({ before, limit, which })).map(({ task }) => task.id)
      expect(await page(Number.MAX_SAFE_INTEGER, 10)).toEqual([5, 4, 3, 2, 1])
      expect(await page(4, 2)).toEqual([3, 2])
      expect(await page(Number.MAX_SAFE_INTEGER, 10, 'parked')).toEqual([5, 2])
      expect(await page(5, 10, 'parked')).toEqual([2])
      expect(await page(Number.MAX_SAFE_INTEGER, 10, { state: 'open' })).toEqual([3, 2])
      expect(await page(3, 10, { state: 'open' })).toEqual([2])
      const summaries = await disk.tasksWithLane([3, 9, 1])
      expect(summaries.map(({ task }) => task.id)).toEqual([3, 1])
      expect(summaries.map(({ openLane }) => openLane)).toEqual([lane, null])
    })

    test('count the done partitions that are not purged', async () => {
      const { disk } = await create()
      const lanes = [
        aLane(1, 1, { level: 0, partitions: tally({ done: 5, ready: 3 }) }),
        aLane(2, 1, { level: 1, partitions: tally({ done: 5 }), purged: 3 }),
        aLane(3, 1, { level: 2, partitions: tally({ done: 1, cancelled: 9 }), purged: 7 }),
        aLane(4, 2, { partitions: tally({ done: 50 }) }),
      ]
      await write(disk, { tasks: byId(aTask(1), aTask(2)), lanes: byId(...lanes) })
      expect(await disk.doneRows(1)).toBe(7)
      expect(await disk.doneRows(3)).toBe(0)
    })

    test('find the tasks that have a compute table', async () => {
      const { disk } = await create()
      const tables = new Map([
        [1, new Set(['results.a'])],
        [2, new Set(['results.a', 'results.b'])],
        [3, new Set(['results.c'])],
        [4, new Set(['results.a'])],
      ])
      await write(disk, { tasks: byId(aTask(1), aTask(2), aTask(3), aTask(4)), tables })
      const having = async (ids: readonly number[], names: readonly string[]) =>
        (await disk.tasksWithTables(ids, names)).toSorted((a, b) => a.task - b.task)
      expect(await having([1, 2, 3], ['results.a'])).toEqual([
        { task: 1, hasOthers: false },
        { task: 2, hasOthers: true },
      ])
      expect(await having([2, 3, 9], ['results.a', 'results.b', 'results.c'])).toEqual([
        { task: 2, hasOthers: false },
        { task: 3, hasOthers: false },
      ])
      expect(await having([1, 2], ['RESULTS.A', "results'"])).toEqual([])
      expect(await having([], ['results.a'])).toEqual([])
    })

    test('count the states of a lane by cell, by rank or of a sample by index', async () => {
      const { disk } = await create()
      const indexes = [0, 1, 2, 10, 11, 12, 13, 40]
      await disk.stage(indexes.map((index, at) => aRow(at + 1, 3, { index })))
      await disk.stage([aRow(20, 4), aRow(30, 3, { index: 50 })])
      const done = status({ state: 'done', leaseNumber: 1 })
      const parked = status({ state: 'parked' })
      await write(disk, {
        partitions: new Map([
          [1, done],
          [2, done],
          [4, parked],
          [7, parked],
        ]),
      })
      const cell = (number: number, state: string, partitions: number, first: number, last: number) => ({
        cell: number,
        state,
        partitions,
        first,
        last,
      })
      const byState = (a: { cell: number; state: string }, b: { cell: number; state: string }) =>
        a.cell - b.cell || (a.state < b.state ? -1 : 1)
      const ranked = await disk.countCells({ lane: 3, tail: 19, by: { kind: 'rank', width: 4, limit: 7 } })
      expect(ranked.toSorted(byState)).toEqual([
        cell(0, 'done', 2, 0, 1),
        cell(0, 'parked', 1, 10, 10),
        cell(0, 'ready', 1, 2, 2),
        cell(1, 'parked', 1, 13, 13),
        cell(1, 'ready', 2, 11, 12),
      ])
      // Ranges of 13 indexes from 0 to 50. The row of a call-back in progress has one of them.
      const sampled = await disk.countCells({ lane: 3, tail: 19, by: { kind: 'index', cells: 4, each: 2 } })
      expect(sampled.toSorted(byState)).toEqual([
        cell(0, 'done', 2, 0, 12),
        cell(0, 'parked', 1, 0, 12),
        cell(1, 'parked', 1, 13, 25),
        cell(3, 'ready', 1, 39, 50),
      ])
      expect(await disk.countCells({ lane: 9, tail: 99, by: { kind: 'index', cells: 2, each: 1 } })).toEqual(
        [],
      )
    })

    test('show when a task finished', async () => {
      const { disk } = await create()
      await write(disk, { tasks: byId(aTask(1, { state: 'done', finishedAt: NOW + 7 })) })
      expect((await disk.taskDetail('task-1'))?.task.finishedAt).toBe(NOW + 7)
    })
  })
}
