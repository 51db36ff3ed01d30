import { describe, expect, test } from 'vitest'
import type { ForgetThroughput, ThroughputRowsQuery } from '../../../src/handoff/disk.ts'
import type { StoredThroughput } from '../../../src/handoff/stored.ts'
import { write } from './builders.ts'
import { type DiskHarness, type DiskUnderTest, disksOf } from './harness.ts'

const row = (at: number, changes: Partial<StoredThroughput> = {}): StoredThroughput => ({
  task: 1,
  step: 'minute',
  at,
  level: 0,
  partitions: 1,
  records: 10,
  ...changes,
})

const flush = (disk: DiskUnderTest['disk'], ...rows: StoredThroughput[]) => {
  const throughput = new Map(
    rows.map((one) => [`${one.task}:${one.step}:${one.at}:${one.level}`, one] as const),
  )
  return write(disk, { throughput })
}

const query = (changes: Partial<ThroughputRowsQuery> = {}): ThroughputRowsQuery => ({
  task: 1,
  step: 'minute',
  from: 0,
  to: 1000,
  byLevel: true,
  limit: 100,
  ...changes,
})

const forget = (changes: Partial<ForgetThroughput> = {}): ForgetThroughput => ({
  before: { minute: 0, hour: 0 },
  most: 100,
  limit: 100,
  ...changes,
})

export function throughputTopic(harness: DiskHarness): void {
  describe('throughput', () => {
    const create = disksOf(harness)

    test('is added to the existing values, up to the largest number', async () => {
      const { disk } = await create()
      await flush(disk, row(60), row(60, { level: 1 }))
      await flush(disk, row(60, { partitions: 4, records: 5 }))
      await flush(disk, row(60, { level: 1, records: Number.MAX_SAFE_INTEGER }))
      expect(await disk.throughput(query())).toEqual([
        { at: 60, level: 1, partitions: 2, records: Number.MAX_SAFE_INTEGER },
        { at: 60, level: 0, partitions: 5, records: 15 },
      ])
      expect(await disk.throughput(query({ byLevel: false }))).toEqual([
        { at: 60, level: null, partitions: 7, records: Number.MAX_SAFE_INTEGER },
      ])
    })

    test('is found by task, step and time, the newest first', async () => {
      const { disk } = await create()
      const others = [row(60, { task: 2 }), row(60, { step: 'hour' })]
      await flush(disk, row(40), row(50), row(60), row(70), ...others)
      const times = async (changes: Partial<ThroughputRowsQuery>) =>
        (await disk.throughput(query(changes))).map(({ at }) => at)
      expect(await times({})).toEqual([70, 60, 50, 40])
      expect(await times({ from: 50, to: 70 })).toEqual([60, 50])
      expect(await times({ limit: 2, byLevel: false })).toEqual([70, 60])
      expect(await times({ step: 'hour' })).toEqual([60])
      expect(await times({ task: 3 })).toEqual([])
    })

    test('is forgotten by age, each step by its own, a bounded number at a time', async () => {
      const { disk } = await create()
      const rows = [10, 20, 30, 40].flatMap((at) => [row(at), row(at, { step: 'hour', task: 2 })])
      await flush(disk, ...rows)
      const request = forget({ before: { minute: 30, hour: 20 }, limit: 2 })
      expect(await disk.forgetThroughput(request)).toBe(2)
      expect(await disk.forgetThroughput(request)).toBe(1)
      expect(await disk.forgetThroughput(request)).toBe(0)
      const left = async (step: 'minute' | 'hour', task: number) =>
        (await disk.throughput(query({ step, task }))).map(({ at }) => at)
      expect(await left('minute', 1)).toEqual([40, 30])
      expect(await left('hour', 2)).toEqual([40, 30, 20])
    })

    test('beyond the maximum, the oldest rows of any task are forgotten', async () => {
      const { disk } = await create()
      await flush(disk, ...[10, 20, 30, 40].map((at) => row(at, { task: at })), row(10, { step: 'hour' }))
      for (const most of [4, null]) expect(await disk.forgetThroughput(forget({ most }))).toBe(0)
      expect(await disk.forgetThroughput(forget({ most: 2 }))).toBe(2)
      for (const [task, count] of Object.entries({ 10: 0, 20: 0, 30: 1, 40: 1 }))
        expect(await disk.throughput(query({ task: Number(task) }))).toHaveLength(count)
      expect(await disk.throughput(query({ step: 'hour' }))).toHaveLength(1)
    })
  })
}
