import { describe, expect, test } from 'vitest'
import { until } from '../../../../test/support/until.ts'
import { descriptor, leaseId, TestApp } from '../support/test-app.ts'

describe('the leases and attempts of an instance', () => {
  const headers = { 'x-instance-id': 'loader-7' }

  test('GET /instances/{instanceId}/leases lists them in pages, without their ids', async () => {
    const baton = await TestApp.open()
    await baton.callBack(descriptor('orders', 0, 1), descriptor('orders', 0, 2))
    await baton.pull({ ...headers, prefer: 'batch=2' })
    const first = (await baton.get('/instances/loader-7/leases?limit=1')).body
    expect(first.leases).toMatchObject([
      { taskId: 'orders', partition_name: 'orders-0-1', record_count: 100, priorityLevel: 0, attempt: 1 },
    ])
    expect(JSON.stringify(first)).not.toContain('"id"')
    const rest = (await baton.get(`/instances/loader-7/leases?limit=1&cursor=${first.next}`)).body
    expect(rest).toMatchObject({ leases: [{ partition_name: 'orders-0-2' }], next: null })
  })

  test('GET /instances/{instanceId}/attempts lists how the last ones ended', async () => {
    const baton = await TestApp.open()
    await baton.callBack(descriptor('orders', 0, 1), descriptor('orders', 0, 2))
    const [done, failed] = (await baton.pull({ ...headers, prefer: 'batch=2' })).map(leaseId)
    await baton.post('/settle', [{ leaseId: done, outcome: 'done', records: 98 }])
    await baton.post('/settle', [{ leaseId: failed, outcome: 'failed', reason: 'locked' }])
    const { attempts, since } = (await baton.get('/instances/loader-7/attempts')).body
    expect(Date.parse(since)).not.toBeNaN()
    expect(attempts).toMatchObject([
      { partition_name: 'orders-0-2', outcome: 'failed', reason: 'locked', attempt: 1 },
      { partition_name: 'orders-0-1', outcome: 'done', records: 98 },
    ])
  })

  test.each(['leases', 'attempts'])(
    'are empty for an instance with none, and 404 for an unknown one: %s',
    async (what) => {
      const baton = await TestApp.open()
      expect((await baton.get(`/instances/node-under-test/${what}`)).body[what]).toEqual([])
      const unknown = await baton.get(`/instances/nobody/${what}`)
      expect([unknown.status, unknown.body.code]).toEqual([404, 'instance_unknown'])
    },
  )
})

describe('POST /instances/{instanceId}/pause', () => {
  const headers = { 'x-instance-id': 'loader-7' }

  test('hands out nothing to it and tells it so, until it is resumed', async () => {
    const baton = await TestApp.open()
    await baton.callBack(descriptor('orders', 0, 1), descriptor('orders', 0, 2))
    const [held] = (await baton.pull(headers)).map(leaseId)
    const paused = await baton.post('/instances/loader-7/pause', undefined)
    expect(paused).toMatchObject({ status: 200, body: { instanceId: 'loader-7', status: 'up' } })
    expect(Date.parse(paused.body.pausedAt)).not.toBeNaN()
    const answer = await baton.get('/pull', headers)
    expect(answer).toMatchObject({ body: { partitions: [], because: { code: 'instance_paused' } } })
    expect(answer.headers['retry-after']).toBeDefined()
    const settled = await baton.post('/settle?batch=1', [{ leaseId: held, outcome: 'done' }], headers)
    expect(settled.body).toMatchObject({
      settled: [held],
      partitions: [],
      because: { code: 'instance_paused' },
    })
    const resumed = await baton.post('/instances/loader-7/resume', undefined)
    expect(resumed.body).not.toHaveProperty('pausedAt')
    expect(await baton.pull(headers)).toHaveLength(1)
  })

  test('answers a pull of it that waits, and leaves what becomes ready to others', async () => {
    const baton = await TestApp.open()
    await baton.get('/pull', headers)
    const paused = baton.get('/pull', { ...headers, prefer: 'wait=30' })
    await until(() => baton.app.handOff.waitingPulls === 1)
    const other = baton.get('/pull', { prefer: 'wait=30' })
    await until(() => baton.app.handOff.waitingPulls === 2)
    await baton.post('/instances/loader-7/pause', undefined)
    expect((await paused).body).toMatchObject({ because: { code: 'instance_paused' } })
    await baton.callBack(descriptor('orders', 0, 1))
    expect((await other).body.partitions).toHaveLength(1)
  })

  test.each([
    ['/instances/nobody/pause', 404, 'instance_unknown'],
    ['/instances/nobody/resume', 404, 'instance_unknown'],
    ['/instances/node-under-test/pause', 422, 'parameter_invalid'],
    ['/instances/a%00b/pause', 422, 'parameter_invalid'],
  ])('%s is answered %i', async (path, status, code) => {
    const baton = await TestApp.open()
    const answer = await baton.post(path, undefined)
    expect([answer.status, answer.body.code]).toEqual([status, code])
  })

  test('refuses a body with a field, by its place', async () => {
    const baton = await TestApp.open()
    await baton.get('/pull', headers)
    const answer = await baton.post('/instances/loader-7/pause', { until: 'tomorrow' })
    expect(answer).toMatchObject({ status: 422, body: { errors: [{ pointer: '/until' }] } })
    expect((await baton.get('/test/instance-status?instanceId=loader-7')).body).not.toHaveProperty('pausedAt')
  })
})

describe('POST /tasks/{taskId}/partitions/{partition_name}/release', () => {
  test('revokes the lease: the partition is ready, the old lease is lost, a late done counts', async () => {
    const baton = await TestApp.open()
    await baton.callBack(descriptor('orders', 0, 1))
    const [held] = (await baton.pull({ 'x-instance-id': 'loader-7' })).map(leaseId)
    const release = () => baton.post('/tasks/orders/partitions/orders-0-1/release', undefined)
    expect((await release()).body).toEqual({
      taskId: 'orders',
      partition_name: 'orders-0-1',
      released: 1,
      parked: 0,
    })
    expect((await baton.post('/renew', [held])).body.refused).toMatchObject([{ code: 'lease_lost' }])
    expect((await release()).body).toMatchObject({ released: 0 })
    const { partitions } = (await baton.get('/tasks/orders/partitions')).body
    expect(partitions).toMatchObject([{ state: 'ready', history: [{ outcome: 'revoked' }] }])
    expect((await baton.post('/settle', [{ leaseId: held, outcome: 'done' }])).body.settled).toEqual([held])
  })

  test.each([
    ['/tasks/orders/partitions/orders-0-2/release', 404, 'partition_unknown'],
    ['/tasks/orders/partitions/orders-7/release', 422, 'parameter_invalid'],
    ['/tasks/orders/partitions/other-0-1/release', 422, 'parameter_invalid'],
    ['/tasks/nothing/partitions/nothing-0-1/release', 404, 'task_unknown'],
  ])('%s is answered %i', async (path, status, code) => {
    const baton = await TestApp.open()
    await baton.callBack(descriptor('orders', 0, 1))
    const answer = await baton.post(path, undefined)
    expect([answer.status, answer.body.code]).toEqual([status, code])
  })
})

describe('GET /instances with filters', () => {
  test('finds instances by name and status, and sorts them', async () => {
    const baton = await TestApp.open()
    await baton.callBack(descriptor('orders', 0, 1), descriptor('orders', 0, 2))
    await baton.pull({ 'x-instance-id': 'loader-1' })
    await baton.pull({ 'x-instance-id': 'loader-2' })
    const named = async (query: string) => {
      const { instances } = (await baton.get(`/instances?${query}`)).body
      return instances.map(({ instanceId }: { instanceId: string }) => instanceId)
    }
    expect(await named('search=loader')).toContain('loader-1')
    expect((await named('sort=leases'))[0]).toBe('loader-1')
    expect(await named('status=lost')).toEqual([])
    expect(await named('status=up&search=node')).toEqual(['node-under-test'])
  })

  test.each([
    ['status=gone', 'the query parameter status must be one of up, silent, lost, draining, down'],
    ['sort=age', 'the query parameter sort must be one of name, lastSeenAt, leases'],
    ['cursor=x', 'the query parameter cursor must be the value of next on an earlier page'],
  ])('refuses %s', async (query, detail) => {
    const baton = await TestApp.open()
    const answer = await baton.get(`/instances?${query}`)
    expect([answer.status, answer.body.detail]).toEqual([422, detail])
  })
})
