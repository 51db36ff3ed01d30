import { MAX_THROUGHPUT_POINTS, THROUGHPUT_LEVELS } from '@baton/protocol'
import { describe, expect, test } from 'vitest'
import type { ThroughputQuery } from '../../../src/handoff/views/queries.ts'
import { batchedPull, type Driver, one, some } from './driver.ts'
import { DAY, HOUR, MINUTE, type StoreHarness, storesOf } from './harness.ts'

const history = async (store: Driver, query: Partial<ThroughputQuery> = {}) => {
  const asked = { taskId: 'a', step: 'minute' as const, from: null, to: null, byLevel: false, ...query }
  const record = await store.store.throughput(asked)
  if (record === null) throw new Error(`task ${asked.taskId} is unknown`)
  return record
}

const sumOf = async (store: Driver, query: Partial<ThroughputQuery> = {}) => {
  const { rows } = await history(store, query)
  return {
    partitions: rows.reduce((sum, { partitions }) => sum + partitions, 0),
    records: rows.reduce((sum, { records }) => sum + records, 0),
  }
}

/** Advances to the beginning of the next hour, so that what follows is within one. */
const toNextHour = ({ clock }: Driver) => clock.advance(HOUR - (clock.now() % HOUR))

const finish = async (store: Driver, count: number) => {
  const { partitions } = await store.pull({ batch: count })
  await store.settleAll(partitions)
}

export function throughputTopic(harness: StoreHarness): void {
  describe('the history of what was done', () => {
    const open = storesOf(harness)

    test('has what became done within each minute and each hour, oldest first', async () => {
      const store = await open()
      toNextHour(store)
      const begin = store.clock.now()
      await store.callBack('a', some(0, 6, { recordCount: 10 }))
      await store.callBack('b', some(1, 1))
      await finish(store, 1)
      store.clock.advance(MINUTE - 1)
      await finish(store, 2)
      store.clock.advance(HOUR)
      await finish(store, 3)
      const now = store.clock.now()
      expect(await history(store)).toEqual({
        task: { taskId: 'a', owners: [] },
        from: Math.floor((now - DAY) / MINUTE) * MINUTE,
        to: now,
        rows: [
          { at: begin, level: null, partitions: 3, records: 30 },
          { at: begin + HOUR, level: null, partitions: 3, records: 30 },
        ],
      })
      expect((await history(store, { step: 'hour' })).rows).toEqual([
        { at: begin, level: null, partitions: 3, records: 30 },
        { at: begin + HOUR, level: null, partitions: 3, records: 30 },
      ])
      expect((await history(store, { taskId: 'b' })).rows).toEqual([])
    })

    test('is limited to a requested period, without its end', async () => {
      const store = await open()
      toNextHour(store)
      const begin = store.clock.now()
      await store.callBack('a', some(0, 3))
      for (let done = 0; done < 3; done += 1) {
        await finish(store, 1)
        store.clock.advance(MINUTE)
      }
      const { from, to, rows } = await history(store, { from: begin + MINUTE + 5, to: begin + 2 * MINUTE })
      expect({ from, to, times: rows.map(({ at }) => at) }).toEqual({
        from: begin + MINUTE,
        to: begin + 2 * MINUTE,
        times: [begin + MINUTE],
      })
    })

    test('is available for each level; the highest ones are counted together', async () => {
      const store = await open()
      toNextHour(store)
      const at = store.clock.now()
      const levels = [0, 3, THROUGHPUT_LEVELS - 1, THROUGHPUT_LEVELS, THROUGHPUT_LEVELS + 1, 4000]
      await store.callBack(
        'a',
        levels.map((level) => one(level, 0, { recordCount: level })),
      )
      await finish(store, levels.length)
      const row = (level: number, partitions: number, records: number) => ({ at, level, partitions, records })
      expect((await history(store, { byLevel: true })).rows).toEqual([
        row(0, 1, 0),
        row(3, 1, 3),
        row(THROUGHPUT_LEVELS - 1, 1, THROUGHPUT_LEVELS - 1),
        row(THROUGHPUT_LEVELS, 3, 4001 + 2 * THROUGHPUT_LEVELS),
      ])
      expect(await sumOf(store)).toEqual({ partitions: 6, records: levels.reduce((a, b) => a + b) })
    })

    test('is null for an unknown task', async () => {
      const store = await open()
      const query = { taskId: 'x', step: 'hour' as const, from: null, to: null, byLevel: false }
      expect(await store.store.throughput(query)).toBeNull()
    })

    test('counts only what becomes done, and a rerun again', async () => {
      const store = await open()
      await store.callBack('a', some(0, 3, { recordCount: 7 }))
      const { leaseId } = await store.pullOne()
      await store.settle(leaseId)
      await store.settle(leaseId)
      await store.settle((await store.pullOne()).leaseId, { outcome: 'failed', final: true })
      await store.settle((await store.pullOne()).leaseId, { outcome: 'released' })
      expect(await sumOf(store)).toEqual({ partitions: 1, records: 7 })
      await store.retry('a', { done: true, partitions: [{ level: 0, index: 0 }] })
      const { partitions } = await store.pull({ batch: 3 })
      for (const { lease } of partitions) await store.settle(lease?.id ?? '')
      expect(await sumOf(store)).toEqual({ partitions: 3, records: 21 })
    })

    test('counts partitions as done when they are handed out, in at-most-once delivery', async () => {
      const store = await open({ delivery: 'at-most-once' })
      await store.callBack('a', some(0, 3, { recordCount: 4 }))
      await store.pull({ batch: 2 })
      expect(await sumOf(store, { step: 'hour' })).toEqual({ partitions: 2, records: 8 })
    })

    test('matches the counters, however often the store is opened again', async () => {
      const store = await open()
      await store.callBack('a', [...some(0, 20, { recordCount: 3 }), ...some(1, 20, { recordCount: 5 })])
      for (let round = 0; round < 10; round += 1) {
        await finish(store, 3)
        if (round % 2 === 0) await store.reopen()
        else await history(store)
        store.clock.advance(20_000)
      }
      const { facts, lanes } = await store.task('a')
      const done = { partitions: facts.partitions.done, records: facts.records.done }
      expect(done).toEqual({ partitions: 30, records: 110 })
      expect(await sumOf(store)).toEqual(done)
      expect(await sumOf(store, { step: 'hour' })).toEqual(done)
      const { rows } = await history(store, { step: 'hour', byLevel: true })
      for (const { level, partitions, records } of lanes) {
        const own = rows.filter((row) => row.level === level)
        expect(own.reduce((sum, row) => sum + row.partitions, 0)).toBe(partitions.done)
        expect(own.reduce((sum, row) => sum + row.records, 0)).toBe(records.done)
      }
      const before = await history(store, { byLevel: true })
      await store.reopen()
      expect(await history(store, { byLevel: true })).toEqual(before)
    })

    test('keeps minutes for a day and hours for the retention', async () => {
      const store = await open()
      toNextHour(store)
      await store.callBack('a', some(0, 3))
      await finish(store, 1)
      store.clock.advance(DAY)
      await finish(store, 1)
      await store.maintainAll()
      const all = { from: 0 }
      expect(await sumOf(store, all)).toMatchObject({ partitions: 2 })
      store.clock.advance(MINUTE)
      await store.maintainAll()
      expect(await sumOf(store, all)).toMatchObject({ partitions: 1 })
      expect(await sumOf(store, { ...all, step: 'hour' })).toMatchObject({ partitions: 2 })
      store.clock.advance(6 * DAY + HOUR)
      await store.maintainAll()
      expect(await sumOf(store, all)).toMatchObject({ partitions: 0 })
      expect(await sumOf(store, { ...all, step: 'hour' })).toMatchObject({ partitions: 1 })
    })

    test('is removed when the task is purged', async () => {
      const store = await open()
      await store.callBack('a', some(0, 2))
      await finish(store, 2)
      store.clock.advance(7 * DAY + HOUR)
      await store.maintainAll()
      expect((await store.task('a')).facts.purgedAt).not.toBeNull()
      for (const step of ['minute', 'hour'] as const)
        expect((await history(store, { step, from: 0 })).rows).toEqual([])
    })

    test('is truncated to the newest points, with all levels of the first step', async () => {
      const store = await open()
      toNextHour(store)
      const begin = store.clock.now()
      const levels = Array.from({ length: THROUGHPUT_LEVELS + 1 }, (_, level) => level)
      const minutes = Math.ceil((MAX_THROUGHPUT_POINTS + 1) / levels.length)
      const tableOf = (level: number) => `results.level${level}`
      for (const level of levels)
        await store.callBack('a', some(level, minutes, { computeTableName: tableOf(level) }))
      for (let minute = 0; minute < minutes; minute += 1) {
        const pulls = levels.map((level) => batchedPull({ tables: [tableOf(level)] }))
        const handedOut = (await store.batch({ pulls })).pulls.flatMap(({ partitions }) => partitions)
        await store.settleAll(handedOut)
        store.clock.advance(MINUTE)
      }
      const shown = await history(store, { from: begin, byLevel: true })
      const whole = Math.floor(MAX_THROUGHPUT_POINTS / levels.length)
      expect(shown.from).toBe(begin + (minutes - whole) * MINUTE)
      expect(shown.rows).toHaveLength(whole * levels.length)
      expect(shown.rows[0]).toEqual({ at: shown.from, level: 0, partitions: 1, records: 100 })
      const earlier = await history(store, { from: begin, to: shown.from, byLevel: true })
      expect(earlier.rows).toHaveLength((minutes - whole) * levels.length)
      expect((await history(store, { from: begin })).rows).toHaveLength(minutes)
    })
  })
}
