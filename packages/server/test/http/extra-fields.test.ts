import { describe, expect, test } from 'vitest'
import { descriptor, descriptors, TestApp } from '../support/test-app.ts'

const keep = { unknownFields: 'keep' as const }
const withFields = (index: number, fields: object) => ({ ...descriptor('orders', 0, index), ...fields })
const TRACE = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'

describe('fields beyond the contract, where they are kept', () => {
  test('come with the pulled partition, by a pull and by a settle that pulls', async () => {
    const baton = await TestApp.open(keep)
    const [first, second] = [
      withFields(0, { region: 'eu', nested: { a: [1, null] } }),
      withFields(1, { '': 0 }),
    ]
    await baton.callBack(first, second, descriptor('orders', 0, 2))
    const [pulled] = await baton.pull()
    expect(pulled).toEqual({ ...first, lease: expect.any(Object) })
    const settlements = [{ leaseId: pulled?.lease?.id, outcome: 'done' }]
    const { body } = await baton.post('/settle', settlements, { prefer: 'batch=2' })
    expect(body.partitions).toEqual([
      { ...second, lease: expect.any(Object) },
      { ...descriptor('orders', 0, 2), lease: expect.any(Object) },
    ])
  })

  test('are shown apart from the fields of a view, so that any name is possible', async () => {
    const baton = await TestApp.open(keep)
    const fields = { state: 'Ohio', attempts: -1, fields: 'x' }
    await baton.callBack(withFields(0, fields), descriptor('orders', 0, 1))
    const { body } = await baton.get('/tasks/orders/partitions')
    expect(body.partitions[0]).toMatchObject({ state: 'ready', attempts: 0, fields })
    expect(body.partitions[1]).not.toHaveProperty('fields')
    const manifest = await baton.app.http.inject({ method: 'GET', url: '/tasks/orders/manifest' })
    const lines = manifest.body
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(lines).toMatchObject([{ state: 'ready', fields }, { state: 'ready' }])
    expect(lines[1]).not.toHaveProperty('fields')
  })

  test('are compared: others are a conflict that names them, another order is a duplicate', async () => {
    const baton = await TestApp.open(keep)
    await baton.callBack(withFields(0, { a: 1, b: 2 }))
    const again = await baton.post('/call-back', [withFields(0, { b: 2, a: 1 })])
    expect(again.body).toMatchObject({ accepted: 0, duplicates: 1 })
    const other = await baton.post('/call-back', [withFields(0, { a: 2 })])
    expect([other.status, other.body.code]).toEqual([409, 'partition_conflict'])
    expect(other.body.conflicts).toEqual([
      {
        pointer: '/0',
        partition_name: 'orders-0-0',
        detail: 'additional fields are {"a":2} in the request and {"a":1,"b":2} in the stored descriptor',
      },
    ])
    const without = await baton.post('/call-back', [descriptor('orders', 0, 0)])
    expect(without.body.conflicts[0].detail).toContain('are empty in the request and {"a":1,"b":2}')
  })

  test('are named in a conflict also where they differ behind what is shown of them', async () => {
    const baton = await TestApp.open(keep)
    const long = (last: string) => withFields(0, { note: `${'x'.repeat(300)}${last}` })
    await baton.callBack(long('a'))
    const other = await baton.post('/call-back', [long('b')])
    expect(other.body.conflicts[0].detail).toMatch(/^additional fields are /)
  })

  test('are refused by element and field where they cannot be kept, and nothing is stored', async () => {
    const baton = await TestApp.open(keep)
    const array = [
      descriptor('orders', 0, 0),
      withFields(1, { lease: { id: 'mine' } }),
      withFields(2, { note: 'x'.repeat(3000) }),
    ]
    const answer = await baton.post('/call-back', array)
    expect(answer.status).toBe(422)
    expect(answer.body.errors.map(({ pointer }: { pointer: string }) => pointer)).toEqual([
      '/1/lease',
      '/2/note',
    ])
    expect((await baton.get('/tasks/orders')).status).toBe(404)
    const deep = `[${JSON.stringify(descriptor('orders', 0, 0)).slice(0, -1)},"a":${'['.repeat(20_000)}${']'.repeat(20_000)}}]`
    const nested = await baton.ask('POST', '/call-back', {
      raw: Buffer.from(deep),
      headers: { 'content-type': 'application/json' },
    })
    expect(nested.status).toBe(422)
  })

  test('are allowed by the API document', async () => {
    const elements = async (baton: TestApp) => {
      const { body } = await baton.get('/openapi.json')
      return body.paths['/call-back'].post.requestBody.content['application/json'].schema.items
    }
    expect(await elements(await TestApp.open(keep))).toMatchObject({ additionalProperties: true })
    expect(await elements(await TestApp.open())).toEqual({ $ref: '#/components/schemas/PartitionDescriptor' })
  })

  test('are kept by the thread that parses large call-backs', async () => {
    const baton = await TestApp.open(keep)
    const array = descriptors('orders', 5000).map((one, at) => (at % 2 === 0 ? { ...one, at } : one))
    expect((await baton.post('/call-back', array)).body).toMatchObject({ accepted: 5000 })
    expect((await baton.post('/call-back', array)).body).toMatchObject({ duplicates: 5000 })
    const { body } = await baton.get('/pull', { prefer: 'batch=1000' })
    expect(body.partitions.map(({ lease: _, ...one }: { lease: unknown }) => one)).toEqual(
      array.slice(0, 1000),
    )
  })
})

describe('traceparent', () => {
  test('of a call-back is handed on with its partitions, and a malformed one is ignored', async () => {
    const baton = await TestApp.open()
    await baton.post('/call-back', [descriptor('orders', 0, 0)], { traceparent: TRACE })
    await baton.post('/call-back', [descriptor('orders', 0, 1)], { traceparent: TRACE.toUpperCase() })
    await baton.post('/call-back', [descriptor('orders', 0, 2)])
    const { body } = await baton.get('/pull', { prefer: 'batch=3' })
    expect(body.partitions).toEqual([
      { ...descriptor('orders', 0, 0), lease: expect.any(Object), traceparent: TRACE },
      { ...descriptor('orders', 0, 1), lease: expect.any(Object) },
      { ...descriptor('orders', 0, 2), lease: expect.any(Object) },
    ])
    const rows = (await baton.get('/tasks/orders/partitions')).body.partitions
    expect(rows[0]).toMatchObject({ traceparent: TRACE })
    expect(rows[2]).not.toHaveProperty('traceparent')
  })
})
