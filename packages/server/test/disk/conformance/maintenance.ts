import { describe, expect, test } from 'vitest'
import { aLane, aRow, aTask, byId, ids, leased, NOW, rows, status, tally, write } from './builders.ts'
import { type DiskHarness, disksOf } from './harness.ts'

export function maintenanceTopic(harness: DiskHarness): void {
  describe('maintenance', () => {
    const create = disksOf(harness)

    test('finds the back-offs that have ended', async () => {
      const { disk } = await create()
      await disk.stage(rows(1, 1, 6))
      const delayed = (dueAt: number) => status({ state: 'delayed', leaseNumber: 1, dueAt })
      await write(disk, {
        partitions: new Map([
          [1, leased({ dueAt: NOW - 3 })],
          [2, delayed(NOW + 1)],
          [3, delayed(NOW - 1)],
          [4, delayed(NOW - 1)],
          [5, status({ leaseNumber: 1, dueAt: NOW - 5 })],
        ]),
      })
      const ended = async (now: number, limit = 10) => {
        const { due, nextAt } = await disk.dueBackoffs(now, limit)
        return [ids(due), nextAt]
      }
      expect(await ended(NOW)).toEqual([[3, 4], NOW + 1])
      expect(await ended(NOW, 1)).toEqual([[3], NOW - 1])
      expect(await ended(NOW - 2)).toEqual([[], NOW - 1])
      expect(await ended(NOW + 1)).toEqual([[3, 4, 2], null])
      expect((await disk.dueBackoffs(NOW, 1)).due).toEqual([{ ...aRow(3, 1), ...delayed(NOW - 1) }])
    })

    test('purges the task whose purge has begun, else the one that finished first', async () => {
      const { disk } = await create()
      const done = (id: number, finishedAt: number, changes = {}) =>
        aTask(id, { state: 'done', finishedAt, partitions: tally({ done: 4 }), ...changes })
      const lane = (task: number, level: number, purged = 0) =>
        aLane(10 * task + level, task, { level, purged, partitions: tally({ done: 2 }) })
      const laneIds = [1, 2, 3, 4, 5].flatMap((task) => [lane(task, 0), lane(task, 1)])
      const cancelled = { state: 'cancelled', cancelled: true }
      const removed = (...gone: number[]) => new Map(gone.map((id) => [id, null]))
      await disk.stage([...rows(10, 1, 2), ...rows(11, 3, 2)])
      await write(disk, {
        tasks: byId(
          done(1, NOW + 2),
          done(2, NOW + 1),
          done(3, NOW, { ...cancelled, partitions: tally({ ready: 3, leased: 1 }) }),
          done(4, NOW, { purgedAt: NOW + 5 }),
          aTask(5),
        ),
        lanes: byId(...laneIds, lane(4, 0, 2), lane(4, 1, 2)),
      })
      const next = async (before: number) => (await disk.purgeable(before))?.id ?? null
      expect(await next(NOW + 1)).toBeNull()
      expect(await next(NOW + 2)).toBe(2)
      expect(await next(NOW + 9)).toBe(2)
      // The first of two levels is gone, and a restart comes in between.
      await write(disk, {
        tasks: byId(done(1, NOW + 2, { purgedAt: NOW + 9 })),
        lanes: byId(lane(1, 0, 2)),
        partitions: removed(1, 2),
      })
      expect(await next(NOW)).toBe(1)
      await write(disk, { lanes: byId(lane(1, 1, 1)), partitions: removed(3) })
      expect(await next(NOW)).toBe(1)
      await write(disk, { lanes: byId(lane(1, 1, 2)), partitions: removed(4) })
      expect(await next(NOW)).toBeNull()
      // Leases of a cancelled task need its rows until they end.
      await write(disk, {
        tasks: byId(done(3, NOW, { ...cancelled, partitions: tally({ ready: 3, cancelled: 1 }) })),
      })
      expect(await next(NOW + 9)).toBe(3)
      // A large call-back is about to reopen them.
      const staging = { first: 100, last: 220 }
      await write(disk, { tasks: byId(done(2, NOW + 1, { staging }), done(3, NOW, { staging })) })
      expect(await next(NOW + 9)).toBeNull()
    })
  })
}
