import type { CalledBackPartition } from '@baton/protocol'
import { describe, expect, test } from 'vitest'
import { paceOf } from '../../../src/handoff/views/eta.ts'
import { progressView } from '../../../src/handoff/views/view-state.ts'
import { batchedPull, type Driver, nameOf, one, some } from './driver.ts'
import { MINUTE, type StoreHarness, storesOf } from './harness.ts'

const HOT = 'results.hot'
const OTHER = 'results.other'

const hot = (level: number, count: number, first = 0) => some(level, count, { computeTableName: HOT }, first)
const other = (level: number, count: number, first = 0) =>
  some(level, count, { computeTableName: OTHER }, first)

/** `count` partitions of one level, of these tables in turn. */
const inTurn = (level: number, count: number, ...tables: string[]): CalledBackPartition[] =>
  Array.from({ length: count }, (_, at) =>
    one(level, at, { computeTableName: tables[at % tables.length] as string }),
  )

const names = async (store: Driver, batch: number, filter = {}) =>
  (await store.pull({ batch, ...filter })).partitions.map(nameOf)

const limit = (store: Driver, table: string, maxLeases: number | null) =>
  store.store.setTable({ table, maxLeases })
const pause = (store: Driver, table: string, paused: boolean) => store.store.setTable({ table, paused })

export function tableSettingsTopic(harness: StoreHarness): void {
  describe('settings of a table', () => {
    const open = storesOf(harness)

    test('no more than the limit is leased at a time, over all tasks; each lease that ends allows another', async () => {
      const store = await open()
      await store.callBack('a', hot(0, 10))
      await store.callBack('b', hot(0, 10))
      await store.callBack('c', other(1, 10))
      await limit(store, HOT, 3)
      const first = await store.pull({ batch: 5, instance: 'w' })
      expect(first.partitions.map(nameOf)).toEqual(['a-0-0', 'b-0-0', 'a-0-1', 'c-1-0', 'c-1-1'])
      expect(await store.store.table(HOT)).toMatchObject({
        tasks: 2,
        taskIds: ['a', 'b'],
        leases: 3,
        workers: 1,
        waiting: { partitions: 17, records: 1700 },
        settings: { maxLeases: 3, paused: false },
      })
      for (const filter of [{ tables: [HOT] }, { tasks: ['a', 'b'] }, { tables: [HOT], tasks: ['b'] }])
        expect(await names(store, 1, filter)).toEqual([])
      expect(await names(store, 1, { tables: [HOT, OTHER] })).toEqual(['c-1-2'])
      await store.settle(first.partitions[0]?.lease?.id ?? '')
      expect(await names(store, 2)).toEqual(['b-0-1', 'c-1-3'])
      await store.settle(first.partitions[1]?.lease?.id ?? '', { outcome: 'released' })
      expect(await names(store, 2, { tables: [HOT] })).toEqual(['a-0-2'])
      await store.settle(first.partitions[2]?.lease?.id ?? '')
      expect(await names(store, 2, { tasks: ['a'] })).toEqual(['a-0-3'])
      expect(await store.recount()).toEqual([])
    })

    test('a lower limit ends no lease, and a higher one or none serves at once', async () => {
      const store = await open()
      await store.callBack('a', hot(0, 10))
      const { partitions } = await store.pull({ batch: 4 })
      expect(await limit(store, HOT, 2)).toMatchObject({ settings: { maxLeases: 2 }, newlyReady: 0 })
      const leases = partitions.map(({ lease }) => lease?.id ?? '')
      expect((await store.renew(...leases)).every(({ refused }) => refused === null)).toBe(true)
      for (const leaseId of leases.slice(0, 2)) {
        expect(await store.settle(leaseId)).toBeNull()
        expect(await names(store, 1)).toEqual([])
      }
      await store.settle(leases[2] ?? '')
      expect(await names(store, 9)).toEqual(['a-0-4'])
      expect(await limit(store, HOT, 3)).toMatchObject({ newlyReady: 5 })
      expect(await names(store, 9)).toEqual(['a-0-5'])
      await limit(store, HOT, null)
      expect(await names(store, 9)).toEqual(['a-0-6', 'a-0-7', 'a-0-8', 'a-0-9'])
    })

    test('an expired lease is not revived beyond the limit of its table or task; a late done is accepted', async () => {
      const store = await open()
      const limitTable = () => limit(store, HOT, 1)
      const limitTask = () => store.control({ verb: 'settings', taskId: 'b', settings: { maxLeases: 1 } })
      for (const [taskId, setLimit] of [
        ['a', limitTable],
        ['b', limitTask],
      ] as const) {
        await store.callBack(taskId, hot(0, 2))
        await setLimit()
        const late = await store.pullOne()
        await store.pass(11 * MINUTE)
        const next = await store.pullOne()
        expect(await store.renew(late.leaseId)).toEqual([{ refused: 'limit_reached' }])
        expect(await store.settle(late.leaseId)).toBeNull()
        await store.pass(11 * MINUTE)
        expect(await store.renew(next.leaseId)).toMatchObject([{ refused: null }])
        await store.settle(next.leaseId)
        await limit(store, HOT, null)
      }
    })

    test('a paused table is not handed out, and its waiting partitions are held', async () => {
      const store = await open()
      await store.callBack('a', [...hot(0, 4), ...other(1, 2)])
      await store.callBack('b', inTurn(0, 4, HOT, OTHER))
      const running = await store.pullOne({ tables: [HOT] })
      await pause(store, HOT, true)
      expect(await names(store, 9)).toEqual(['b-0-1', 'b-0-3', 'a-1-0', 'a-1-1'])
      expect(await store.renew(running.leaseId)).toMatchObject([{ refused: null }])
      expect(await store.states('a')).toEqual({
        '0-0': 'leased',
        '0-1': 'held',
        '0-2': 'held',
        '0-3': 'held',
        '1-0': 'leased',
        '1-1': 'leased',
      })
      expect(await store.states('b')).toEqual({
        '0-0': 'held',
        '0-1': 'leased',
        '0-2': 'held',
        '0-3': 'leased',
      })
      for (const taskId of ['a', 'b']) {
        const { partitions, records } = progressView(await store.task(taskId))
        const held = taskId === 'a' ? 3 : 2
        expect([partitions.ready, partitions.held, records.held]).toEqual([0, held, held * 100])
      }
      const page = await store.store.partitions({
        taskId: 'b',
        state: 'held',
        level: null,
        after: null,
        limit: 10,
      })
      expect(page?.partitions.map(({ index }) => index)).toEqual([0, 2])
      expect(await pause(store, HOT, false)).toMatchObject({ newlyReady: 5 })
      expect(await names(store, 9)).toEqual(['a-0-1', 'a-0-2', 'b-0-0', 'a-0-3', 'b-0-2'])
    })

    test('the time left leaves out what is held on a paused table', async () => {
      const store = await open()
      await store.callBack('a', [...other(0, 20), ...hot(1, 1000)])
      for (let at = 0; at < 10; at += 1) {
        const { leaseId } = await store.pullOne()
        store.clock.advance(1000)
        await store.settle(leaseId)
      }
      const before = paceOf(await store.task('a'), store.clock.now())
      await pause(store, HOT, true)
      const paused = paceOf(await store.task('a'), store.clock.now())
      expect(paused.etaSeconds).toBeLessThan((before.etaSeconds ?? 0) / 10)
      for (const { lease } of await store.pullAll()) await store.settle(lease?.id ?? '')
      expect(paceOf(await store.task('a'), store.clock.now()).etaSeconds).toBeNull()
    })

    test('settings may come before the first call-back, and survive a restart', async () => {
      const store = await open()
      expect(await store.store.table(HOT)).toBeNull()
      await limit(store, HOT, 1)
      await pause(store, OTHER, true)
      await store.reopen()
      await store.callBack('a', [...hot(0, 3), ...other(1, 3)])
      const first = await store.pullOne()
      expect(nameOf(first)).toBe('a-0-0')
      expect(await names(store, 9)).toEqual([])
      await store.reopen()
      expect(await names(store, 9)).toEqual([])
      expect(await store.store.table(HOT)).toMatchObject({ leases: 1, settings: { maxLeases: 1 } })
      await store.settle(first.leaseId)
      expect(await names(store, 9)).toEqual(['a-0-1'])
      await limit(store, HOT, null)
      await pause(store, OTHER, false)
      await store.reopen()
      expect((await names(store, 9)).length).toBe(4)
    })

    test('a change that is not named stays, and the same settings again change nothing', async () => {
      const store = await open()
      await limit(store, HOT, 5)
      expect(await pause(store, HOT, true)).toMatchObject({ settings: { maxLeases: 5, paused: true } })
      expect(await limit(store, HOT, null)).toMatchObject({ settings: { maxLeases: null, paused: true } })
      expect(await store.store.setTable({ table: HOT })).toMatchObject({ settings: { paused: true } })
      await pause(store, HOT, false)
      expect(await store.store.table(HOT)).toBeNull()
    })

    test('what a task has on other tables goes on, level by level', async () => {
      const store = await open()
      await store.callBack('a', [...inTurn(0, 4, HOT, 'results.x'), ...inTurn(1, 4, OTHER, 'results.y')])
      await limit(store, HOT, 1)
      await limit(store, 'results.x', 1)
      expect(await names(store, 9)).toEqual(['a-0-0', 'a-0-1', 'a-1-0', 'a-1-1', 'a-1-2', 'a-1-3'])
    })

    test('in a lane with several tables, each limit holds, and arrival order holds per table', async () => {
      const store = await open()
      const tables = ['t.a', 't.b', 't.c', 't.d']
      await store.callBack('mixed', inTurn(0, 40, ...tables))
      await store.callBack('second', inTurn(0, 40, ...tables))
      for (const [at, table] of tables.entries()) await limit(store, table, at + 1)
      const running = new Map<string, { table: string; leaseId: string }>()
      const lastIndex = new Map<string, number>()
      for (let [turn, done] = [1, 0]; done < 80; turn += 1) {
        const filter =
          turn % 5 === 0 ? { tables: ['t.b', 't.d'] } : turn % 7 === 0 ? { tasks: ['mixed'] } : {}
        for (const partition of (await store.pull({ batch: 4, ...filter })).partitions) {
          const { computeTableName: table, taskId, index } = partition
          const key = `${taskId} ${table}`
          expect(index).toBeGreaterThan(lastIndex.get(key) ?? -1)
          lastIndex.set(key, index)
          running.set(nameOf(partition), { table, leaseId: partition.lease?.id ?? '' })
        }
        for (const [at, table] of tables.entries()) {
          const leases = [...running.values()].filter((one) => one.table === table).length
          expect(leases).toBeLessThanOrEqual(at + 1)
          expect((await store.store.table(table))?.leases ?? 0).toBe(leases)
        }
        const [name, ended] = [...running][turn % Math.max(1, running.size)] ?? []
        if (name !== undefined && ended !== undefined) {
          await store.settle(ended.leaseId)
          running.delete(name)
          done += 1
        }
        if (turn % 20 === 0) await store.reopen()
      }
      expect(await store.recount()).toEqual([])
      expect([await store.state('mixed'), await store.state('second')]).toEqual(['done', 'done'])
    })

    test('a lane with several tables is served by arrival again as soon as none of them is blocked', async () => {
      for (const tables of [
        ['t.a', 't.b', 't.c'],
        ['t.c', 't.b', 't.a'],
      ]) {
        for (const resumed of [tables, tables.toReversed()]) {
          const store = await open()
          await store.callBack('mixed', inTurn(0, 9, ...tables))
          for (const table of tables) await pause(store, table, true)
          expect(await names(store, 9)).toEqual([])
          for (const table of resumed) await pause(store, table, false)
          expect(await names(store, 9)).toEqual(Array.from({ length: 9 }, (_, at) => `mixed-0-${at}`))
        }
      }
    })

    test('a waiting pull is woken for each lease below the limit that is free', async () => {
      const store = await open()
      await store.callBack('a', hot(0, 10))
      await limit(store, HOT, 3)
      const { partitions } = await store.pull({ batch: 5 })
      const settled = await store.settleAll(partitions)
      expect(settled).toMatchObject({ newlyReady: 3, newlyReadyOf: [[null, HOT, 3]] })
    })

    test('lists tables with open work or settings by name, in pages, and what workers asked for', async () => {
      const store = await open()
      await store.callBack('a', [...hot(0, 2), ...other(1, 2)])
      await limit(store, 'results.limited', 4)
      const { tables, next } = await store.store.tables({ after: null, limit: 2 })
      expect([tables.map(({ table }) => table), next]).toEqual([[HOT, 'results.limited'], 'results.limited'])
      expect(tables[0]).toMatchObject({ lastAskedAt: null, pace: null })
      const rest = await store.store.tables({ after: next, limit: 2 })
      expect([rest.tables.map(({ table }) => table), rest.next]).toEqual([[OTHER], null])
      await store.pull({ tables: [OTHER, 'results.nothing'] })
      expect(await store.store.table('results.nothing')).toBeNull()
      expect(await store.store.table(HOT)).toMatchObject({ lastAskedAt: null })
      expect(await store.store.table(OTHER)).toMatchObject({ lastAskedAt: store.clock.now() })
      store.clock.advance(1000)
      await store.batch({ pulls: [batchedPull()] })
      for (const table of [HOT, OTHER, 'results.limited'])
        expect(await store.store.table(table)).toMatchObject({ lastAskedAt: store.clock.now() })
    })

    test('shows the pace of the last minute', async () => {
      const store = await open()
      await store.callBack('a', hot(0, 20))
      for (let at = 0; at < 10; at += 1) {
        const { leaseId } = await store.pullOne()
        store.clock.advance(1000)
        await store.settle(leaseId)
      }
      const pace = (await store.store.table(HOT))?.pace
      expect(pace?.partitions).toBeGreaterThan(0.5)
      expect(pace?.partitions).toBeLessThan(1.5)
      expect(pace?.records).toBeCloseTo((pace?.partitions ?? 0) * 100)
      store.clock.advance(10 * MINUTE)
      expect((await store.store.table(HOT))?.pace).toBeNull()
    })
  })
}
