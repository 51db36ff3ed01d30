import { createHash } from 'node:crypto'
import { chmod } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { servedRoutes } from '../../../../test/docs/support/routes.ts'
import { bearer, tokenNamed, tokensFile } from '../../../../test/support/tokens-file.ts'
import { type Role, roles } from '../../src/http/admission/tokens.ts'
import { readTokensFile } from '../../src/http/admission/tokens-file.ts'
import { SettingsError } from '../../src/settings-files.ts'
import { listening } from '../support/raw-connection.ts'
import { descriptor, TestApp } from '../support/test-app.ts'

async function guarded(): Promise<TestApp> {
  const sha256 = createHash('sha256').update(tokenNamed('viewer')).digest('hex')
  const tokens = [
    { name: 'compute', token: tokenNamed('producer'), roles: ['producer'] },
    { name: 'loaders', token: tokenNamed('worker'), roles: ['worker'] },
    { name: 'ops', token: tokenNamed('operator'), roles: ['operator'] },
    { name: 'screen', sha256, roles: ['viewer'] },
    { name: 'all', token: tokenNamed('all'), roles: ['producer', 'worker'] },
  ]
  return TestApp.open({ tokensFile: await tokensFile({ tokens }) })
}

/** The roles of each route; null if no token is required. */
const rights: Readonly<Record<string, readonly Role[] | null>> = {
  'POST /call-back': ['producer'],
  'GET /pull': ['worker'],
  'POST /settle': ['worker'],
  'POST /renew': ['worker'],
  'GET /test/instance-status': roles,
  'GET /instances': ['operator', 'viewer'],
  'POST /instances/{instanceId}/release': ['operator'],
  'GET /instances/{instanceId}/leases': ['operator', 'viewer'],
  'GET /instances/{instanceId}/attempts': ['operator', 'viewer'],
  'POST /instances/{instanceId}/pause': ['operator'],
  'POST /instances/{instanceId}/resume': ['operator'],
  'POST /tasks/{taskId}/partitions/{partition_name}/release': ['operator'],
  'GET /tasks': ['operator', 'viewer'],
  'GET /tasks/{taskId}': ['operator', 'viewer', 'producer'],
  'GET /tasks/{taskId}/partitions': ['operator', 'viewer', 'producer'],
  'GET /tasks/{taskId}/feed': ['operator', 'viewer', 'producer'],
  'GET /tasks/{taskId}/throughput': ['operator', 'viewer', 'producer'],
  'GET /tasks/{taskId}/grid': ['operator', 'viewer', 'producer'],
  'GET /throughput': ['operator', 'viewer'],
  'GET /tasks/{taskId}/manifest': ['operator', 'viewer', 'producer'],
  'GET /totals': ['operator', 'viewer'],
  'GET /tables': ['operator', 'viewer'],
  'GET /tables/{table}': ['operator', 'viewer'],
  'GET /tables/{table}/settings': ['operator', 'viewer'],
  'PATCH /tables/{table}/settings': ['operator'],
  'GET /scale': ['operator', 'viewer'],
  'GET /events': ['operator', 'viewer'],
  'GET /metrics': ['operator', 'viewer'],
  'GET /whoami': roles,
  'GET /audit': ['operator'],
  'GET /audit/node': ['operator'],
  'POST /tasks/{taskId}/pause': ['operator'],
  'POST /tasks/{taskId}/resume': ['operator'],
  'POST /tasks/{taskId}/cancel': ['operator'],
  'POST /tasks/{taskId}/skip-parked': ['operator'],
  'POST /tasks/{taskId}/retry': ['operator'],
  'POST /tasks/{taskId}/seal': ['operator', 'producer'],
  'POST /tasks/{taskId}/level-barrier': ['operator'],
  'POST /tasks/{taskId}/owner': ['operator'],
  'GET /tasks/{taskId}/settings': ['operator', 'producer', 'viewer'],
  'PATCH /tasks/{taskId}/settings': ['operator', 'producer'],
  'POST /subscriptions': ['operator'],
  'GET /subscriptions': ['operator', 'viewer'],
  'DELETE /subscriptions/{subscriptionId}': ['operator'],
  'POST /subscriptions/{subscriptionId}/rotate-secret': ['operator'],
  'POST /subscriptions/{subscriptionId}/enable': ['operator'],
  'GET /subscriptions/{subscriptionId}/deliveries': ['operator', 'viewer'],
  'POST /subscriptions/{subscriptionId}/deliveries/{event}/redeliver': ['operator'],
  'GET /subscriptions/{subscriptionId}/events': ['operator', 'viewer'],
  'GET /openapi.json': roles,
  'GET /livez': null,
  'GET /readyz': null,
  'GET /': null,
  'GET /docs': null,
}

describe('roles and routes', () => {
  test('each route that is served has a row in the table', async () => {
    const { routes } = await servedRoutes()
    expect(routes.toSorted()).toEqual(Object.keys(rights).toSorted())
  })

  /**
   * Over a real connection, since an event stream has no end; returns the `code` of a problem, or `admitted`.
   */
  async function asked(base: string, route: string, headers: Record<string, string>): Promise<string> {
    const [method = '', path = ''] = route.split(' ')
    const ending = new AbortController()
    const url = `${base}${path.replaceAll(/\{\w+\}/g, 'orders')}`
    const response = await fetch(url, { method, headers, signal: ending.signal })
    const isProblem = response.headers.get('content-type') === 'application/problem+json'
    const { code = '' } = isProblem ? ((await response.json()) as { code?: string }) : {}
    ending.abort()
    return /^token_(?:missing|unknown|refused)$/.test(code) ? code : 'admitted'
  }

  test('each role may use its routes and no others', async () => {
    const baton = await guarded()
    const base = `http://127.0.0.1:${await listening(baton.app)}`
    const seen: unknown[] = []
    const expected: unknown[] = []
    for (const [route, allowed] of Object.entries(rights)) {
      seen.push([route, null, await asked(base, route, {})])
      expected.push([route, null, allowed === null ? 'admitted' : 'token_missing'])
      seen.push([route, 'wrong', await asked(base, route, bearer(tokenNamed('wrong')))])
      expected.push([route, 'wrong', allowed === null ? 'admitted' : 'token_unknown'])
      for (const role of roles) {
        seen.push([route, role, await asked(base, route, bearer(tokenNamed(role)))])
        const isAllowed = allowed === null || allowed.includes(role)
        expected.push([route, role, isAllowed ? 'admitted' : 'token_refused'])
      }
    }
    expect(seen).toEqual(expected)
  })
})

describe('with tokens', () => {
  test('a request without a token is answered 401, with a challenge', async () => {
    const baton = await guarded()
    const answer = await baton.get('/pull')
    expect([answer.status, answer.body.code]).toEqual([401, 'token_missing'])
    expect(answer.headers['www-authenticate']).toBe('Bearer realm="Baton"')
  })

  test.each(['Basic dXNlcjpwYXNz', 'Bearer', 'Bearer two words', tokenNamed('operator')])(
    'the header "%s" is not a token',
    async (authorization) => {
      const baton = await guarded()
      const answer = await baton.get('/pull', { authorization })
      expect([answer.status, answer.body.code]).toEqual([401, 'token_missing'])
    },
  )

  test.each([
    tokenNamed('operator').slice(0, -1),
    `${tokenNamed('operator')}3`,
    tokenNamed('operator').toUpperCase(),
  ])('%s is refused', async (token) => {
    const baton = await guarded()
    const answer = await baton.get('/tasks', bearer(token))
    expect([answer.status, answer.body.code]).toEqual([401, 'token_unknown'])
    expect(answer.text).not.toContain(token)
  })

  test('one token may have several roles', async () => {
    const baton = await guarded()
    const headers = bearer(tokenNamed('all'))
    expect((await baton.post('/call-back', [descriptor('orders', 0, 1)], headers)).status).toBe(200)
    expect((await baton.get('/pull', headers)).body.partitions).toHaveLength(1)
  })

  test('any Host is served, and pages of other origins are still refused', async () => {
    const baton = await guarded()
    const headers = { ...bearer(tokenNamed('worker')), host: 'baton.example' }
    expect((await baton.get('/pull', headers)).status).toBe(200)
    expect((await baton.get('/pull', { ...headers, 'sec-fetch-site': 'cross-site' })).status).toBe(403)
  })
})

function linesOf(path: string): readonly string[] {
  try {
    readTokensFile(path)
  } catch (error) {
    if (error instanceof SettingsError) return error.lines
    throw error
  }
  return []
}

describe('a tokens file', () => {
  const secret = 'o-secret-3-k7Q2xZr9TbW4mLp8'
  const token = { name: 'ops', token: secret, roles: ['operator'] }

  test.each<[string, unknown, string]>([
    ['that is not JSON', '{"tokens": [o-secret-3', 'is not JSON'],
    ['without tokens', { tokens: [] }, '/tokens'],
    ['of another form', [token], 'does not have the form'],
    ['with a role that does not exist', { tokens: [{ ...token, roles: ['admin'] }] }, '/tokens/0/roles/0'],
    [
      'with a token that no header can carry',
      { tokens: [{ ...token, token: 'päss wörd' }] },
      '/tokens/0/token, which must be one or more visible ASCII characters without spaces',
    ],
    ['with a token of no roles', { tokens: [{ ...token, roles: [] }] }, '/tokens/0/roles'],
    [
      'with an entry that has no token',
      { tokens: [{ name: 'ops', roles: ['operator'] }] },
      'either token or sha256 for "ops"',
    ],
    [
      'with both forms of a token',
      { tokens: [{ ...token, sha256: 'a'.repeat(64) }] },
      'either token or sha256 for "ops"',
    ],
    [
      'with a digest of another length',
      { tokens: [{ name: 'ops', sha256: 'abc', roles: ['operator'] }] },
      '/sha256',
    ],
    [
      'with one token twice',
      { tokens: [token, { ...token, name: 'twin' }] },
      'the same token for "ops" and "twin"',
    ],
    [
      'with a token that can be guessed',
      { tokens: [{ ...token, token: 'o-secret-3' }] },
      'defines a token for "ops" that is shorter than 22 characters and can be guessed: create one with `baton token create`',
    ],
    [
      'with a long token that can be guessed',
      { tokens: [{ ...token, token: 'secretsecretsecretsecretsecret' }] },
      'fewer than 8 different characters',
    ],
    [
      'with a table that is none',
      { tokens: [{ ...token, roles: ['producer'], tables: ['orders'] }] },
      '/tokens/0/tables/0, which must be a table in the form <schema>.<table>',
    ],
    ['with no table at all', { tokens: [{ ...token, roles: ['producer'], tables: [] }] }, '/tokens/0/tables'],
    [
      'with an operator who is limited to tables',
      { tokens: [{ ...token, tables: ['results.orders'] }] },
      'limits "ops" to tables, but the roles operator and viewer apply to whole tasks',
    ],
    [
      'with a worker who is limited to tasks',
      { tokens: [{ ...token, roles: ['worker'], tasks: ['sales-'] }] },
      'the pulls of a worker cannot be limited to task prefixes',
    ],
    [
      'with a worker who is limited to more tables than a pull may choose',
      {
        tokens: [{ ...token, roles: ['worker'], tables: Array.from({ length: 51 }, (_, at) => `a.b${at}`) }],
      },
      'a pull can select at most 50',
    ],
    ['with a misspelt field', { tokens: [{ ...token, role: 'operator' }] }, '/tokens/0'],
  ])('%s is refused, without showing a token', async (_, content, said) => {
    const path = await tokensFile(content)
    const message = linesOf(path).join('\n')
    expect(message).toContain(path)
    expect(message).toContain(said)
    expect(message).not.toContain('secret')
  })

  test('with several faults is refused for each of them, at once', async () => {
    const path = await tokensFile({
      tokens: [
        { ...token, roles: ['admin'], 'o-secret-4': true },
        { name: '', sha256: 'abc', roles: [] },
        token,
        { name: 'bare', roles: ['viewer'] },
        { ...token, name: 'twin' },
      ],
    })
    const form =
      '{"tokens":[{"name","token" or "sha256","roles":[producer|worker|operator|viewer],"tasks"?:[…],"tables"?:[…],"maxWeight"?,"lowestLevel"?,"maxOpenTasks"?,"maxWaitingPartitions"?}],"groups"?:[{"group","roles":[operator|viewer],"tasks"?:[…]}]}'
    expect(linesOf(path)).toEqual(
      [
        `does not have the form ${form}: see /tokens/0, which must have no fields except name, token, sha256, roles, tasks, tables, maxWeight, lowestLevel, maxOpenTasks, maxWaitingPartitions`,
        'is invalid: see /tokens/0/roles/0, which must be one of producer, worker, operator, viewer',
        'is invalid: see /tokens/1/name, which must not have fewer than 1 characters',
        'is invalid: see /tokens/1/sha256, which must be the 64 hex digits of a SHA-256',
        'is invalid: see /tokens/1/roles, which must not have fewer than 1 items',
        'must define either token or sha256 for "bare"',
        'defines the same token for "ops" and "twin"',
      ].map((fault) => `the tokens file ${path} ${fault}`),
    )
  })

  test('that is missing is refused', () => {
    expect(() => readTokensFile('/nowhere/tokens.json')).toThrow(
      '/nowhere/tokens.json cannot be read (ENOENT)',
    )
  })

  test('of hashes that only its user can read causes no warning', async () => {
    const sha256 = createHash('sha256').update(secret).digest('hex').toUpperCase()
    const path = await tokensFile({ tokens: [{ name: 'ops', sha256, roles: ['operator'] }] })
    const { tokens, warnings } = readTokensFile(path)
    expect(warnings).toEqual([])
    expect(tokens.find(secret)).toMatchObject({ name: 'ops' })
  })

  test('with tokens in clear, or open to everyone, causes a warning', async () => {
    const path = await tokensFile({ tokens: [token, { ...token, token: tokenNamed('o'), name: 'ops' }] })
    await chmod(path, 0o644)
    expect(readTokensFile(path).warnings).toEqual([
      `the tokens file ${path} is readable by all users of the machine: run chmod 600`,
      `the tokens file ${path} contains plaintext tokens ("ops"): replace "token" with "sha256", the SHA-256 of the token in hex`,
    ])
    await chmod(path, 0o640)
    expect(readTokensFile(path).warnings).toHaveLength(1)
  })
})
