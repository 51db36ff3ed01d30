import { describe, expect, test } from 'vitest'
import {
  aLane,
  aLaneTable,
  aRow,
  aTask,
  BEYOND_DOUBLE,
  byId,
  images,
  status,
  tablesByName,
} from './builders.ts'
import { type DiskHarness, disksOf } from './harness.ts'

const A = 'results.a'
const B = 'results."ä b"'

/** What the order of pulls with a table filter needs. */
export function laneTablesTopic(harness: DiskHarness): void {
  describe('tables of lanes', () => {
    const create = disksOf(harness)

    test('are loaded with their lanes, including their times', async () => {
      const { disk } = await create()
      const full = aLaneTable(1, B, {
        level: 7,
        tag: BEYOND_DOUBLE,
        retryTag: BEYOND_DOUBLE + 1n,
        turn: BEYOND_DOUBLE,
        cursor: 11,
        ready: 4,
        released: 2,
        retries: 1,
      })
      const time = { level: 7, table: B, virtual: BEYOND_DOUBLE + 3n }
      const lanes = [aLane(1, 1, { level: 7 }), aLane(2, 1, { level: 8 })]
      await disk.stage([aRow(5, 1, { computeTable: B })])
      await disk.flush(
        images({
          tasks: byId(aTask(1)),
          lanes: byId(...lanes),
          laneTables: tablesByName(full, aLaneTable(1, A, { level: 7 }), aLaneTable(2, A, { level: 8 })),
          tableTimes: new Map([[`7:${B}`, time]]),
        }),
        0,
      )
      const byLane = await disk.load({ lanes: [1] })
      expect(byLane.laneTables.toSorted((a, b) => (a.table < b.table ? -1 : 1))).toEqual([
        full,
        aLaneTable(1, A, { level: 7 }),
      ])
      expect(byLane.tableTimes).toEqual([time])
      expect((await disk.load({ partitions: [5] })).laneTables).toHaveLength(2)
      const asked = [
        { level: 7, table: B },
        { level: 7, table: A },
      ]
      expect(await disk.load({ tableTimes: asked })).toMatchObject({ lanes: [], tableTimes: [time] })
      await disk.flush(
        images({
          laneTables: tablesByName({ ...full, turn: null, ready: 0 }),
          tableTimes: new Map([[`7:${B}`, { ...time, virtual: 5n }]]),
        }),
        0,
      )
      const later = await disk.load({ lanes: [1] })
      expect(later.laneTables.find(({ table }) => table === B)).toEqual({ ...full, turn: null, ready: 0 })
      expect(later.tableTimes).toEqual([{ ...time, virtual: 5n }])
    })

    test('have their own order', async () => {
      const { disk } = await create()
      const row = (lane: number, table: string, level: number, turn: bigint | null) =>
        aLaneTable(lane, table, { level, turn })
      const lane = (id: number, level: number) => aLane(id, 1, { level, turn: 0n })
      await disk.flush(
        images({
          tasks: byId(aTask(1)),
          lanes: byId(lane(1, 1), lane(2, 0), lane(3, 2), lane(4, 3), lane(5, 4), lane(6, 5)),
          laneTables: tablesByName(
            row(1, A, 1, 0n),
            row(2, A, 0, BEYOND_DOUBLE + 1n),
            row(3, A, 2, BEYOND_DOUBLE),
            row(4, A, 3, null),
            row(5, B, 4, -3n),
            row(3, B, 2, 1n),
            row(6, A, Number.MAX_SAFE_INTEGER, 1n),
          ),
        }),
        0,
      )
      const order = async (
        table: string,
        after: { level: number; turn: bigint; lane: number } | null,
        limit = 10,
      ) => (await disk.load({ order: { after, limit, table } })).order
      expect(await order(A, null)).toEqual([2, 1, 3, 6])
      expect(await order(A, null, 2)).toEqual([2, 1])
      expect(await order(A, { level: 0, turn: BEYOND_DOUBLE + 1n, lane: 2 })).toEqual([1, 3, 6])
      expect(await order(A, { level: 0, turn: BEYOND_DOUBLE, lane: 9 })).toEqual([2, 1, 3, 6])
      expect(await order(A, { level: 2, turn: BEYOND_DOUBLE, lane: 2 }, 1)).toEqual([3])
      expect(await order(B, null)).toEqual([3, 5])
      expect(await order('results.none', null)).toEqual([])
      const { lanes, laneTables } = await disk.load({ order: { after: null, limit: 1, table: B } })
      expect(lanes.map(({ id }) => id)).toEqual([3])
      expect(laneTables).toHaveLength(2)
    })

    test('have their own partitions of a lane', async () => {
      const { disk } = await create()
      const tables = [A, B, A, B, B, A, B]
      await disk.stage(tables.map((computeTable, at) => aRow(at + 1, 1, { index: at, computeTable })))
      await disk.stage([aRow(20, 2, { computeTable: B })])
      await disk.flush(
        images({
          partitions: new Map([
            [2, status({ line: 'released', term: 1 })],
            [3, status({ line: 'retry', term: 1, dueAt: 50 })],
            [5, status({ line: 'retry', term: 1, dueAt: 50 })],
            [4, status({ line: 'retry', term: 1, dueAt: 60 })],
          ]),
        }),
        0,
      )
      const ask = { lane: 1, limit: 10 }
      const loaded = await disk.load({
        fresh: [
          { ...ask, table: B, after: 2, tail: 7 },
          { ...ask, table: A, after: 0, tail: 5 },
          { ...ask, after: 5, tail: 7 },
          { ...ask, table: B, after: 0, tail: 7, limit: 1 },
        ],
        returned: [
          { ...ask, table: B, line: 'retry', after: null },
          { ...ask, table: B, line: 'retry', after: { dueAt: 50, id: 5 } },
          { ...ask, table: A, line: 'retry', after: null },
          { ...ask, table: A, line: 'released', after: null },
          { ...ask, line: 'released', after: null },
        ],
      })
      expect(loaded.fresh).toEqual([[4, 5, 7], [1, 3], [6, 7], [2]])
      expect(loaded.returned).toEqual([[5, 4], [4], [3], [], [2]])
    })
  })
}
