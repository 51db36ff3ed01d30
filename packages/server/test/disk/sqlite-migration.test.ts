import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { gunzipSync } from 'node:zlib'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { testFolder } from '../../../../test/support/test-folder.ts'
import { openSqliteDisk } from '../../src/disk/sqlite/sqlite-disk.ts'
import type { Disk, TaskDetail } from '../../src/handoff/disk.ts'
import { openEngine } from '../../src/handoff/engine/engine-store.ts'
import type { StoredPartition } from '../../src/handoff/partition.ts'
import { totalOf } from '../../src/handoff/rules/task.ts'
import { StoreRefused } from '../../src/handoff/store.ts'
import { Driver, leaseOf, nameOf } from '../store/conformance/driver.ts'
import { TestClock, testPolicy } from '../store/conformance/harness.ts'

/**
 * Written by the last version with schema 6, and left as after a crash: its journal has entries that are not
 * flushed, and a rerun, a cancel and a purge are in progress.
 */
const FIXTURE = new URL('./fixtures/schema-6.db.gz', import.meta.url)

let folder: string
let disk: Disk

beforeEach(async () => {
  folder = await testFolder()
  await writeFile(join(folder, 'baton.db'), gunzipSync(await readFile(FIXTURE)))
  disk = await openSqliteDisk({ folder })
})

afterEach(() => disk.close())

const detailOf = async (taskId: string): Promise<TaskDetail> => {
  const detail = await disk.taskDetail(taskId)
  if (detail === null) throw new Error(`task ${taskId} is unknown`)
  return detail
}

const laneOf = async (taskId: string, level: number) => {
  const found = (await detailOf(taskId)).lanes.find(({ lane }) => lane.level === level)
  if (found === undefined) throw new Error(`task ${taskId} has no level ${level}`)
  return found.lane
}

const rowsOf = async (taskId: string, level: number): Promise<StoredPartition[]> => {
  const { id, tail } = await laneOf(taskId, level)
  const loaded = await disk.load({
    rows: [{ lane: id, tail, state: null, afterIndex: -1, limit: 10_000 }],
  })
  return [...loaded.partitions]
}

/** By index, as `<state>` or, for waiting partitions, `<line>`. */
const leaseState = async (taskId: string, level: number): Promise<Record<number, string>> =>
  Object.fromEntries(
    (await rowsOf(taskId, level)).map(({ index, state, line }) => [index, state === 'ready' ? line : state]),
  )

const range = (first: number, last: number): number[] =>
  Array.from({ length: last - first + 1 }, (_, at) => first + at)

describe('a file of schema version 6', () => {
  test('starts without entries, after the used ids', async () => {
    expect(await disk.open()).toEqual({
      last: 0,
      unflushed: [],
      nextIds: { task: 10, lane: 13, partition: 1709, event: 1 },
    })
  })

  test('has counters and lines that match its rows, for tasks as for lanes', async () => {
    const counts = await disk.recount()
    expect(counts).toHaveLength(12)
    for (const { lane, partitions, records, waiting } of counts) {
      const { done, ...unfinished } = lane.partitions
      expect({ ...unfinished, done: done - lane.purged }).toEqual(partitions)
      expect(lane.records.done - lane.purgedRecords).toBe(records.done)
      expect([lane.released, lane.retries]).toEqual([waiting.released, waiting.retry])
      expect(lane.turn === null).toBe(partitions.ready === 0)
    }
    for (const { task } of counts) {
      const ofLanes = counts
        .filter(({ lane }) => lane.task === task.id)
        .map(({ lane }) => totalOf(lane.partitions))
      expect(totalOf(task.partitions)).toBe(ofLanes.reduce((sum, total) => sum + total))
    }
  })

  test('keeps every state of an open task, including its journal', async () => {
    const rows = await leaseState('main', 0)
    const { 0: first, 1: second, 2: third, 3: fourth, 4: fifth, 5: sixth, 6: seventh } = rows
    expect([first, second, third, fourth]).toEqual(['done', 'leased', 'delayed', 'delayed'])
    expect([fifth, sixth, seventh]).toEqual(['parked', 'retry', 'done'])
    expect([7, 8, 9, 10].map((index) => rows[index])).toEqual(['leased', 'leased', 'leased', 'leased'])
    for (const index of [11, 59, 70, 74]) expect(rows[index]).toBe('fresh')
    const { partitions } = await laneOf('main', 0)
    expect(partitions).toEqual({
      ready: 55,
      held: 0,
      leased: 5,
      delayed: 2,
      parked: 1,
      done: 2,
      cancelled: 0,
    })
    expect((await detailOf('main')).task).toMatchObject({ attemptsWasted: 4, mismatched: 1, reruns: [] })
    expect((await detailOf('main')).mismatches).toEqual([
      { level: 0, index: 0, spelling: null, declared: 100, reported: 1 },
    ])
    const byIndex = new Map((await rowsOf('main', 0)).map((row) => [row.index, row]))
    // The queue that a partition enters when its back-off ends or its lease is released.
    expect([2, 3, 7].map((index) => byIndex.get(index)?.line)).toEqual(['retry', 'released', 'released'])
    expect(byIndex.get(4)).toMatchObject({ attempts: 1, outcome: 'failed', reason: 'bad input' })
    expect(byIndex.get(6)).toMatchObject({ attempts: 1, outcome: 'done', reportedRecords: 100 })
  })

  test('keeps leases with their holders and keys', async () => {
    const { keys } = await disk.load({ keys: ['key-1', 'key-2', 'key-3'] })
    expect(keys.map(({ key, leases }) => [key, leases.length])).toEqual([
      ['key-1', 3],
      ['key-2', 2],
    ])
    const refs = keys.flatMap(({ leases }) => leases.map(leaseOf))
    const { partitions } = await disk.load({ partitions: refs.map(({ partition }) => partition) })
    for (const [at, { term, secret }] of refs.entries())
      expect(partitions[at]).toMatchObject({ term, secret, holder: 'worker-2' })
    expect(partitions.map(({ state }) => state)).toEqual(['done', 'leased', 'leased', 'leased', 'leased'])
    const due = await disk.due(1_780_000_725_500, 100, true)
    expect(due.leased).toHaveLength(9)
    expect((await disk.instance('worker-2', 1_780_000_125_500))?.leases).toBe(4)
  })

  test('keeps the lines of a lane: released, retry, fresh', async () => {
    expect(await leaseState('lines', 6)).toEqual({
      0: 'released',
      1: 'retry',
      2: 'retry',
      3: 'done',
      4: 'leased',
      5: 'leased',
      6: 'fresh',
      7: 'fresh',
    })
    const lane = await laneOf('lines', 6)
    expect(lane).toMatchObject({ tag: 210n, retryTag: 150n, turn: 150n, released: 1, retries: 2 })
    const { fresh, returned } = await disk.load({
      fresh: [{ lane: lane.id, after: lane.cursor, tail: lane.tail, limit: 10 }],
      returned: [
        { lane: lane.id, line: 'released', after: null, limit: 10 },
        { lane: lane.id, line: 'retry', after: null, limit: 10 },
      ],
    })
    expect(fresh).toEqual([[lane.cursor + 1, lane.cursor + 2]])
    expect(returned.map((ids) => ids.length)).toEqual([1, 2])
  })

  test('keeps partitions held by a pause or a barrier', async () => {
    const paused = await leaseState('paused', 0)
    expect([100, 101, 102, 103, 104, 129].map((index) => paused[index])).toEqual([
      'released',
      'retry',
      'done',
      'leased',
      'fresh',
      'fresh',
    ])
    expect((await detailOf('paused')).task).toMatchObject({ paused: true, state: 'paused' })
    expect((await detailOf('barrier')).task).toMatchObject({ levelBarrier: true, openLevel: 1 })
    expect(await laneOf('barrier', 2)).toMatchObject({ cursor: 0, partitions: { ready: 30, held: 0 } })
    expect(await laneOf('barrier', 1)).toMatchObject({ tag: 51_100n, turn: 51_100n })
  })

  test('continues a rerun', async () => {
    const [task] = await disk.tasksWithReruns(10)
    expect(task).toMatchObject({
      taskId: 'rerun',
      reruns: [{ only: null, begunAt: 1_780_000_121_000, level: 0, index: 499 }],
      partitions: { ready: 500, done: 20 },
    })
    expect(await laneOf('rerun', 0)).toMatchObject({ retries: 500 })
  })

  test('completes a cancel; a lease ends by itself', async () => {
    const { task } = await detailOf('cancelled')
    expect(task).toMatchObject({ cancelled: true, state: 'cancelled' })
    expect(task.partitions).toMatchObject({ ready: 0, leased: 1, done: 2, cancelled: 527 })
    expect(await laneOf('cancelled', 0)).toMatchObject({ turn: null })
  })

  test('continues a purge; only ranges are left', async () => {
    expect((await disk.purgeable(0))?.taskId).toBe('purging')
    expect(await laneOf('purging', 1)).toMatchObject({ purged: 498, partitions: { done: 510 } })
    const lane = await laneOf('purged', 0)
    expect((await detailOf('purged')).lanes[0]?.ranges).toEqual([{ first: 0, last: 2 }])
    const [known] = await disk.known([{ lane: lane.id, tail: lane.tail, indexes: [1, 3] }])
    expect(Object.fromEntries(known ?? [])).toEqual({ 1: null })
  })

  test('keeps a sealed task with its tables, spellings and producer', async () => {
    const { task, computeTables } = await detailOf('sealed')
    expect(task).toMatchObject({ sealed: true, expectedPartitions: 3, state: 'done' })
    expect(computeTables).toEqual(['z.first', 'a.second'])
    expect((await rowsOf('sealed', 3)).map(({ spelling }) => spelling)).toEqual([null, null, 'sealed-3-009'])
    const producer = await disk.instance('producer-1', 1_780_000_125_500)
    expect(producer?.tasks?.[0]).toMatchObject({ taskId: 'main', partitions: { total: 68, done: 2 } })
    expect(await disk.instance('worker-1', 1_780_000_125_500)).toMatchObject({
      totals: { pulls: 9, done: 6 },
    })
    expect(await disk.instance('node-1', 1_780_000_125_500)).toMatchObject({ node: { version: '0.1.0' } })
  })

  test('keeps the order of the hand-off, level by level', async () => {
    const { order, lanes } = await disk.load({ order: { after: null, limit: 100 } })
    const byId = new Map(lanes.map((lane) => [lane.id, lane]))
    const levels = order.map((id) => byId.get(id)?.level)
    expect(levels).toEqual([0, 0, 0, 1, 2, 5, 6])
  })

  test('passes the audit of the engine, and work continues', async () => {
    const [{ leases } = { leases: [] }] = (await disk.load({ keys: ['key-2'] })).keys
    const store = await openEngine({
      disk,
      policy: testPolicy,
      clock: () => 1_780_000_126_000,
      random: Math.random,
      secret: () => 's'.repeat(16),
    })
    const driver = new Driver({ store, reopen: async () => {}, dispose: async () => {} }, new TestClock())
    expect(await store.audit()).toEqual([])
    for (const lease of leases) expect(await driver.settle(lease)).toBeNull()
    await driver.control({ verb: 'resume', taskId: 'paused' })
    const { length } = leases
    expect((await driver.task('main')).facts.partitions).toMatchObject({
      done: 2 + length,
      leased: 5 - length,
    })
    const handed = (await driver.pullAll(50)).map(nameOf)
    expect(new Set(handed).size).toBe(handed.length)
    const ofTask = (name: string) => handed.filter((one) => one.startsWith(`${name}-`))
    const main = [...range(11, 59), ...range(70, 74)].map((index) => `main-0-${index}`)
    expect(ofTask('main').filter((name) => name !== 'main-0-5')).toEqual([
      ...main,
      'main-5-0',
      'main-5-1',
      'main-5-2',
    ])
    expect(ofTask('paused')[0]).toBe('paused-0-100')
    expect(ofTask('paused')).toHaveLength(28)
    expect(ofTask('barrier')).toEqual(['barrier-1-1', 'barrier-1-2', 'barrier-1-3'])
    expect(ofTask('lines')).toHaveLength(5)
    expect(handed).toHaveLength(55 + 3 + 28 + 3 + 5)
    while ((await driver.maintain()).more);
    await driver.control({ verb: 'resume', taskId: 'rerun' })
    expect(await driver.pullAll(100)).toHaveLength(520)
    expect(await store.audit()).toEqual([])
  })

  test('is migrated once', async () => {
    const before = await detailOf('main')
    await disk.close()
    disk = await openSqliteDisk({ folder })
    expect(await detailOf('main')).toEqual(before)
    const db = new DatabaseSync(join(folder, 'baton.db'))
    expect(db.prepare('PRAGMA integrity_check').get()?.['integrity_check']).toBe('ok')
    expect(db.prepare(`SELECT name FROM sqlite_schema WHERE name LIKE 'old%'`).all()).toEqual([])
    db.close()
  })

  test('is the oldest that is accepted', async () => {
    await disk.close()
    await writeFile(join(folder, 'baton.db'), gunzipSync(await readFile(FIXTURE)))
    const db = new DatabaseSync(join(folder, 'baton.db'))
    db.exec('PRAGMA user_version = 5')
    db.close()
    const refused = await openSqliteDisk({ folder }).catch((error: unknown) => error)
    expect(refused).toBeInstanceOf(StoreRefused)
    expect(String(refused)).toContain('schema version 5, from before the first release')
  })
})
