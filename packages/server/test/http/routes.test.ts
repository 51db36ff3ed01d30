import { describe, expect, test } from 'vitest'
import { descriptor, TestApp } from '../support/test-app.ts'

describe('a path that has another method', () => {
  const service = TestApp.shared()
  test.each([
    ['POST', '/pull', 'GET, HEAD'],
    ['DELETE', '/pull', 'GET, HEAD'],
    ['OPTIONS', '/pull', 'GET, HEAD'],
    ['GET', '/call-back', 'POST'],
    ['HEAD', '/call-back', 'POST'],
    ['PUT', '/call-back', 'POST'],
    ['GET', '/settle', 'POST'],
    ['PATCH', '/renew', 'POST'],
    ['POST', '/test/instance-status', 'GET, HEAD'],
    ['POST', '/tasks', 'GET, HEAD'],
    ['DELETE', '/tasks/orders', 'GET, HEAD'],
    ['GET', '/tasks/orders/pause', 'POST'],
    ['POST', '/tasks/orders/manifest', 'GET'],
    ['POST', '/livez', 'GET, HEAD'],
  ])('%s %s is answered 405 with Allow: %s', async (method, path, allow) => {
    const response = await service().app.http.inject({ method: method as 'GET', url: path })
    expect([response.statusCode, response.headers.allow]).toEqual([405, allow])
    if (method !== 'HEAD') expect(response.json().code).toBe('method_not_allowed')
  })

  test('gets the same answer whatever body is sent', async () => {
    const answer = await service().ask('POST', '/pull', {
      raw: 'not json',
      headers: { 'content-type': 'application/json' },
    })
    expect(answer.status).toBe(405)
  })
})

describe('a path without a route', () => {
  const service = TestApp.shared()
  test.each(['/nowhere', '/Pull', '/pull/', '//pull', '/call-back/extra', '/tasks/orders/explode', '/test'])(
    '%s is answered 404',
    async (path) => {
      const answer = await service().get(path)
      expect([answer.status, answer.body.code]).toEqual([404, 'route_unknown'])
    },
  )

  test.each([
    ['/Pull', '/pull'],
    ['/pull/', '/pull'],
    ['//pull', '/pull'],
    ['/PULL//?a=/b', '/pull'],
    ['/test//instance-status', '/test/instance-status'],
    ['/Tasks/Orders%2F1/', '/tasks/Orders%2F1'],
    ['//tasks/orders/Pause', '/tasks/orders/pause'],
    ['/callback', '/call-back'],
    ['/call_back', '/call-back'],
    ['/call-backs', '/call-back'],
    ['/task', '/tasks'],
    ['/pulls', '/pull'],
    ['/poll', '/pull'],
    ['/Setle?a=b', '/settle'],
    ['/ready', '/readyz'],
    ['/instance-status', '/test/instance-status'],
    ['/test/instancestatus', '/test/instance-status'],
    ['/task/orders', '/tasks/orders'],
    ['/tasks/q/pauze', '/tasks/q/pause'],
    ['/task/Q%2F-1/partition', '/tasks/Q%2F-1/partitions'],
    ['/health', '/livez or /readyz'],
    ['/healthz', '/livez or /readyz'],
  ])('%s is answered with the hint %s', async (path, meant) => {
    const { body } = await service().get(path)
    expect(body.detail).toBe(`there is no route with this path; did you mean ${meant}?`)
  })

  test.each(['/nowhere', '/call-back/extra', '/tasks/orders/explode', `/Tasks/${'x'.repeat(300)}`])(
    '%s resembles no route',
    async (path) => {
      expect((await service().get(path)).body.detail).toBe('there is no route with this path')
    },
  )

  test('gets no hint with an invented task id', async () => {
    expect((await service().get('/tasks//pause/')).body.detail).not.toContain('did you mean')
    expect((await service().get('/task//pause')).body.detail).not.toContain('did you mean')
  })

  test.each([
    ['GET', '/tasks/'],
    ['GET', '/tasks//partitions'],
    ['POST', '/tasks//pause'],
  ])('%s %s has no task id, and is not treated as an empty one', async (method, path) => {
    const { status, body } = await service().ask(method, path)
    expect([status, body.code]).toEqual([404, 'route_unknown'])
    expect(body.detail).toBe('the path has no task id; the list of tasks is at /tasks')
  })

  test('gets a hint that includes the base path', async () => {
    const baton = await TestApp.open({ basePath: '/baton' })
    expect((await baton.get('/Baton/Pull/')).body.detail).toContain('did you mean /baton/pull?')
    expect((await baton.get('/baton/poll')).body.detail).toBe(
      'there is no route with this path; did you mean /baton/pull?',
    )
    expect((await baton.get('/baton/healthz')).body.detail).toContain('/baton/livez or /baton/readyz')
  })

  test.each([
    ['/pull', '; did you mean /baton/pull?'],
    ['/pulls/', '; did you mean /baton/pull?'],
    ['/tasks/q/pause', '; did you mean /baton/tasks/q/pause?'],
    ['/healthz', '; did you mean /baton/livez or /baton/readyz?'],
    ['/', '; did you mean /baton?'],
    ['/batonic/nowhere', ''],
  ])('outside of the base path %s is answered with the base path', async (path, hint) => {
    const baton = await TestApp.open({ basePath: '/baton' })
    const { status, body } = await baton.get(path)
    expect([status, body.detail]).toEqual([
      404,
      `there is no route with this path: the base path of the service is /baton${hint}`,
    ])
  })

  test('gets the same answer whatever body is sent', async () => {
    const answer = await service().ask('POST', '/nowhere', {
      raw: 'x'.repeat(100),
      headers: { 'content-type': 'a/b' },
    })
    expect(answer.status).toBe(404)
  })

  test.each(['/tasks/%ff', '/tasks/%zz', '/%e0%a4'])('%s is answered 400', async (path) => {
    const answer = await service().get(path)
    expect([answer.status, answer.body.code]).toEqual([400, 'bad_request'])
  })
})

describe('a base path', () => {
  test.each(['/baton/v1', '/baton/v1/'])('%s prefixes every route', async (basePath) => {
    const baton = await TestApp.open({ basePath })
    expect((await baton.post('/baton/v1/call-back', [descriptor('orders', 0, 1)])).status).toBe(200)
    expect((await baton.get('/baton/v1/pull')).body.partitions).toHaveLength(1)
    expect((await baton.get('/baton/v1/livez')).status).toBe(200)
    expect((await baton.get('/baton/v1/openapi.json')).body.servers).toEqual([{ url: '/baton/v1' }])
    expect((await baton.get('/pull')).status).toBe(404)
    expect((await baton.post('/baton/v1/pull')).status).toBe(405)
  })
})

describe('a task id in a path', () => {
  test.each([
    ['with slashes and percent signs', 'a/b%2F?c#d'],
    ['with spaces and dots', 'o r d e r s...'],
    ['beyond ASCII', 'aufträge-七'],
    ['of the longest kind', '😀'.repeat(1024)],
  ])('%s finds its task', async (_, taskId) => {
    const baton = await TestApp.open()
    await baton.callBack(descriptor(taskId, 0, 1))
    const answer = await baton.get(`/tasks/${encodeURIComponent(taskId)}`)
    expect(answer.body.taskId).toBe(taskId)
    const paused = await baton.post(`/tasks/${encodeURIComponent(taskId)}/pause`)
    expect(paused.body).toEqual({ taskId, state: 'paused', changed: 1 })
  })

  test.each([
    ['with a NUL', 'a%00b'],
    ['longer than any', 'x'.repeat(1025)],
  ])('%s is answered 422', async (_, segment) => {
    const baton = await TestApp.open()
    const answer = await baton.get(`/tasks/${segment}`)
    expect([answer.status, answer.body.code]).toEqual([422, 'parameter_invalid'])
  })

  test('longer than the router takes is answered 400', async () => {
    const baton = await TestApp.open()
    const answer = await baton.get(`/tasks/${'x'.repeat(20_000)}`)
    expect([answer.status, answer.body.code]).toEqual([400, 'bad_request'])
  })
})

describe('an unknown query parameter', () => {
  const service = TestApp.shared()

  test('is refused on every route of the API but probes', async () => {
    const { body: document } = await service().get('/openapi.json')
    const paths = Object.entries(document.paths as Record<string, Record<string, unknown>>)
    const routes = paths.flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => [method.toUpperCase(), path.replaceAll(/\{\w+\}/g, 'x')] as const),
    )
    expect(routes.length).toBeGreaterThan(20)
    for (const [method, path] of routes) {
      const { status, body } = await service().ask(method, `${path}?colour=blue`, {
        ...(method === 'GET' ? {} : { body: {} }),
      })
      if (path === '/livez' || path === '/readyz') expect([path, status]).toEqual([path, 200])
      else
        expect([method, path, status, body.detail]).toEqual([
          method,
          path,
          422,
          expect.stringMatching(/^"colour" is not a query parameter of this route; (it has none|its )/),
        ])
    }
  })

  test('is ignored by the page and its files', async () => {
    expect((await service().get('/?utm_source=mail')).status).toBe(200)
    expect((await service().get('/docs?utm_source=mail')).status).toBe(200)
  })
})
