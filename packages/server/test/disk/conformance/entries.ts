import { describe, expect, test } from 'vitest'
import { type Appended, KnownKeys, type RowChanges } from '../../../src/handoff/disk.ts'
import { aRow, aTask, byId, NOW, rowChanges, rows, status } from './builders.ts'
import { type DiskHarness, type DiskUnderTest, disksOf } from './harness.ts'

/**
 * Numbers entries from the disk's position. A disk that several nodes share appends its own empty entry when
 * it is opened.
 */
class Log {
  readonly #under: DiskUnderTest
  #last = 0

  constructor(under: DiskUnderTest) {
    this.#under = under
  }

  /** Returns what was appended and not flushed. */
  async open(): Promise<string[]> {
    const { last, unflushed } = await this.#under.disk.open()
    expect(last).toBeGreaterThanOrEqual(this.#last)
    this.#last = last
    return unflushed.filter((body) => body !== '')
  }

  async crash(): Promise<string[]> {
    await this.#under.crash()
    return this.open()
  }

  async append(body: string, more: Partial<Appended> = {}): Promise<void> {
    await this.#under.disk.append({ number: this.#last + 1, body, newRows: [], newKeys: [], ...more })
    this.#last += 1
  }

  /** All but the last `butLast` entries. */
  flush(changed: RowChanges = rowChanges(), butLast = 0): Promise<void> {
    return this.#under.disk.flush(changed, this.#last - butLast)
  }
}

export function entriesTopic(harness: DiskHarness): void {
  describe('entries', () => {
    const create = disksOf(harness)
    const createLog = async () => {
      const under = await create()
      const log = new Log(under)
      expect(await log.open()).toEqual([])
      return { under, log }
    }

    test('are absent on a new disk', async () => {
      const { under } = await createLog()
      expect((await under.disk.open()).nextIds).toEqual({ task: 1, lane: 1, partition: 1, event: 1 })
    })

    test('are there after a crash, in order', async () => {
      const { log } = await createLog()
      const bodies = Array.from({ length: 12 }, (_, at) => `entry ${at}`)
      for (const body of bodies) await log.append(body)
      expect(await log.crash()).toEqual(bodies)
    })

    test('are not returned once flushed, and numbers continue', async () => {
      const { log } = await createLog()
      for (let at = 1; at <= 5; at += 1) await log.append(`entry ${at}`)
      await log.flush(rowChanges(), 2)
      expect(await log.open()).toEqual(['entry 4', 'entry 5'])
      await log.flush()
      expect(await log.crash()).toEqual([])
      await log.append('entry 6')
      await log.append('entry 7')
      expect(await log.crash()).toEqual(['entry 6', 'entry 7'])
    })

    test('are appended and flushed in many rounds', async () => {
      const { log } = await createLog()
      let waiting: string[] = []
      for (let round = 1; round <= 20; round += 1) {
        for (let at = 0; at < 1 + (round % 7); at += 1) {
          waiting.push(`entry ${round}.${at}`)
          await log.append(`entry ${round}.${at}`)
        }
        const butLast = round % 3
        await log.flush(rowChanges(), butLast)
        waiting = butLast === 0 ? [] : waiting.slice(-butLast)
      }
      expect(await log.crash()).toEqual(waiting)
    })

    test('may have a long body that ends in blanks and contains any character', async () => {
      const { log } = await createLog()
      const bodies = ['x'.repeat(300_000), 'ends in blanks   ', '"\u00e9\u{1f600}\\n"'.repeat(5000), '{}']
      for (const body of bodies) await log.append(body)
      expect(await log.crash()).toEqual(bodies)
      await log.flush()
      await log.append('{}')
      expect(await log.open()).toEqual(['{}'])
    })

    test('are stored together with the rows of new partitions', async () => {
      const { under, log } = await createLog()
      const newRows = [
        ...rows(1, 1, 120),
        aRow(200, 2, { index: 7, spelling: 'task-1-2-07', recordCount: 0 }),
        aRow(201, 2, {
          index: 8,
          inMixedLane: true,
          extraFields: '{"a":"\\\\ \\"é"}',
          traceparent: '00-1-2-01',
        }),
      ]
      await log.append('a', { newRows })
      expect(await log.crash()).toEqual(['a'])
      const found = await under.disk.partitionsById(newRows.map(({ id }) => id))
      expect(found).toEqual(newRows.map((row) => ({ ...row, ...status() })))
    })

    test('are not stored if they have a known key', async () => {
      const { under, log } = await createLog()
      await log.append('a')
      await log.flush(rowChanges({ keys: new Map([['k', { key: 'k', leases: [], forgetAt: NOW }]]) }))
      const attempt = log.append('b', { newRows: rows(1, 1, 1), newKeys: ['j', 'k', 'l'] })
      const error = await attempt.catch((reason: unknown) => reason)
      expect(error).toBeInstanceOf(KnownKeys)
      expect((error as KnownKeys).keys).toEqual(['k'])
      expect(await under.disk.partitionsById([1])).toEqual([])
      await log.append('c', { newRows: rows(1, 1, 1), newKeys: ['j', 'l'] })
      expect(await log.open()).toEqual(['c'])
    })

    test('are deleted in the same transaction that stores their changes', async () => {
      const { under, log } = await createLog()
      await log.append('a')
      const nextIds = { task: 8, lane: 9, partition: 10, event: 11 }
      await log.flush(rowChanges({ tasks: byId(aTask(1)), nextIds }))
      expect(await log.crash()).toEqual([])
      expect((await under.disk.open()).nextIds).toEqual(nextIds)
      expect(await under.disk.tasksById([1])).toEqual([aTask(1)])
    })

    test('the probe commits', async () => {
      const { under } = await createLog()
      await under.disk.probe(NOW)
      await under.disk.probe(NOW + 1)
      expect(under.disk.hasSpace()).toBe(true)
    })
  })
}
