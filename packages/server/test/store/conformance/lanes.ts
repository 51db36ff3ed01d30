import { describe, expect, test } from 'vitest'
import { batchedPull, type Driver, nameOf, one, some } from './driver.ts'
import { type StoreHarness, storesOf } from './harness.ts'

/** More than a store rewrites in one transaction, so that operations in steps take several. */
export const MANY = 2600

/** The levels of the next partitions, and how many of each. */
export async function pullLevels(store: Driver, count: number): Promise<number[]> {
  const levels = new Set<number>()
  for (let left = count; left > 0; ) {
    const { partitions } = await store.pull({ batch: Math.min(left, 500) })
    for (const { level } of partitions) levels.add(level)
    left -= partitions.length
    if (partitions.length === 0) throw new Error(`${left} of ${count} partitions are missing`)
  }
  return [...levels]
}

export function lanesTopic(harness: StoreHarness): void {
  describe('lanes of thousands of partitions', () => {
    const open = storesOf(harness)

    test('every partition is handed out once, in the order of the call-backs', async () => {
      const store = await open()
      await store.callBack('a', some(0, MANY))
      await store.callBack('a', some(0, 100, {}, MANY))
      const indexes = (await store.pullAll(333)).map(({ index }) => index)
      expect(indexes).toEqual(Array.from({ length: MANY + 100 }, (_, index) => index))
    })

    test('one pull may take a thousand, and many pulls of one batch several thousand', async () => {
      const store = await open()
      await store.callBack('a', some(0, MANY))
      const { pulls } = await store.batch({
        pulls: [1000, 1000, 1000].map((batch) => batchedPull({ batch })),
      })
      expect(pulls.map(({ partitions }) => partitions.length)).toEqual([1000, 1000, 600])
    })

    test('partitions at the end count as ready and are shown so', async () => {
      const store = await open()
      await store.callBack('a', some(0, MANY))
      const shown = Object.values(await store.states('a'))
      expect(shown.filter((state) => state === 'ready')).toHaveLength(MANY)
    })

    test('two long lanes advance equally in records', async () => {
      const store = await open()
      await store.callBack('small', some(0, MANY, { recordCount: 10 }))
      await store.callBack('large', some(0, MANY, { recordCount: 40 }))
      const given = { small: 0, large: 0 }
      for (const { taskId, recordCount } of (await store.pull({ batch: 1000 })).partitions)
        given[taskId as 'small' | 'large'] += recordCount
      for (let pulls = 0; pulls < 3; pulls += 1)
        for (const { taskId, recordCount } of (await store.pull({ batch: 700 })).partitions)
          given[taskId as 'small' | 'large'] += recordCount
      expect(Math.abs(given.small - given.large)).toBeLessThanOrEqual(50)
    })

    test('a level is exhausted before the next one, also where a long array follows a shorter one', async () => {
      const store = await open()
      await store.callBack('a', some(0, 900))
      await store.callBack('b', some(1, MANY))
      await store.callBack('a', some(0, MANY, {}, 900))
      const tasks: string[] = []
      while (tasks.length < 900 + MANY + 100)
        tasks.push(...(await store.pull({ batch: 100 })).partitions.map(({ taskId }) => taskId))
      expect(tasks.indexOf('b')).toBe(900 + MANY)
    })

    test('a lane that drains and fills again continues where it was', async () => {
      const store = await open()
      for (let round = 0; round < 3; round += 1) {
        await store.callBack('a', some(0, 700, {}, round * 700))
        const indexes = (await store.pullAll(400)).map(({ index }) => index)
        expect(indexes).toEqual(Array.from({ length: 700 }, (_, index) => round * 700 + index))
      }
    })

    test('a pull reads only a bounded part of a paused lane of thousands', async () => {
      const store = await open()
      await store.callBack('a', some(0, MANY))
      await store.callBack('b', some(0, 3))
      // One step only: what the pause has not reached yet must not be handed out either.
      await store.store.control({ verb: 'pause', taskId: 'a' })
      expect((await store.pull({ batch: 10 })).partitions.map(nameOf)).toEqual(['b-0-0', 'b-0-1', 'b-0-2'])
    })

    test('waiting pulls are woken for everything that becomes ready, also for what is read later', async () => {
      const store = await open()
      let heard = (await store.batch({ callBacks: [callBackOf('a', MANY)] })).newlyReady
      let taken = 0
      // One single pull per waiting partition; each is sent only when it was woken.
      while (heard > taken) {
        const pulls = Array.from({ length: heard - taken }, () => batchedPull())
        const answers = await store.batch({ pulls })
        taken += answers.pulls.filter(({ partitions }) => partitions.length === 1).length
        heard += answers.newlyReady
      }
      expect(taken).toBe(MANY)
    })

    test('each of many levels is exhausted before the next', async () => {
      const store = await open()
      const array = Array.from({ length: 300 }, (_, level) => [one(level, 0), one(level, 1)]).flat()
      await store.callBack('a', array)
      const levels = (await store.pullAll(77)).map(({ level }) => level)
      expect(levels).toEqual(levels.toSorted((a, b) => a - b))
      expect(levels).toHaveLength(600)
    })
  })
}

const callBackOf = (taskId: string, count: number) => ({
  callBack: { taskId, recordTotal: count * 100, partitions: some(0, count) },
  producer: null,
})
