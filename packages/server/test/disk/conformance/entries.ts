import { describe, expect, test } from 'vitest'
import { KnownKeys } from '../../../src/handoff/disk.ts'
import { aRow, aTask, byId, images, NOW, partitionsById, rows, status } from './builders.ts'
import { type DiskHarness, disksOf } from './harness.ts'

const entry = (number: number, body = `entry ${number}`) => ({ number, body, newRows: [], newKeys: [] })

export function entriesTopic(harness: DiskHarness): void {
  describe('entries', () => {
    const create = disksOf(harness)

    test('a new disk has none', async () => {
      const { disk } = await create()
      expect(await disk.open()).toEqual({
        last: 0,
        unflushed: [],
        nextIds: { task: 1, lane: 1, partition: 1 },
      })
    })

    test('what was appended is there after a crash, in order', async () => {
      const under = await create()
      for (let number = 1; number <= 12; number += 1) await under.disk.append(entry(number))
      await under.crash()
      const { last, unflushed } = await under.disk.open()
      expect(last).toBe(12)
      expect(unflushed).toEqual(Array.from({ length: 12 }, (_, at) => `entry ${at + 1}`))
    })

    test('what was flushed is not given back, and numbers go on', async () => {
      const under = await create()
      for (let number = 1; number <= 5; number += 1) await under.disk.append(entry(number))
      await under.disk.flush(images(), 3)
      expect(await under.disk.open()).toMatchObject({ last: 5, unflushed: ['entry 4', 'entry 5'] })
      await under.disk.flush(images(), 5)
      await under.crash()
      expect(await under.disk.open()).toMatchObject({ last: 5, unflushed: [] })
      await under.disk.append(entry(6))
      await under.disk.append(entry(7))
      await under.crash()
      expect(await under.disk.open()).toMatchObject({ last: 7, unflushed: ['entry 6', 'entry 7'] })
    })

    test('many rounds of appending and flushing', async () => {
      const under = await create()
      let number = 0
      for (let round = 1; round <= 20; round += 1) {
        for (let at = 0; at < round % 7; at += 1) await under.disk.append(entry(++number))
        await under.disk.flush(images(), Math.max(0, number - (round % 3)))
      }
      await under.disk.append(entry(++number))
      await under.crash()
      const { last, unflushed } = await under.disk.open()
      expect(last).toBe(number)
      expect(unflushed.at(-1)).toBe(`entry ${number}`)
      expect(unflushed).toHaveLength((20 % 3) + 1)
    })

    test('a body may be long, empty, end in blanks, and hold any character', async () => {
      const under = await create()
      const bodies = ['x'.repeat(300_000), '', 'ends in blanks   ', '"\u00e9\u{1f600}\\n"'.repeat(5000), '{}']
      for (const [at, body] of bodies.entries()) await under.disk.append(entry(at + 1, body))
      await under.crash()
      expect((await under.disk.open()).unflushed).toEqual(bodies)
      await under.disk.flush(images(), 4)
      expect((await under.disk.open()).unflushed).toEqual(['{}'])
    })

    test('rows of new partitions come with their entry', async () => {
      const under = await create()
      const newRows = [
        ...rows(1, 1, 120),
        aRow(200, 2, { index: 7, spelling: 'task-1-2-07', recordCount: 0 }),
      ]
      await under.disk.append({ number: 1, body: 'a', newRows, newKeys: [] })
      await under.crash()
      expect((await under.disk.open()).unflushed).toEqual(['a'])
      const found = partitionsById(await under.disk.load({ partitions: newRows.map(({ id }) => id) }))
      expect(newRows.map(({ id }) => found.get(id))).toEqual(newRows.map((row) => ({ ...row, ...status() })))
    })

    test('an entry with a key that is known keeps nothing', async () => {
      const { disk } = await create()
      const key = (name: string) => ({ key: name, leases: [], forgetAt: NOW })
      await disk.append(entry(1))
      await disk.flush(images({ keys: new Map([['k', key('k')]]) }), 1)
      const attempt = disk.append({ number: 2, body: 'b', newRows: rows(1, 1, 1), newKeys: ['j', 'k', 'l'] })
      const error = await attempt.catch((reason: unknown) => reason)
      expect(error).toBeInstanceOf(KnownKeys)
      expect((error as KnownKeys).keys).toEqual(['k'])
      expect((await disk.load({ partitions: [1] })).partitions).toEqual([])
      await disk.append({ number: 2, body: 'c', newRows: rows(1, 1, 1), newKeys: ['j', 'l'] })
      expect(await disk.open()).toMatchObject({ last: 2, unflushed: ['c'] })
    })

    test('images and the entries that they make superfluous go together', async () => {
      const under = await create()
      await under.disk.append(entry(1))
      const nextIds = { task: 8, lane: 9, partition: 10 }
      await under.disk.flush(images({ tasks: byId(aTask(1)), nextIds }), 1)
      await under.crash()
      expect(await under.disk.open()).toEqual({ last: 1, unflushed: [], nextIds })
      expect((await under.disk.load({ tasks: [1] })).tasks).toEqual([aTask(1)])
    })

    test('the probe commits', async () => {
      const { disk } = await create()
      await disk.probe(NOW)
      await disk.probe(NOW + 1)
      expect(disk.hasSpace()).toBe(true)
    })
  })
}
