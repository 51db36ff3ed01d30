import { describe, expect, test } from 'vitest'
import { bearer, tokenNamed, tokensFile } from '../../../../test/support/tokens-file.ts'
import { listening, RawConnection } from '../support/raw-connection.ts'
import { descriptors, TestApp } from '../support/test-app.ts'

const content = {
  tokens: [{ name: 'compute', token: tokenNamed('compute'), roles: ['producer'] }],
  groups: [
    { group: 'sales-oncall', roles: ['operator'], tasks: ['sales-'] },
    { group: 'data-platform', roles: ['operator'] },
    { group: 'everyone', roles: ['viewer'] },
  ],
}

/** Requests of the tests come from 127.0.0.1. */
async function behind(authProxy: string[]) {
  const baton = await TestApp.open({ tokensFile: await tokensFile(content), authProxy })
  for (const task of ['sales-1', 'orders-1'])
    await baton.post('/call-back', descriptors(task, 1), bearer(tokenNamed('compute')))
  return baton
}

const user = (name: string, ...groups: string[]) => ({
  'x-forwarded-user': name,
  'x-forwarded-groups': groups.join(','),
})

describe('a user who signed in at a proxy', () => {
  test('has the roles of a group, and the audit has the name of the user', async () => {
    const baton = await behind(['127.0.0.1'])
    const ana = user('ana@example.com', 'lunch', 'data-platform')
    expect((await baton.post('/tasks/orders-1/pause', undefined, ana)).status).toBe(200)
    const { body } = await baton.get('/audit', ana)
    expect(body.entries).toMatchObject([{ action: 'pause', name: 'ana@example.com' }])
    const ben = user('ben', 'everyone')
    expect((await baton.get('/tasks', ben)).status).toBe(200)
    const refused = await baton.post('/tasks/orders-1/pause', undefined, ben)
    expect([refused.status, refused.body.code]).toEqual([403, 'token_refused'])
    expect(refused.body.detail).toContain('the group of the user')
    expect((await baton.get('/pull', ana)).body.code).toBe('token_refused')
  })

  test('has the limits of the first of its groups in the file, and not more by another', async () => {
    const baton = await behind(['127.0.0.1'])
    const ana = user('ana', 'everyone', 'sales-oncall')
    expect((await baton.post('/tasks/sales-1/pause', undefined, ana)).status).toBe(200)
    expect((await baton.post('/tasks/orders-1/pause', undefined, ana)).body.code).toBe('token_limited')
    const { body } = await baton.get('/tasks', ana)
    expect(body.tasks.map(({ taskId }: { taskId: string }) => taskId)).toEqual(['sales-1'])
    expect((await baton.get('/audit', ana)).body.code).toBe('token_limited')
  })

  test.each([
    ['without a known group', user('ana', 'strangers')],
    ['without groups', { 'x-forwarded-user': 'ana' }],
  ])('%s is refused', async (_, headers) => {
    const baton = await behind(['127.0.0.1'])
    const { status, body } = await baton.get('/tasks', headers)
    expect([status, body.code]).toEqual([403, 'token_refused'])
  })

  test.each([
    ['from another address', ['10.0.0.5'], user('ana', 'data-platform')],
    ['without configured proxies', [], user('ana', 'data-platform')],
    ['with an empty name', ['127.0.0.1'], user('', 'data-platform')],
    ['with a name of control characters', ['127.0.0.1'], user('a\tna', 'data-platform')],
    ['with a name that is too long', ['127.0.0.1'], user('n'.repeat(201), 'data-platform')],
  ])('%s is nobody', async (_, authProxy, headers) => {
    const baton = await behind(authProxy)
    const { status, body } = await baton.get('/tasks', headers)
    expect([status, body.code]).toEqual([401, 'token_missing'])
  })

  test('is not taken from a header that is there twice', async () => {
    const baton = await behind(['127.0.0.1'])
    const connection = await RawConnection.open(await listening(baton.app))
    const lines = ['GET /tasks HTTP/1.1', 'Host: x', 'X-Forwarded-Groups: data-platform']
    connection.send([...lines, 'X-Forwarded-User: ana', '', ''].join('\r\n'))
    expect((await connection.answer()).status).toBe(200)
    connection.send([...lines, 'X-Forwarded-User: ana', 'X-Forwarded-User: eve', '', ''].join('\r\n'))
    expect((await connection.answer()).status).toBe(401)
  })

  test('does not replace a token', async () => {
    const baton = await behind(['127.0.0.1'])
    const both = { ...user('ana', 'data-platform'), ...bearer(tokenNamed('compute')) }
    expect((await baton.get('/whoami', both)).body).toEqual({
      name: 'compute',
      roles: ['producer'],
      tasks: null,
    })
    expect((await baton.get('/tasks', both)).body.code).toBe('token_refused')
  })

  test('who has the name of a token uses nothing of its share', async () => {
    const tokens = {
      ...content,
      tokens: [...content.tokens, { name: 'wall', token: tokenNamed('wall'), roles: ['viewer'] }],
    }
    const baton = await TestApp.open({
      tokensFile: await tokensFile(tokens),
      authProxy: ['127.0.0.1'],
      maxRequestsPerSecond: 0.001,
    })
    const namesake = user('wall', 'everyone')
    expect((await baton.get('/tasks', namesake)).status).toBe(200)
    expect((await baton.get('/tasks', namesake)).status).toBe(429)
    expect((await baton.get('/tasks', bearer(tokenNamed('wall')))).status).toBe(200)
  })

  test('cannot be used by a page of another site', async () => {
    const baton = await behind(['127.0.0.1'])
    const ana = user('ana', 'data-platform')
    const foreign = { ...ana, 'sec-fetch-site': 'cross-site' }
    expect((await baton.post('/tasks/orders-1/pause', undefined, foreign)).body.code).toBe(
      'cross_site_refused',
    )
    const old = { ...ana, host: 'baton.example', 'user-agent': 'Mozilla/5.0' }
    expect((await baton.post('/tasks/orders-1/pause', undefined, old)).body.code).toBe('cross_site_refused')
    expect((await baton.get('/tasks/orders-1', ana)).body.state).toBe('open')
  })

  test('learns who the service takes the sender for', async () => {
    const baton = await behind(['127.0.0.1'])
    expect((await baton.get('/whoami', user('änne', 'sales-oncall'))).body).toEqual({
      name: expect.any(String),
      roles: ['operator'],
      tasks: ['sales-'],
    })
    expect((await baton.get('/whoami')).body.code).toBe('token_missing')
    const open = await TestApp.open()
    expect((await open.get('/whoami')).body).toEqual({
      name: null,
      roles: ['producer', 'worker', 'operator', 'viewer'],
      tasks: null,
    })
  })
})

test.each([
  ['an unknown role', [{ group: 'a', roles: ['admin'] }], 'of a group must be one of operator, viewer'],
  ['a role of programs', [{ group: 'a', roles: ['worker'] }], 'of a group must be one of operator, viewer'],
  ['an unknown field', [{ group: 'a', roles: ['viewer'], tables: ['r.t'] }], 'tables'],
  [
    'a group twice',
    [
      { group: 'a', roles: ['viewer'] },
      { group: 'a', roles: ['operator'] },
    ],
    'defines the group "a" twice',
  ],
])('a tokens file with %s in its groups is refused', async (_, groups, fault) => {
  const file = await tokensFile({ ...content, groups })
  await expect(TestApp.open({ tokensFile: file })).rejects.toThrow(fault)
})
