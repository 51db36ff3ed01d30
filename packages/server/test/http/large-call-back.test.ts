import { describe, expect, test } from 'vitest'
import { descriptor, descriptors, TestApp } from '../support/test-app.ts'

/** Large enough to be parsed, checked and stored in several steps. */
const array = descriptors('orders', 5000)
const text = JSON.stringify(array)

describe('POST /call-back of a large array', () => {
  test('stores the whole array in order, and recognizes a repeat', async () => {
    const baton = await TestApp.open()
    expect((await baton.post('/call-back', array)).body).toEqual({
      taskId: 'orders',
      accepted: 5000,
      duplicates: 0,
    })
    expect((await baton.post('/call-back', array)).body).toEqual({
      taskId: 'orders',
      accepted: 0,
      duplicates: 5000,
    })
    const { body } = await baton.get('/pull', { prefer: 'batch=1000' })
    const names = body.partitions.map((partition: { partition_name: string }) => partition.partition_name)
    expect(names).toEqual(array.slice(0, 1000).map((sent) => sent.partition_name))
    await baton.expectSound()
  })

  test('names each violation with its position, and stores nothing', async () => {
    const baton = await TestApp.open()
    const answer = await baton.post(
      '/call-back',
      array.with(4321, { ...array[4321], record_count: -1 } as never),
    )
    expect(answer.status).toBe(422)
    expect(answer.body.errors).toEqual([{ pointer: '/4321/record_count', detail: expect.any(String) }])
    expect((await baton.get('/tasks/orders')).status).toBe(404)
  })

  test.each([
    ['cut off', Buffer.from(text.slice(0, -3))],
    ['not in UTF-8', Buffer.concat([Buffer.from(text.slice(0, -3)), Buffer.from([0xff, 0x22, 0x7d, 0x5d])])],
  ])('%s is answered 400', async (_what, raw) => {
    const baton = await TestApp.open()
    const answer = await baton.ask('POST', '/call-back', {
      raw,
      headers: { 'content-type': 'application/json' },
    })
    expect(answer.status).toBe(400)
    expect(answer.body.code).toBe('body_not_json')
  })

  test('names the partitions that are known with other content', async () => {
    const baton = await TestApp.open()
    await baton.callBack(descriptor('orders', 0, 4999, { record_count: 7 }))
    const answer = await baton.post('/call-back', array)
    expect(answer.status).toBe(409)
    expect(answer.body.conflicts).toEqual([
      expect.objectContaining({ pointer: '/4999', partition_name: 'orders-0-4999' }),
    ])
    expect((await baton.get('/tasks/orders')).body.partitions.total).toBe(1)
  })

  test.each([
    ['an element that is larger than any descriptor', `[0,{"a":"${'b'.repeat(65_536)}"}]`, '/1', '64 KiB'],
    ['a large object', JSON.stringify({ ...array }), '', 'must be an array of partition descriptors'],
  ])('refuses %s without parsing it', async (_what, raw, pointer, detail) => {
    const baton = await TestApp.open()
    const answer = await baton.ask('POST', '/call-back', {
      raw,
      headers: { 'content-type': 'application/json' },
    })
    expect([answer.status, answer.body.errors]).toEqual([
      422,
      [{ pointer, detail: expect.stringContaining(detail) }],
    ])
  })
})
