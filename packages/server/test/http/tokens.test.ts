import { createHash } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { testFolder } from '../../../../test/support/test-folder.ts'
import { readTokensFile } from '../../src/http/admission/tokens-file.ts'
import { SettingsError } from '../../src/settings-error.ts'
import { descriptor, TestApp } from '../support/test-app.ts'

const tokenFor = {
  producer: 'p-secret-1',
  worker: 'w-secret-2',
  operator: 'o-secret-3',
  viewer: 'v-secret-4',
}
type Role = keyof typeof tokenFor

async function tokensFile(content: unknown): Promise<string> {
  const path = join(await testFolder(), 'tokens.json')
  await writeFile(path, typeof content === 'string' ? content : JSON.stringify(content))
  return path
}

async function guarded(): Promise<TestApp> {
  const sha256 = createHash('sha256').update(tokenFor.viewer).digest('hex')
  const tokens = [
    { name: 'compute', token: tokenFor.producer, roles: ['producer'] },
    { name: 'loaders', token: tokenFor.worker, roles: ['worker'] },
    { name: 'ops', token: tokenFor.operator, roles: ['operator'] },
    { name: 'screen', sha256, roles: ['viewer'] },
    { name: 'all', token: 'all-in-one', roles: ['producer', 'worker'] },
  ]
  return TestApp.open({ tokensFile: await tokensFile({ tokens }) })
}

const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

const routes: [string, string, readonly Role[]][] = [
  ['POST', '/call-back', ['producer']],
  ['GET', '/pull', ['worker']],
  ['POST', '/settle', ['worker']],
  ['POST', '/renew', ['worker']],
  ['POST', '/tasks/orders/pause', ['operator']],
  ['POST', '/tasks/orders/level-barrier', ['operator']],
  ['GET', '/tasks', ['operator', 'viewer']],
  ['GET', '/tasks/orders', ['operator', 'viewer']],
  ['GET', '/totals', ['operator', 'viewer']],
  ['GET', '/tasks/orders/partitions', ['operator', 'viewer']],
  ['GET', '/tasks/orders/manifest', ['operator', 'viewer']],
  ['GET', '/instances', ['operator', 'viewer']],
  ['GET', '/metrics', ['operator', 'viewer']],
  ['GET', '/test/instance-status', ['producer', 'worker', 'operator', 'viewer']],
  ['GET', '/openapi.json', ['producer', 'worker', 'operator', 'viewer']],
]

describe('with tokens', () => {
  test('each role may do its part and no more', async () => {
    const baton = await guarded()
    const seen: unknown[] = []
    const expected: unknown[] = []
    for (const [method, path, allowed] of routes) {
      for (const role of Object.keys(tokenFor) as Role[]) {
        const { status, body } = await baton.ask(method, path, { headers: bearer(tokenFor[role]) })
        seen.push([method, path, role, body?.code === 'token_refused' ? status : 'admitted'])
        expected.push([method, path, role, allowed.includes(role) ? 'admitted' : 403])
      }
    }
    expect(seen).toEqual(expected)
  })

  test('a request without one is answered 401, with a challenge', async () => {
    const baton = await guarded()
    for (const [method, path] of routes) {
      const answer = await baton.ask(method, path)
      expect([path, answer.status, answer.body.code]).toEqual([path, 401, 'token_missing'])
      expect(answer.headers['www-authenticate']).toBe('Bearer realm="Baton"')
    }
  })

  test.each(['Basic dXNlcjpwYXNz', 'Bearer', 'Bearer two words', 'o-secret-3'])(
    'the header "%s" is no token',
    async (authorization) => {
      const baton = await guarded()
      expect((await baton.get('/pull', { authorization })).status).toBe(401)
    },
  )

  test.each(['o-secret-4', 'o-secret-', 'o-secret-33', 'O-SECRET-3'])('%s is refused', async (token) => {
    const baton = await guarded()
    const answer = await baton.get('/tasks', bearer(token))
    expect([answer.status, answer.body.code]).toEqual([401, 'token_unknown'])
    expect(answer.text).not.toContain(token)
  })

  test('one token may have several roles', async () => {
    const baton = await guarded()
    const headers = bearer('all-in-one')
    expect((await baton.post('/call-back', [descriptor('orders', 0, 1)], headers)).status).toBe(200)
    expect((await baton.get('/pull', headers)).body.partitions).toHaveLength(1)
  })

  test('health stays open', async () => {
    const baton = await guarded()
    expect((await baton.get('/livez')).status).toBe(200)
    expect((await baton.get('/readyz')).status).toBe(200)
  })

  test('any Host is served, and pages of other sites are refused all the same', async () => {
    const baton = await guarded()
    const headers = { ...bearer(tokenFor.worker), host: 'baton.example' }
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
  const token = { name: 'ops', token: 'o-secret-3', roles: ['operator'] }

  test.each<[string, unknown, string]>([
    ['that is not JSON', '{"tokens": [o-secret-3', 'is not JSON'],
    ['without tokens', { tokens: [] }, '/tokens'],
    ['of another form', [token], 'is not of the form'],
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
      '"ops" either a token',
    ],
    [
      'with both forms of a token',
      { tokens: [{ ...token, sha256: 'a'.repeat(64) }] },
      '"ops" either a token',
    ],
    [
      'with a digest of another length',
      { tokens: [{ name: 'ops', sha256: 'abc', roles: ['operator'] }] },
      '/sha256',
    ],
    [
      'with one token twice',
      { tokens: [token, { ...token, name: 'twin' }] },
      '"ops" and "twin" the same token',
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
    const form = '{"tokens":[{"name","token" or "sha256","roles":[producer|worker|operator|viewer]}]}'
    expect(linesOf(path)).toEqual(
      [
        `is not of the form ${form}: see /tokens/0, which must not have other fields than name, token, sha256, roles`,
        'departs from its form: see /tokens/0/roles/0, which must be one of producer, worker, operator, viewer',
        'departs from its form: see /tokens/1/name, which must not have fewer than 1 characters',
        'departs from its form: see /tokens/1/sha256, which must be the 64 hex digits of a SHA-256',
        'departs from its form: see /tokens/1/roles, which must not have fewer than 1 items',
        'must give "bare" either a token or its sha256',
        'gives "ops" and "twin" the same token',
      ].map((fault) => `the tokens file ${path} ${fault}`),
    )
  })

  test('that is missing is refused', () => {
    expect(() => readTokensFile('/nowhere/tokens.json')).toThrow(
      '/nowhere/tokens.json cannot be read (ENOENT)',
    )
  })
})
