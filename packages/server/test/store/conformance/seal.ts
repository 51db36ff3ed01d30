import type { CalledBackPartition } from '@baton/protocol'
import { describe, expect, test } from 'vitest'
import type { BatchedCallBack, CallBackResult } from '../../../src/handoff/store.ts'
import { batchedCallBack, type Driver, some } from './driver.ts'
import { type StoreHarness, storesOf } from './harness.ts'

export function sealTopic(harness: StoreHarness): void {
  describe('seal', () => {
    const open = storesOf(harness)

    test('new partitions are refused, known ones are still duplicates', async () => {
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

    test('the expected number is kept and may be corrected; without one the previous stays', async () => {
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

    test('work on a sealed task continues until it is done', async () => {
      const store = await open()
      await store.callBack('a', some(0, 1))
      await store.control({ verb: 'seal', taskId: 'a', expectedPartitions: 1 })
      await store.settle((await store.pullOne()).leaseId)
      expect((await store.task('a')).facts).toMatchObject({ generation: 1, finishedAt: store.clock.now() })
      expect(await store.callBack('a', some(0, 2))).toEqual({ kind: 'task_sealed' })
    })

    test('an unknown task cannot be sealed, a cancelled one neither', async () => {
      const store = await open()
      const request = { verb: 'seal', taskId: 'a', expectedPartitions: null } as const
      expect(await store.control(request)).toEqual({ kind: 'task_unknown' })
      await store.callBack('a', some(0, 1))
      await store.control({ verb: 'cancel', taskId: 'a' })
      expect(await store.control(request)).toEqual({ kind: 'task_cancelled' })
    })

    const calling = async (
      store: Driver,
      partitions: readonly CalledBackPartition[],
      more: Pick<BatchedCallBack, 'owner' | 'sharesTask' | 'seal'>,
    ): Promise<CallBackResult | undefined> =>
      (await store.batch({ callBacks: [{ ...batchedCallBack('a', partitions, null), ...more }] }))
        .callBacks[0]

    test('a call-back may seal its task, and may be repeated', async () => {
      const store = await open()
      const seal = { partitions: 3 }
      expect(await calling(store, some(0, 2), { seal })).toEqual({
        kind: 'stored',
        accepted: 2,
        duplicates: 0,
      })
      expect((await store.task('a')).facts).toMatchObject({ sealed: true, expectedPartitions: 3 })
      expect(await calling(store, some(0, 2), { seal })).toEqual({
        kind: 'stored',
        accepted: 0,
        duplicates: 2,
      })
      expect(await store.callBack('a', some(1, 1))).toEqual({ kind: 'task_sealed' })
    })

    test('call-backs of one batch come one after the other: those after a seal are refused', async () => {
      const store = await open()
      const sealing = { ...batchedCallBack('a', some(0, 2), null), seal: { partitions: null } }
      const { callBacks } = await store.batch({
        callBacks: [sealing, batchedCallBack('a', some(1, 1), null)],
      })
      expect(callBacks).toEqual([{ kind: 'stored', accepted: 2, duplicates: 0 }, { kind: 'task_sealed' }])
    })

    test('a call-back that would seal with fewer partitions than there are stores nothing', async () => {
      const store = await open()
      await store.callBack('a', some(0, 2))
      const tooFew = { seal: { partitions: 2 } }
      expect(await calling(store, some(1, 1), tooFew)).toEqual({ kind: 'more_are_known', known: 3 })
      expect((await store.task('a')).facts).toMatchObject({ sealed: false, partitions: { ready: 2 } })
      await store.control({ verb: 'cancel', taskId: 'a' })
      expect(await calling(store, some(0, 2), tooFew)).toEqual({ kind: 'task_cancelled' })
    })

    test('a task belongs to the token that first called it back; others need to share it', async () => {
      const store = await open()
      await calling(store, some(0, 1), { owner: 'compute' })
      for (const seal of [null, { partitions: null }])
        for (const many of [1, 2])
          expect(await calling(store, some(0, many), { owner: 'stranger', seal })).toEqual({
            kind: 'not_own',
          })
      const sharing = (name: string) => ({ owner: name, sharesTask: true })
      for (let at = 1; at <= 20; at += 1) await calling(store, some(at, 1), sharing(`p${at}`))
      await store.reopen()
      const names = async () => (await store.task('a')).facts.owners
      expect(await names()).toEqual(['compute', ...Array.from({ length: 15 }, (_, at) => `p${at + 1}`)])
      // Having called it back once is not owning it.
      expect(await calling(store, some(0, 1), { owner: 'p3' })).toEqual({ kind: 'not_own' })
    })

    test('an operator gives a task to another token', async () => {
      const store = await open()
      await calling(store, some(0, 1), { owner: 'compute' })
      const given = { verb: 'owner' as const, taskId: 'a', name: 'next' }
      expect(await store.control(given)).toMatchObject({ kind: 'applied', changed: 1 })
      expect(await store.control(given)).toMatchObject({ kind: 'applied', changed: 0 })
      await store.reopen()
      expect(await calling(store, some(1, 1), { owner: 'next' })).toMatchObject({ kind: 'stored' })
      expect(await calling(store, some(2, 1), { owner: 'compute' })).toEqual({ kind: 'not_own' })
      expect((await store.task('a')).facts.owners).toEqual(['next', 'compute'])
    })
  })
}
