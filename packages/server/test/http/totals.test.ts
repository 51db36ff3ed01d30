import { describe, expect, test } from 'vitest'
import { descriptor, descriptors, TestApp } from '../support/test-app.ts'

const nothing = { total: 0, ready: 0, held: 0, leased: 0, delayed: 0, parked: 0, done: 0, cancelled: 0 }

describe('GET /totals', () => {
  test('is zero for an empty store', async () => {
    const baton = await TestApp.open()
    const answer = await baton.get('/totals')
    expect([answer.status, answer.headers['cache-control']]).toEqual([200, 'no-store'])
    expect(answer.body).toEqual({
      tasks: { open: 0, stalled: 0, paused: 0, withParked: 0 },
      partitions: nothing,
      records: nothing,
      complete: true,
    })
  })

  test('adds up every task that is neither done nor cancelled, and what is done of it', async () => {
    const baton = await TestApp.open({ maxAttempts: 1 })
    await baton.callBack(...descriptors('stalled', 1))
    await baton.settle(await baton.pull(), { outcome: 'failed' })
    await baton.callBack(...descriptors('open', 4))
    const pulled = await baton.pull({ prefer: 'batch=2' })
    await baton.settle(pulled.slice(0, 1))
    await baton.callBack(...descriptors('paused', 2, { record_count: 7 }))
    await baton.post('/tasks/paused/pause')
    await baton.callBack(...descriptors('cancelled', 5))
    await baton.post('/tasks/cancelled/cancel')
    const { body } = await baton.get('/totals')
    expect(body).toEqual({
      tasks: { open: 1, stalled: 1, paused: 1, withParked: 1 },
      partitions: { ...nothing, total: 7, ready: 2, held: 2, leased: 1, parked: 1, done: 1 },
      records: { ...nothing, total: 514, ready: 200, held: 14, leased: 100, parked: 100, done: 100 },
      complete: true,
    })
  })

  test('stops at the largest safe integer', async () => {
    const baton = await TestApp.open()
    const largest = { record_count: Number.MAX_SAFE_INTEGER }
    await baton.callBack(descriptor('a', 0, 0, largest))
    await baton.callBack(descriptor('b', 0, 0, largest))
    const { body } = await baton.get('/totals')
    expect(body.records).toMatchObject({ total: Number.MAX_SAFE_INTEGER, ready: Number.MAX_SAFE_INTEGER })
  })

  test('fails while the store is unavailable', async () => {
    const baton = await TestApp.open()
    await baton.app.store.close()
    const { status, body } = await baton.get('/totals')
    expect([status, body.code, body.retryable]).toEqual([503, 'store_unavailable', true])
  })
})
