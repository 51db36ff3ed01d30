import { describe, expect, test } from 'vitest'
import { descriptor, leaseId, TestApp } from '../support/test-app.ts'

const service = TestApp.shared()

describe('GET /test/instance-status', () => {
  test('without a name returns the node that answers, which is known by its name as well', async () => {
    const baton = await TestApp.open()
    const { status, body } = await baton.get('/test/instance-status')
    expect(status).toBe(200)
    expect(body).toMatchObject({
      instanceId: 'node-under-test',
      role: 'service',
      status: 'up',
      version: '0.1.0',
    })
    expect(Date.parse(body.startedAt)).not.toBeNaN()
    expect(Date.parse(body.leadsSince)).not.toBeNaN()
    expect(body.load).toBeGreaterThanOrEqual(0)
    expect(body.load).toBeLessThanOrEqual(1)
    const named = await baton.get('/test/instance-status?instanceId=node-under-test')
    expect(named.body.role).toBe('service')
  })

  test('shows leases at their holder, not at the node that handed them out', async () => {
    const baton = await TestApp.open()
    await baton.callBack(descriptor('orders', 0, 1), descriptor('orders', 0, 2))
    await baton.pull({ 'x-instance-id': 'loader-7', prefer: 'batch=2' })
    expect((await baton.get('/test/instance-status?instanceId=loader-7')).body.leases).toBe(2)
    expect((await baton.get('/test/instance-status')).body.leases).toBe(0)
  })

  test('counts what a worker did', async () => {
    const baton = await TestApp.open()
    const headers = { 'x-instance-id': 'loader-7' }
    await baton.callBack(descriptor('orders', 0, 1), descriptor('orders', 0, 2), descriptor('orders', 0, 3))
    const [done, failed, released] = (await baton.pull({ ...headers, prefer: 'batch=3' })).map(leaseId)
    const settlements = [
      { leaseId: done, outcome: 'done' },
      { leaseId: failed, outcome: 'failed' },
      { leaseId: released, outcome: 'released' },
    ]
    await baton.post('/settle', settlements, headers)
    const { body } = await baton.get('/test/instance-status?instanceId=loader-7')
    expect(body.leases).toBe(0)
    expect(body.totals).toMatchObject({
      pulls: 1,
      partitions: 3,
      records: 300,
      done: 1,
      failed: 1,
      released: 1,
    })
  })

  test('shows a producer the progress of its tasks', async () => {
    const baton = await TestApp.open()
    const headers = { 'x-instance-id': 'compute-3' }
    await baton.post('/call-back', [descriptor('orders', 0, 1), descriptor('orders', 0, 2)], headers)
    await baton.settle(await baton.pull())
    const { body } = await baton.get('/test/instance-status?instanceId=compute-3')
    expect(body.tasks).toMatchObject([
      { taskId: 'orders', partitions: { total: 2, done: 1 }, records: { total: 200, done: 100 } },
    ])
    const { instances } = (await baton.get('/instances')).body
    expect(instances).toMatchObject([{ instanceId: 'compute-3', role: 'producer' }, { role: 'service' }])
    expect(instances[0]).not.toHaveProperty('tasks')
  })

  test('counts the call-backs of a producer that were accepted, and not those that were refused', async () => {
    const baton = await TestApp.open()
    const headers = { 'x-instance-id': 'compute-3' }
    const sent = async (changed = {}) =>
      (await baton.post('/call-back', [descriptor('orders', 0, 1, changed)], headers)).status
    expect([await sent(), await sent(), await sent({ record_count: 7 })]).toEqual([200, 200, 409])
    const { body } = await baton.get('/test/instance-status?instanceId=compute-3')
    expect(body).toMatchObject({ role: 'producer', status: 'up', totals: { callBacks: 2, calledBack: 1 } })
  })

  test('of an unknown instance is answered 404', async () => {
    const answer = await service().get('/test/instance-status?instanceId=nobody')
    expect([answer.status, answer.body.code]).toEqual([404, 'instance_unknown'])
  })

  test.each([
    ['empty', 'instanceId='],
    ['without a value', 'instanceId'],
    ['longer than 256 characters', `instanceId=${'w'.repeat(257)}`],
    ['given twice', 'instanceId=a&instanceId=b'],
    ['with a control character', 'instanceId=a%00b'],
  ])('is answered 422 for an instance id: %s', async (_, query) => {
    const answer = await service().get(`/test/instance-status?${query}`)
    expect([answer.status, answer.body.code]).toEqual([422, 'parameter_invalid'])
  })

  test.each([
    ['instanceid=a', '"instanceid" is not a query parameter of this route; did you mean instanceId?'],
    ['instance_id=a', '"instance_id" is not a query parameter of this route; did you mean instanceId?'],
    ['_=1', '"_" is not a query parameter of this route; its only parameter is instanceId'],
    ['__proto__=1', '"__proto__" is not a query parameter of this route; its only parameter is instanceId'],
  ])('refuses %s instead of ignoring it', async (query, detail) => {
    const answer = await service().get(`/test/instance-status?${query}`)
    expect([answer.status, answer.body.code, answer.body.detail]).toEqual([422, 'parameter_invalid', detail])
  })

  test.each(['instanceId=%zz', 'instanceId=%ff', '%zz=a'])(
    'refuses %s, which is not validly encoded',
    async (query) => {
      const answer = await service().get(`/test/instance-status?${query}`)
      expect([answer.status, answer.body.code]).toEqual([400, 'bad_request'])
    },
  )

  test('shows when a client was seen, before its heartbeat is stored and after', async () => {
    let now = Date.parse('2026-03-01T12:00:00Z')
    const baton = await TestApp.open({}, { clock: () => now })
    const times = async () => {
      const { body } = await baton.get('/test/instance-status?instanceId=loader-7')
      return [body.firstSeenAt, body.lastSeenAt].map((text) => text.slice(11, 19))
    }
    await baton.callBack(descriptor('orders', 0, 1))
    await baton.pull({ 'x-instance-id': 'loader-7' })
    now += 2000
    await baton.pull({ 'x-instance-id': 'loader-7' })
    now += 2000
    expect(await times()).toEqual(['12:00:00', '12:00:02'])
    await baton.get('/instances')
    now += 60_000
    expect(await times()).toEqual(['12:00:00', '12:00:02'])
  })

  test('shows that the node is draining', async () => {
    const baton = await TestApp.open()
    baton.app.handOff.drain()
    await baton.get('/instances')
    expect((await baton.get('/test/instance-status')).body.status).toBe('draining')
  })
})

describe('GET /instances', () => {
  test('pages through all of them by name', async () => {
    const baton = await TestApp.open({ instanceId: 'a-node' })
    for (const name of ['w3', 'w1', 'w2', 'w0']) await baton.pull({ 'x-instance-id': name })
    const names: string[] = []
    let cursor = ''
    do {
      const { body } = await baton.get(`/instances?limit=2${cursor}`)
      names.push(...body.instances.map(({ instanceId }: { instanceId: string }) => instanceId))
      cursor = body.next === null ? '' : `&cursor=${body.next}`
    } while (cursor !== '')
    expect(names).toEqual(['a-node', 'w0', 'w1', 'w2', 'w3'])
  })

  test.each([
    'limit=0',
    'limit=1001',
    'limit=ten',
    'limit=1&limit=2',
    'cursor=%25',
    'cursor=',
    'cursor=e30',
    // "", "\u0000" and "\ud800": no instance has such a name.
    'cursor=IiI',
    'cursor=Ilx1MDAwMCI',
    'cursor=Ilx1ZDgwMCI',
  ])('%s is answered 422', async (query) => {
    const answer = await service().get(`/instances?${query}`)
    expect([answer.status, answer.body.code]).toEqual([422, 'parameter_invalid'])
  })
})

describe('POST /instances/{instanceId}/release', () => {
  test('hands out again what the instance held, and wakes waiting pulls', async () => {
    const baton = await TestApp.open()
    await baton.callBack(descriptor('orders', 0, 1), descriptor('orders', 0, 2))
    const [held] = await baton.pull({ 'x-instance-id': 'loader/7', prefer: 'batch=2' })
    const waiting = baton.pull({ prefer: 'wait=30, batch=2' })
    const { status, body } = await baton.post(`/instances/${encodeURIComponent('loader/7')}/release`)
    expect([status, body]).toEqual([200, { instanceId: 'loader/7', released: 2, parked: 0 }])
    expect(await waiting).toMatchObject([{ lease: { attempt: 2 } }, { lease: { attempt: 2 } }])
    const settled = await baton.post('/settle', [{ leaseId: leaseId(held), outcome: 'done' }])
    expect(settled.body.refused).toMatchObject([{ code: 'lease_lost' }])
    const again = await baton.post(`/instances/${encodeURIComponent('loader/7')}/release`)
    expect(again.body).toMatchObject({ released: 0 })
  })

  test('of an unknown instance is answered 404, of an invalid name 422, and fields are refused', async () => {
    const codeOf = async (path: string, body?: unknown) => (await service().post(path, body)).body.code
    expect(await codeOf('/instances/nobody/release')).toBe('instance_unknown')
    expect(await codeOf('/instances/a%0Ab/release')).toBe('parameter_invalid')
    expect(await codeOf('/instances/nobody/release', { force: true })).toBe('contract_violation')
  })
})
