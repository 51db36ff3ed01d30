import { describe, expect, test } from 'vitest'
import { until } from '../../../../test/support/until.ts'
import { descriptor, leaseId, TestApp } from '../support/test-app.ts'

const leased = (...indexes: number[]) => leasedBy({}, ...indexes)

async function leasedBy(options: { clock?: () => number }, ...indexes: number[]) {
  const baton = await TestApp.open({}, options)
  await baton.callBack(...indexes.map((index) => descriptor('orders', 0, index)))
  const ids = (await baton.pull({ prefer: 'batch=1000' })).map(leaseId)
  return { baton, ids, states: async () => (await baton.get('/tasks/orders')).body.partitions }
}

describe('POST /settle', () => {
  test('with done finishes the partition', async () => {
    const { baton, ids, states } = await leased(1)
    const answer = await baton.post('/settle', [{ leaseId: ids[0], outcome: 'done' }])
    expect(answer.status).toBe(200)
    expect(answer.body).toEqual({ settled: ids, refused: [], partitions: [] })
    expect(await states()).toMatchObject({ done: 1, leased: 0 })
  })

  test('with failed delays the partition by its back-off and shows the reason', async () => {
    const { baton, ids } = await leased(1)
    await baton.post('/settle', [{ leaseId: ids[0], outcome: 'failed', reason: 'table is locked' }])
    const { body } = await baton.get('/tasks/orders/partitions')
    expect(body.partitions).toMatchObject([{ state: 'delayed', attempts: 1, lastReason: 'table is locked' }])
  })

  test('with retryAfterSeconds of a fraction of a millisecond still delays', async () => {
    const now = Date.now()
    const { baton, ids } = await leasedBy({ clock: () => now }, 1)
    await baton.post('/settle', [{ leaseId: ids[0], outcome: 'released', retryAfterSeconds: 0.0004 }])
    const { body } = await baton.get('/tasks/orders/partitions')
    expect(body.partitions).toMatchObject([{ state: 'delayed', readyAt: new Date(now + 1).toISOString() }])
  })

  test('with records compares them with the declared number', async () => {
    const { baton, ids } = await leased(1)
    await baton.post('/settle', [{ leaseId: ids[0], outcome: 'done', records: 99 }])
    const { body } = await baton.get('/tasks/orders')
    expect(body.reported).toEqual({
      declared: 100,
      reported: 99,
      mismatched: 1,
      mismatches: [{ partition_name: 'orders-0-1', declared: 100, reported: 99 }],
    })
  })

  test('keeps the first 4096 characters of a reason, and no half character', async () => {
    const { baton, ids } = await leased(1)
    const reason = `${'x'.repeat(4095)}😀 and on`
    await baton.post('/settle', [{ leaseId: ids[0], outcome: 'failed', reason }])
    const { body } = await baton.get('/tasks/orders/partitions')
    expect(body.partitions[0].lastReason).toBe('x'.repeat(4095))
  })

  test('refuses each lease for its own reason and settles the others', async () => {
    const { baton, ids } = await leased(1, 2)
    await baton.post('/settle', [{ leaseId: ids[0], outcome: 'done' }])
    const answer = await baton.post('/settle', [
      { leaseId: ids[0], outcome: 'failed' },
      { leaseId: 'never given out', outcome: 'done' },
      { leaseId: ids[1], outcome: 'done' },
    ])
    expect(answer.body).toMatchObject({
      settled: [ids[1]],
      refused: [
        { leaseId: ids[0], code: 'lease_settled' },
        { leaseId: 'never given out', code: 'lease_unknown' },
      ],
    })
    expect(answer.body.refused[0].detail).not.toBe('')
  })

  test('ignores unknown fields', async () => {
    const { baton, ids } = await leased(1)
    const answer = await baton.post('/settle', [{ leaseId: ids[0], outcome: 'done', worker: 7 }])
    expect(answer.body.settled).toEqual(ids)
  })

  test('with any error settles nothing', async () => {
    const { baton, ids, states } = await leased(1)
    const answer = await baton.post('/settle', [
      { leaseId: ids[0], outcome: 'done' },
      { leaseId: ids[0], outcome: 'finished' },
    ])
    expect(answer.status).toBe(422)
    expect(answer.body.errors).toMatchObject([{ pointer: '/1/outcome' }])
    expect(await states()).toMatchObject({ leased: 1 })
  })
})

describe('POST /settle that also pulls', () => {
  test.each([
    ['batch=2', 2],
    ['records=1', 1],
    ['records=1000000', 3],
    ['batch=2, records=1000000', 2],
    ['wait=60', 1],
  ])('with Prefer: %s hands out the next partitions', async (prefer, count) => {
    const { baton, ids } = await leased(1)
    await baton.callBack(descriptor('orders', 0, 2), descriptor('orders', 0, 3), descriptor('orders', 0, 4))
    const answer = await baton.post('/settle', [{ leaseId: ids[0], outcome: 'done' }], { prefer })
    expect(answer.body.settled).toEqual(ids)
    expect(answer.body.partitions).toHaveLength(count)
    expect(answer.headers['preference-applied']).toBe(prefer)
  })

  test('waits if requested, after the settlement is done', async () => {
    const { baton, ids, states } = await leased(1)
    const asking = baton.post('/settle', [{ leaseId: ids[0], outcome: 'done' }], { prefer: 'wait=60' })
    await until(() => baton.app.handOff.waitingPulls === 1)
    expect(await states()).toMatchObject({ done: 1 })
    await baton.callBack(descriptor('orders', 0, 2))
    expect((await asking).body.partitions).toMatchObject([{ partition_name: 'orders-0-2' }])
  })

  test.each<[string, Record<string, string>]>([
    ['a pull', { prefer: 'batch=1' }],
    ['no pull', {}],
    ['a preference that is none', { prefer: 'respond-async' }],
  ])('with a malformed key for %s has no effect', async (_, others) => {
    const { baton, ids, states } = await leased(1)
    const headers = { ...others, 'idempotency-key': 'a b' }
    const answer = await baton.post('/settle', [{ leaseId: ids[0], outcome: 'done' }], headers)
    expect([answer.status, answer.body.code]).toEqual([422, 'parameter_invalid'])
    expect(await states()).toMatchObject({ leased: 1, done: 0 })
  })
})
