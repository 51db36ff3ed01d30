import { describe, expect, test } from 'vitest'
import { some } from './driver.ts'
import { type StoreHarness, storesOf } from './harness.ts'

export function sealTopic(harness: StoreHarness): void {
  describe('seal: no more will come', () => {
    const open = storesOf(harness)

    test('something new is refused, what is known is still a duplicate', async () => {
      const store = await open()
      await store.callBack('a', some(0, 2))
      expect(await store.control({ verb: 'seal', taskId: 'a', expectedPartitions: null })).toMatchObject({
        kind: 'applied',
        changed: 1,
        state: 'open',
      })
      expect(await store.callBack('a', some(0, 3))).toEqual({ kind: 'task_sealed' })
      expect(await store.callBack('a', some(1, 1))).toEqual({ kind: 'task_sealed' })
      expect(await store.callBack('a', some(0, 2))).toMatchObject({ kind: 'stored', duplicates: 2 })
    })

    test('the expected number is kept and may be corrected; without one the known stays', async () => {
      const store = await open()
      await store.callBack('a', some(0, 2))
      const seal = (expectedPartitions: number | null) =>
        store.control({ verb: 'seal', taskId: 'a', expectedPartitions })
      expect(await seal(5)).toMatchObject({ changed: 1 })
      expect(await seal(5)).toMatchObject({ changed: 0 })
      expect(await seal(null)).toMatchObject({ changed: 0 })
      expect((await store.task('a')).facts).toMatchObject({ sealed: true, expectedPartitions: 5 })
      expect(await seal(2)).toMatchObject({ changed: 1 })
      expect((await store.task('a')).facts).toMatchObject({ expectedPartitions: 2 })
    })

    test('a sealed task goes on to be worked on, and ends as done', async () => {
      const store = await open()
      await store.callBack('a', some(0, 1))
      await store.control({ verb: 'seal', taskId: 'a', expectedPartitions: 1 })
      await store.settle((await store.pullOne()).leaseId)
      expect((await store.task('a')).facts).toMatchObject({ generation: 1, finishedAt: store.clock.now() })
      expect(await store.callBack('a', some(0, 2))).toEqual({ kind: 'task_sealed' })
    })

    test('an unknown task cannot be sealed, a cancelled one neither', async () => {
      const store = await open()
      const order = { verb: 'seal', taskId: 'a', expectedPartitions: null } as const
      expect(await store.control(order)).toEqual({ kind: 'task_unknown' })
      await store.callBack('a', some(0, 1))
      await store.control({ verb: 'cancel', taskId: 'a' })
      expect(await store.control(order)).toEqual({ kind: 'task_cancelled' })
    })
  })
}
