import { describe, expect, test } from 'vitest'
import type { StoredLane, StoredTask } from '../../../src/handoff/stored.ts'
import {
  aLane,
  aRow,
  aTask,
  BEYOND_DOUBLE,
  byId,
  ids,
  leased,
  NOW,
  rows,
  status,
  tally,
  write,
} from './builders.ts'
import { type DiskHarness, disksOf } from './harness.ts'

/** Every field differs from its initial value. */
const fullTask: StoredTask = {
  id: 3,
  taskId: 'spätlese/"3"',
  state: 'paused',
  paused: true,
  cancelled: true,
  sealed: true,
  expectedPartitions: 12,
  levelBarrier: true,
  openLevel: 4,
  generation: 2,
  firstCallBackAt: NOW,
  lastCallBackAt: NOW + 1,
  finishedAt: NOW + 2,
  purgedAt: NOW + 3,
  delivered: 5,
  attemptsWasted: 6,
  reportedDeclared: 7,
  reportedRecords: Number.MAX_SAFE_INTEGER,
  mismatched: 8,
  partitions: { ready: 1, held: 2, leased: 3, delayed: 4, parked: 5, done: 6, cancelled: 7 },
  records: { ready: 10, held: 20, leased: 30, delayed: 40, parked: 50, done: 60, cancelled: 70 },
  owners: ['compute', 'backfill'],
  reruns: [
    { only: null, begunAt: NOW, level: 1, index: -1 },
    { only: 2, begunAt: NOW + 1, level: 2, index: 77 },
  ],
  staging: { first: 100, last: 220 },
  settings: {
    leaseMillis: 1500,
    maxAttempts: 2,
    backoffMillis: 0,
    backoffMaxMillis: 7,
    maxLeases: 3,
    weight: 0.5,
    pauseAfterFailures: { share: 0.5, of: 20 },
  },
  failures: [
    {
      key: 'the-table-is-locked-1x',
      outcome: 'failed',
      reason: 'the "täble" is\tlocked',
      count: 3,
      firstAt: NOW,
      lastAt: NOW + 4,
      parked: { partitions: 2, records: 70 },
    },
  ],
  durations: [3, 1, 21, 400],
  stamps: { paused: [NOW, 'on "call"', 'too many "failures"'], changed: [NOW + 1, null] },
  failureWindow: '01101',
}

const fullLane: StoredLane = {
  id: 5,
  task: 3,
  level: Number.MAX_SAFE_INTEGER,
  tag: BEYOND_DOUBLE,
  cursor: 11,
  tail: 22,
  returned: 2,
  table: 'results."ä b"',
  mixedAfter: 17,
  parkedSkipped: true,
  purged: 3,
  purgedRecords: 300,
  busyMillis: 12_345_678_901,
  attemptsDone: 17,
  finishedAt: NOW + 5,
  partitions: { ready: 7, held: 6, leased: 5, delayed: 4, parked: 3, done: 2, cancelled: 1 },
  records: { ready: 70, held: 60, leased: 50, delayed: 40, parked: 30, done: 20, cancelled: 10 },
}

const fullStatus = status({
  state: 'done',
  leaseNumber: 4,
  attempts: 3,
  releases: 2,
  holder: 'wörker',
  secret: 'abcdefghijklmnop',
  outcome: 'expired',
  dueAt: NOW + 1,
  leasedAt: NOW + 2,
  fencingToken: NOW + 4,
  settledAt: NOW + 3,
  reportedRecords: 99,
  reason: 'it\nbroke',
  checkpointAt: NOW + 5,
  history: [
    {
      attempt: 1,
      holder: 'wörker',
      startedAt: NOW - 9,
      endedAt: NOW - 5,
      outcome: 'failed',
      reason: 'a "quoted" \\ reason',
      records: null,
    },
  ],
  failure: 'it-broke-1x',
})

export function rowChangesTopic(harness: DiskHarness): void {
  describe('row changes', () => {
    const create = disksOf(harness)

    test('have every field of a task, a lane and a level, also after a change', async () => {
      const { disk } = await create()
      const level = { level: fullLane.level, virtual: BEYOND_DOUBLE, maxFinishTag: BEYOND_DOUBLE + 4n }
      await write(disk, {
        tasks: byId(fullTask),
        lanes: byId(fullLane),
        levels: new Map([[level.level, level]]),
      })
      expect(await disk.tasksNamed([fullTask.taskId])).toEqual([fullTask])
      expect((await disk.lanesById([5])).lanes).toEqual([fullLane])
      expect(await disk.levels()).toEqual([level])
      const task = aTask(3, { taskId: fullTask.taskId, state: 'done', partitions: tally({ done: 1 }) })
      const lane = aLane(5, 3, { level: fullLane.level, table: fullLane.table, tail: 23 })
      const later = { ...level, virtual: 1n, maxFinishTag: 2n }
      await write(disk, { tasks: byId(task), lanes: byId(lane), levels: new Map([[level.level, later]]) })
      // A change without failures leaves them unchanged.
      const { failures } = fullTask
      expect(await disk.tasksById([3])).toEqual([{ ...task, failures }])
      expect((await disk.lanesById([5])).lanes).toEqual([lane])
      expect(await disk.levels()).toEqual([later])
    })

    test('have every field of a partition; null removes it', async () => {
      const { disk } = await create()
      const descriptor = aRow(1, 5, { index: 1234, spelling: '01234', computeTable: 'täble' })
      await disk.stage([descriptor, ...rows(5, 2, 2)])
      await write(disk, {
        partitions: new Map([
          [1, fullStatus],
          [2, null],
          [3, leased({ dueAt: NOW })],
          [99, null],
        ]),
      })
      expect(await disk.partitionsById([1, 2, 3])).toEqual([
        { ...descriptor, ...fullStatus },
        { ...aRow(3, 5), ...leased({ dueAt: NOW }) },
      ])
      await write(disk, { partitions: new Map([[1, status()]]) })
      expect(await disk.partitionsById([1])).toEqual([{ ...descriptor, ...status() }])
    })

    test('add, change and remove checkpoints', async () => {
      const { disk } = await create()
      const save = (...checkpoints: [number, string | null][]) =>
        write(disk, { checkpoints: new Map(checkpoints) })
      await save([1, 'page 1'], [2, '"ä"\\\n,{}😀'], [3, ''])
      await save([1, 'page 2'], [3, null], [9, null])
      expect(await disk.checkpoints([1, 2, 3, 4])).toEqual([
        { partition: 1, text: 'page 2' },
        { partition: 2, text: '"ä"\\\n,{}😀' },
      ])
      expect(await disk.checkpoints([])).toEqual([])
    })

    test('add and remove keys', async () => {
      const { disk } = await create()
      const key = (name: string, forgetAt: number) => ({ key: name, leases: ['1-1-x', '2-1-y'], forgetAt })
      await write(disk, { keys: new Map([1, 2, 3].map((n) => [`k${n}`, key(`k${n}`, NOW + n)])) })
      await write(disk, {
        keys: new Map([
          ['k1', key('k1', NOW + 9)],
          ['k2', null],
          ['k9', null],
        ]),
      })
      expect(await disk.keys(['k1', 'k2', 'k3', 'k4'])).toEqual([key('k1', NOW + 9), key('k3', NOW + 3)])
      expect(await disk.dueKeys(NOW + 2, 10)).toEqual([])
      expect((await disk.dueKeys(NOW + 9, 10)).map((due) => due.key)).toEqual(['k3', 'k1'])
      expect((await disk.dueKeys(NOW + 9, 1)).map((due) => due.key)).toEqual(['k3'])
    })

    test('add ranges, which are merged', async () => {
      const { disk } = await create()
      const lane = aLane(1, 1)
      const ranges = async () => (await disk.taskDetail('task-1'))?.lanes[0]?.ranges
      const add = (...added: [number, number][]) =>
        write(disk, { ranges: added.map(([first, last]) => ({ lane: 1, first, last })) })
      await write(disk, { tasks: byId(aTask(1)), lanes: byId(lane) })
      expect(await ranges()).toEqual([])
      await add([10, 19], [30, 39], [50, 59])
      expect(await ranges()).toEqual([
        { first: 10, last: 19 },
        { first: 30, last: 39 },
        { first: 50, last: 59 },
      ])
      await add([10, 19], [12, 15], [5, 9], [20, 22])
      expect((await ranges())?.[0]).toEqual({ first: 5, last: 22 })
      await add([22, 51])
      expect(await ranges()).toEqual([{ first: 5, last: 59 }])
      await add([0, 100], [102, 102])
      expect(await ranges()).toEqual([
        { first: 0, last: 100 },
        { first: 102, last: 102 },
      ])
      expect((await disk.taskDetail('task-1'))?.lanes[0]?.lastIndex).toBe(102)
    })

    test('are found as rows, as null where only the range is left, or not at all', async () => {
      const { disk } = await create()
      await disk.stage([
        aRow(1, 7, { index: 1, recordCount: 5, spelling: '01', extraFields: '{"a":1}' }),
        aRow(2, 7, { index: 2 }),
        aRow(3, 7, { index: 30 }),
        aRow(4, 8, { index: 5 }),
      ])
      await write(disk, {
        partitions: new Map([[2, null]]),
        ranges: [
          { lane: 7, first: 1, last: 3 },
          { lane: 7, first: 10, last: 19 },
        ],
      })
      // The row with id 3 is beyond the tail, so it does not count.
      const [known, others] = await disk.known([
        { lane: 7, tail: 2, indexes: [0, 1, 2, 3, 4, 5, 9, 10, 19, 20, 30] },
        { lane: 8, tail: 4, indexes: [1, 5] },
      ])
      expect([...(others?.keys() ?? [])]).toEqual([5])
      expect(Object.fromEntries(known ?? [])).toEqual({
        1: { recordCount: 5, computeTable: 'results.orders', spelling: '01', extraFields: '{"a":1}' },
        2: null,
        3: null,
        10: null,
        19: null,
      })
      const [later] = await disk.known([{ lane: 7, tail: 3, indexes: [30] }])
      expect(later?.get(30)).toMatchObject({ recordCount: 100 })
    })

    test('leave out staged rows, which can be removed again', async () => {
      const { disk } = await create()
      await disk.stage(rows(1, 1, 3))
      await disk.stage(rows(1, 4, 200))
      await disk.unstage({ first: 3, last: 200 })
      expect(ids(await disk.partitionsById([1, 2, 3, 4, 100, 200, 201, 203]))).toEqual([1, 2, 201, 203])
      await disk.stage(rows(1, 3, 10))
      expect(await disk.partitionsById([12])).toHaveLength(1)
    })
  })
}
