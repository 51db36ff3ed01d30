import { describe, expect, onTestFinished, test } from 'vitest'
import { until } from '../../../../test/support/until.ts'
import { CallBackReader } from '../../src/http/bodies/call-back-reader.ts'
import { PARSED_ON_THREAD_BYTES } from '../../src/http/bodies/json-body.ts'
import { UnparsedBody } from '../../src/http/bodies/json-bytes.ts'
import { descriptor, descriptors, TestApp } from '../support/test-app.ts'

/** Large enough to be parsed on its own thread and stored in several steps. */
const array = descriptors('orders', 5000)
const text = JSON.stringify(array)

describe('POST /call-back of a large array', () => {
  test('is parsed on a thread', () => {
    expect(text.length).toBeGreaterThan(PARSED_ON_THREAD_BYTES)
  })

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
    expect(await baton.app.store.audit()).toEqual([])
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
})

/** A body in two chunks, which are views of the same memory. */
function unparsed(text: string): UnparsedBody {
  const bytes = Buffer.from(text)
  return new UnparsedBody([bytes.subarray(0, 7), bytes.subarray(7)])
}

const bodyOf = (count: number) => unparsed(JSON.stringify(descriptors('orders', count)))

test('the thread that parses them ends when idle, and is started again', async () => {
  const reader = new CallBackReader({}, 5)
  onTestFinished(() => reader.close())
  expect(reader.hasThread).toBe(false)
  for (const _twice of [1, 2]) {
    const checked = reader.read(bodyOf(3))
    expect(reader.hasThread).toBe(true)
    expect(await checked).toMatchObject({ ok: true, callBack: { taskId: 'orders' } })
    await until(() => !reader.hasThread)
  }
})

test('an element that is larger than any descriptor is refused without parsing it', async () => {
  const reader = new CallBackReader({})
  onTestFinished(() => reader.close())
  const [first] = descriptors('orders', 1)
  const array = `[${JSON.stringify(first)}, [${'{},'.repeat(400_000)}0], 3]`
  expect(await reader.read(unparsed(array))).toEqual({
    ok: false,
    violations: [{ pointer: '/1', detail: 'an element can have at most 1 MiB' }],
    total: 1,
  })
  expect(await reader.read(unparsed(`{"a":${array}}`))).toMatchObject({
    ok: false,
    violations: [{ pointer: '', detail: expect.stringContaining('must be an array') }],
  })
  expect(await reader.read(bodyOf(3))).toMatchObject({ ok: true, callBack: { taskId: 'orders' } })
})
