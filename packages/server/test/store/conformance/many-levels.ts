import { describe, expect, test } from 'vitest'
import type { ReportedOutcome } from '../../../src/handoff/rules/settlement.ts'
import { type Driver, nameOf, one } from './driver.ts'
import { type StoreHarness, storesOf } from './harness.ts'

/** More lanes than a store reads in one transaction. */
const LEVELS = 510

/** One partition on each of them. */
const levels = () => Array.from({ length: LEVELS }, (_, level) => one(level, 0))

/**
 * Hands everything out and settles all of it in the same way, then requests a view, so that all of it is
 * counted.
 */
async function settleAll(store: Driver, reported: Partial<ReportedOutcome> = {}): Promise<void> {
  const handed = await store.pullAll(1000)
  await store.settleAll(handed, reported)
  await store.task('a')
}

const parkAll = (store: Driver) => settleAll(store, { outcome: 'failed', final: true })

export function manyLevelsTopic(harness: StoreHarness): void {
  describe('a task of more levels than a step reads', () => {
    const open = storesOf(harness)

    test('retry finds a level, or a name, behind hundreds of others that are parked', async () => {
      const store = await open()
      await store.callBack('a', levels())
      await parkAll(store)
      expect(await store.retry('a', { level: 507 })).toMatchObject({ changed: 1, newlyReady: 1 })
      const partitions = [{ level: 503, index: 0 }]
      expect(await store.retry('a', { partitions })).toMatchObject({ changed: 1, newlyReady: 1 })
      expect((await store.pullAll()).map(nameOf)).toEqual(['a-503-0', 'a-507-0'])
    })

    test('retry includes all levels', async () => {
      const store = await open()
      await store.callBack('a', levels())
      await parkAll(store)
      expect(await store.retry('a')).toMatchObject({ changed: LEVELS })
      expect(await store.pullAll(1000)).toHaveLength(LEVELS)
    })

    test('done partitions of one level or of all levels run again', async () => {
      const store = await open()
      await store.callBack('a', levels())
      await settleAll(store)
      expect(await store.retry('a', { level: 507, done: true })).toMatchObject({ changed: 1 })
      expect((await store.pullAll()).map(nameOf)).toEqual(['a-507-0'])
      await store.retry('a', { done: true })
      await store.maintainAll()
      expect(await store.pullAll(1000)).toHaveLength(LEVELS - 1)
    })

    test('nothing is handed out between pause and resume, and then everything once', async () => {
      const store = await open()
      await store.callBack('a', levels())
      await store.control({ verb: 'pause', taskId: 'a' })
      expect((await store.pull({ batch: 10 })).partitions).toEqual([])
      expect((await store.task('a')).facts.partitions).toMatchObject({ ready: 0, held: LEVELS })
      await store.control({ verb: 'resume', taskId: 'a' })
      expect((await store.pullAll(1000)).map(({ level }) => level)).toEqual(
        levels().map(({ level }) => level),
      )
    })

    test('a barrier can be set and removed', async () => {
      const store = await open()
      await store.callBack('a', levels())
      await store.control({ verb: 'level-barrier', taskId: 'a', enabled: true })
      expect((await store.pullAll()).map(nameOf)).toEqual(['a-0-0'])
      await store.control({ verb: 'level-barrier', taskId: 'a', enabled: false })
      await store.maintainAll()
      expect(await store.pullAll(1000)).toHaveLength(LEVELS - 1)
    })

    test('a cancelled task is removed after its retention', async () => {
      const store = await open()
      await store.callBack('a', levels())
      await store.control({ verb: 'cancel', taskId: 'a' })
      expect((await store.pull()).partitions).toEqual([])
      await store.maintainAll()
      expect((await store.task('a')).facts.partitions).toMatchObject({ cancelled: LEVELS })
      store.clock.advance(1)
      await store.maintainAll(0)
      expect(await store.partitions('a')).toEqual([])
    })
  })
}
