import { describe, expect, test } from 'vitest'
import { until } from '../../../../test/support/until.ts'
import { descriptor, TestApp } from '../support/test-app.ts'

const three = [descriptor('orders', 0, 1), descriptor('orders', 0, 2), descriptor('orders', 1, 1)]

describe('GET /pull', () => {
  test('hands out one partition under a lease, without parameters', async () => {
    const baton = await TestApp.open()
    await baton.callBack(...three)
    const answer = await baton.get('/pull')
    expect(answer.status).toBe(200)
    expect(answer.headers['cache-control']).toBe('no-store')
    expect(answer.headers).not.toHaveProperty('retry-after')
    const { lease, ...handedOut } = answer.body.partitions[0]
    expect(handedOut).toEqual(descriptor('orders', 0, 1))
    expect(lease).toMatchObject({ attempt: 1, fencingToken: expect.any(Number), expiresInSeconds: 300 })
    expect(answer.body.partitions).toHaveLength(1)
  })

  test('says when the lease ends, as a time and as a duration', async () => {
    const now = Date.UTC(2026, 2, 1, 12)
    const baton = await TestApp.open({ leaseSeconds: 0.5, leasePerThousandRecords: 2 }, { clock: () => now })
    await baton.callBack(descriptor('orders', 0, 1, { record_count: 1500 }))
    const [partition] = await baton.pull()
    expect(partition?.lease).toMatchObject({ expiresAt: '2026-03-01T12:00:03.500Z', expiresInSeconds: 3.5 })
  })

  test('answers an empty array when nothing is ready, and when to try again', async () => {
    const baton = await TestApp.open()
    const answer = await baton.get('/pull')
    expect(answer.body).toEqual({ partitions: [] })
    expect(answer.headers['retry-after']).toBe('1')
  })

  test('returns names as they were spelled', async () => {
    const baton = await TestApp.open()
    const odd = descriptor('städte "a"\\-1', 0, 7, { partition_name: 'städte "a"\\-1-00-007' })
    await baton.callBack(odd)
    expect((await baton.pull())[0]).toMatchObject(odd)
  })

  test('ignores a body', async () => {
    const baton = await TestApp.open()
    await baton.callBack(...three)
    const answer = await baton.ask('GET', '/pull', {
      raw: '{"not":"read"}',
      headers: { 'content-type': 'application/json' },
    })
    expect(answer.body.partitions).toHaveLength(1)
  })
})

describe('Prefer on a pull', () => {
  test('hands out a batch, lowest level first', async () => {
    const baton = await TestApp.open()
    await baton.callBack(...three)
    const answer = await baton.get('/pull', { prefer: 'batch=50' })
    expect(answer.headers['preference-applied']).toBe('batch=50')
    const names = answer.body.partitions.map(
      ({ partition_name }: { partition_name: string }) => partition_name,
    )
    expect(names).toEqual(['orders-0-1', 'orders-0-2', 'orders-1-1'])
  })

  test('is capped above the maximum', async () => {
    const baton = await TestApp.open()
    await baton.callBack(...three)
    const answer = await baton.get('/pull', { prefer: 'batch=5000, wait=9999' })
    expect(answer.headers['preference-applied']).toBe('batch=1000, wait=60')
  })

  test.each(['respond-async', ';;,,=='])('of %s is unknown and ignored', async (prefer) => {
    const baton = await TestApp.open()
    await baton.callBack(...three)
    const answer = await baton.get('/pull', { prefer })
    expect(answer.body.partitions).toHaveLength(1)
    expect(answer.headers).not.toHaveProperty('preference-applied')
  })

  test.each(['batch=many', 'batch=-1', 'batch=0', 'wait', 'batch="'])('of %s is refused', async (prefer) => {
    const baton = await TestApp.open()
    await baton.callBack(...three)
    const { status, body } = await baton.get('/pull', { prefer })
    expect([status, body.code]).toEqual([422, 'parameter_invalid'])
    expect(body.detail).toMatch(/^Prefer: (batch|wait) must be a whole number of/)
    expect(await baton.pull()).toHaveLength(1)
  })

  test('with wait is answered as soon as something is called back', async () => {
    const baton = await TestApp.open()
    const pulling = baton.get('/pull', { prefer: 'wait=60' })
    await until(() => baton.app.handOff.waitingPulls === 1)
    await baton.callBack(...three)
    const answer = await pulling
    expect(answer.body.partitions).toHaveLength(1)
    expect(answer.headers['preference-applied']).toBe('wait=60')
  })

  test('with wait=0 does not wait', async () => {
    const baton = await TestApp.open()
    expect((await baton.get('/pull', { prefer: 'wait=0' })).body.partitions).toEqual([])
  })
})

describe('HEAD /pull', () => {
  test('is answered and leases nothing', async () => {
    const baton = await TestApp.open()
    await baton.callBack(descriptor('orders', 0, 1))
    const answer = await baton.ask('HEAD', '/pull')
    expect([answer.status, answer.text, answer.headers['cache-control']]).toEqual([200, '', 'no-store'])
    expect((await baton.get('/tasks/orders')).body.partitions).toMatchObject({ ready: 1, leased: 0 })
  })
})

describe('Idempotency-Key', () => {
  test('gives a repeat the same leases, never new ones', async () => {
    const baton = await TestApp.open()
    await baton.callBack(...three)
    const key = { 'idempotency-key': '"7f9c2ba4e88f827d"', prefer: 'batch=2' }
    const first = await baton.pull(key)
    expect(await baton.pull(key)).toMatchObject(first.map(({ lease }) => ({ lease: { id: lease?.id } })))
    expect(await baton.pull()).toMatchObject([{ partition_name: 'orders-1-1' }])
  })

  test.each([
    ['empty', ''],
    ['with a space', 'a b'],
    ['given twice', 'a, b'],
    ['beyond ASCII', 'schlüssel'],
    ['longer than 255', 'k'.repeat(256)],
  ])('%s is answered 422, and nothing is leased', async (_, key) => {
    const baton = await TestApp.open()
    await baton.callBack(...three)
    const answer = await baton.get('/pull', { 'idempotency-key': key })
    expect([answer.status, answer.body.code]).toEqual([422, 'parameter_invalid'])
    expect(await baton.pull({ prefer: 'batch=9' })).toHaveLength(3)
  })
})

describe('X-Instance-Id', () => {
  test('makes the caller a worker instance that holds its leases', async () => {
    const baton = await TestApp.open()
    await baton.callBack(...three)
    await baton.pull({ 'x-instance-id': 'loader-7' })
    const { body } = await baton.get('/test/instance-status?instanceId=loader-7')
    expect(body).toMatchObject({
      role: 'worker',
      status: 'up',
      leases: 1,
      totals: { pulls: 1, records: 100 },
    })
    const { body: list } = await baton.get('/tasks/orders/partitions?state=leased')
    expect(list.partitions).toMatchObject([{ holder: 'loader-7' }])
  })

  test.each([
    ['empty', ''],
    ['longer than 256 characters', 'w'.repeat(257)],
    ['with a control character', 'a\u0085b'],
  ])('%s is answered 422, and nothing is leased', async (_, name) => {
    const baton = await TestApp.open()
    await baton.callBack(descriptor('orders', 0, 1))
    const answer = await baton.get('/pull', { 'x-instance-id': name })
    expect([answer.status, answer.body.code]).toEqual([422, 'parameter_invalid'])
    expect(await baton.pull()).toHaveLength(1)
  })

  test('sent as UTF-8 is the name that a URL spells', async () => {
    const baton = await TestApp.open()
    await baton.pull({ 'x-instance-id': Buffer.from('läufer-七').toString('latin1') })
    const answer = await baton.get(`/test/instance-status?instanceId=${encodeURIComponent('läufer-七')}`)
    expect(answer.body.instanceId).toBe('läufer-七')
  })
})

describe('at-most-once delivery', () => {
  test('settles a partition when it is handed out, without a lease', async () => {
    const baton = await TestApp.open({ delivery: 'at-most-once' })
    await baton.callBack(...three)
    expect(await baton.pull()).toEqual([{ ...descriptor('orders', 0, 1), lease: null }])
    const { body } = await baton.get('/tasks/orders')
    expect(body).toMatchObject({ settledByDelivery: 1, partitions: { done: 1, ready: 2 } })
  })
})
