import { describe, expect, test } from 'vitest'
import { batchedCallBack, nameOf, one, some } from './driver.ts'
import { HOUR, type StoreHarness, storesOf } from './harness.ts'

const FIELDS = '{"snapshot":"s3://results/0-7","größe":[1,{"a":null}],"quote":"\\"\\\\ \\u0000"}'
const TRACE = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'
/** More than fit into one entry. */
const MANY = 5000

export function extraFieldsTopic(harness: StoreHarness): void {
  describe('fields beyond the contract, and traces', () => {
    const open = storesOf(harness)

    test('are handed out with each attempt, and shown', async () => {
      const store = await open()
      await store.callBack('orders', [one(0, 0, { extraFields: FIELDS }), one(0, 1)])
      const first = await store.pullOne()
      expect(first).toMatchObject({ index: 0, extraFields: FIELDS })
      await store.settle(first.leaseId, { outcome: 'failed' })
      const second = await store.pullOne()
      expect(second).toMatchObject({ index: 1 })
      expect(second.extraFields ?? null).toBeNull()
      await store.pass(HOUR)
      const names = await store.pullAll()
      expect(names.find(({ index }) => index === 0)).toMatchObject({ extraFields: FIELDS })
      expect(await store.partition('orders', 0, 0)).toMatchObject({ extraFields: FIELDS, traceparent: null })
      expect((await store.partition('orders', 0, 1)).extraFields ?? null).toBeNull()
    })

    test('survive a restart, before and after they were handed out', async () => {
      const store = await open()
      await store.callBack('orders', some(0, 2, { extraFields: FIELDS }))
      const { leaseId } = await store.pullOne()
      await store.reopen()
      expect(await store.pullOne()).toMatchObject({ index: 1, extraFields: FIELDS })
      await store.settle(leaseId, { outcome: 'released' })
      await store.reopen()
      expect(await store.pullOne()).toMatchObject({ index: 0, extraFields: FIELDS })
    })

    test('are part of what is compared: others are a conflict, their order is not', async () => {
      const store = await open()
      const [known, again] = ['{"a":1,"b":{"c":2,"d":3}}', '{"b":{"d":3,"c":2},"a":1}']
      await store.callBack('orders', [one(0, 0, { extraFields: known }), one(0, 1)])
      expect(await store.callBack('orders', [one(0, 0, { extraFields: again }), one(0, 1)])).toMatchObject({
        accepted: 0,
        duplicates: 2,
      })
      for (const extraFields of ['{"a":1}', '{"a":1,"b":{"c":2,"d":"3"}}', null])
        expect(await store.callBack('orders', [one(0, 0, { extraFields })])).toEqual({
          kind: 'conflict',
          total: 1,
          conflicts: [{ position: 0, known: one(0, 0, { extraFields: known }) }],
        })
      expect(await store.callBack('orders', [one(0, 1, { extraFields: '{"a":1}' })])).toMatchObject({
        kind: 'conflict',
        conflicts: [{ position: 0, known: one(0, 1) }],
      })
      await store.reopen()
      expect(await store.callBack('orders', [one(0, 0, { extraFields: '{}' })])).toMatchObject({ total: 1 })
    })

    test('come with a large call-back, each with its partition', async () => {
      const store = await open()
      const partitions = some(0, MANY).map((partition) =>
        partition.index % 3 === 0 ? { ...partition, extraFields: `{"at":${partition.index}}` } : partition,
      )
      await store.batch({ callBacks: [{ ...batchedCallBack('orders', partitions), traceparent: TRACE }] })
      const handed = await store.pullAll(1000)
      expect(handed).toHaveLength(MANY)
      for (const partition of handed) {
        const { index } = partition
        expect({ name: nameOf(partition), fields: partition.extraFields ?? null }).toEqual({
          name: `orders-0-${index}`,
          fields: index % 3 === 0 ? `{"at":${index}}` : null,
        })
        expect(partition.traceparent).toBe(TRACE)
      }
    })

    test('a trace is that of the first call-back of the partition, and is not compared', async () => {
      const store = await open()
      const other = TRACE.replace('4bf9', 'aaaa')
      await store.batch({ callBacks: [{ ...batchedCallBack('orders', some(0, 2)), traceparent: TRACE }] })
      const again = { ...batchedCallBack('orders', some(0, 3)), traceparent: other }
      expect((await store.batch({ callBacks: [again] })).callBacks).toMatchObject([
        { accepted: 1, duplicates: 2 },
      ])
      await store.callBack('orders', some(0, 4))
      const handed = await store.pullAll()
      expect(handed.map(({ traceparent }) => traceparent ?? null)).toEqual([TRACE, TRACE, other, null])
      expect(await store.partition('orders', 0, 2)).toMatchObject({ traceparent: other })
    })
  })
}
