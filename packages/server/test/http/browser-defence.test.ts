import { describe, expect, test } from 'vitest'
import { bearer, tokenNamed, tokensFile } from '../../../../test/support/tokens-file.ts'
import { TestApp } from '../support/test-app.ts'

const service = TestApp.shared({ allowedHosts: ['baton.internal', 'edge.example:8443'] })

const changing: [string, string][] = [
  ['GET', '/pull'],
  ['HEAD', '/pull'],
  ['POST', '/call-back'],
  ['POST', '/settle'],
  ['POST', '/renew'],
  ['POST', '/tasks/orders/pause'],
  ['POST', '/tasks/orders/retry'],
]

const refused: [string, Record<string, string>][] = [
  ['a page of another site', { 'sec-fetch-site': 'cross-site' }],
  ['a page of a sister site', { 'sec-fetch-site': 'same-site' }],
  ['a link that was followed', { 'sec-fetch-site': 'none', 'sec-fetch-mode': 'navigate' }],
  ['a prefetch', { 'sec-purpose': 'prefetch' }],
  ['a prerendered page', { 'sec-purpose': 'prefetch;prerender' }],
  ['an old prefetch', { purpose: 'prefetch' }],
  ['a foreign origin', { origin: 'https://evil.example' }],
  ['another port of this machine', { origin: 'http://localhost:3000' }],
  ['an origin that is hidden', { origin: 'null' }],
  ['a page of another site, by its address', { referer: 'http://evil.example/page' }],
  ['a page on another port of this machine', { host: 'localhost:7070', referer: 'http://localhost:3000/' }],
  ['a page without an address', { referer: 'about:blank' }],
]

const passing: [string, Record<string, string>][] = [
  ['a program', {}],
  ['the own page', { 'sec-fetch-site': 'same-origin', 'sec-fetch-mode': 'cors' }],
  ['a request that the user started', { 'sec-fetch-site': 'none', 'sec-fetch-mode': 'cors' }],
  ['the own origin', { host: 'localhost:7070', origin: 'http://localhost:7070' }],
  [
    'the own origin behind a proxy that ended TLS',
    { host: 'localhost:7070', origin: 'https://LOCALHOST:7070' },
  ],
  ['an allowed origin behind a proxy that changed the Host', { origin: 'https://baton.internal' }],
  ['an allowed origin with its port', { origin: 'https://edge.example:8443' }],
  ['the own page, by its address', { host: 'localhost:7070', referer: 'http://localhost:7070/?task=a' }],
]

describe.each(changing)('%s %s', (method, path) => {
  test.each(refused)('refuses %s', async (_, headers) => {
    const answer = await service().app.http.inject({ method: method as 'GET', url: path, headers })
    expect(answer.statusCode).toBe(403)
    if (method !== 'HEAD') expect(answer.json().code).toBe('cross_site_refused')
  })

  test.each(passing)('lets %s pass', async (_, headers) => {
    const answer = await service().ask(method, path, { headers })
    expect(answer.status).not.toBe(403)
  })
})

test('every route that changes something refuses a page of another site', async () => {
  const { paths } = (await service().get('/openapi.json')).body as {
    paths: Record<string, Record<string, unknown>>
  }
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => [method.toUpperCase(), path.replaceAll(/\{\w+\}/g, 'x')] as const),
  )
  const changes = operations.filter(([method]) => method !== 'GET')
  expect(changes.length).toBeGreaterThan(20)
  for (const [method, path] of changes) {
    const { status, body } = await service().ask(method, path, {
      headers: { referer: 'http://evil.example/page' },
    })
    expect([method, path, status, body.code]).toEqual([method, path, 403, 'cross_site_refused'])
  }
})

const firefoxAgent = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0'
const imageAccept = 'image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8'

/** Over plain HTTP, and for a host name that is not loopback, browsers send no Sec-Fetch headers. */
describe.each(changing)('%s %s under the name of an allowed host', (method, path) => {
  const named = (headers: Record<string, string>) => ({ host: 'baton.internal:7070', ...headers })

  test.each<[string, Record<string, string>]>([
    ['a page of a name that begins alike', { referer: 'http://baton.internal.evil.example/' }],
    ['an image', { accept: imageAccept }],
    ['an image of old browsers', { accept: 'image/png,image/*;q=0.8,*/*;q=0.5' }],
    ['a document', { accept: 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8' }],
    ['a style sheet', { accept: 'text/css,*/*;q=0.1' }],
    ['an image of the own page', { accept: imageAccept, referer: 'http://baton.internal:7070/' }],
    ['a script of a page that hides itself', { accept: '*/*', 'user-agent': firefoxAgent }],
    ['a browser that hides itself', { accept: 'application/json', 'user-agent': firefoxAgent }],
  ])('refuses %s', async (_, headers) => {
    const answer = await service().app.http.inject({
      method: method as 'GET',
      url: path,
      headers: named(headers),
    })
    expect(answer.statusCode).toBe(403)
    if (method !== 'HEAD') expect(answer.json().code).toBe('cross_site_refused')
  })

  test.each<[string, Record<string, string>]>([
    ['a program', {}],
    ['curl', { accept: '*/*', 'user-agent': 'curl/8.5.0' }],
    ['the client', { accept: 'application/json', 'user-agent': 'node' }],
    [
      'Java, which asks for images first',
      { accept: 'text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2', 'user-agent': 'Java/17.0.2' },
    ],
    [
      'PowerShell, which begins like a browser',
      { 'user-agent': 'Mozilla/5.0 (Windows NT; Windows NT 10.0; en-US) WindowsPowerShell/5.1.19041.1' },
    ],
    ['the own page', { accept: '*/*', 'user-agent': firefoxAgent, origin: 'http://baton.internal:7070' }],
    [
      'the own page, which says its address',
      { 'user-agent': firefoxAgent, referer: 'http://baton.internal:7070/?task=a' },
    ],
    [
      'the own page behind a proxy that changed the Host',
      { 'user-agent': firefoxAgent, referer: 'https://edge.example:8443/' },
    ],
    ['the own page over TLS', { 'user-agent': firefoxAgent, 'sec-fetch-site': 'same-origin' }],
  ])('lets %s pass', async (_, headers) => {
    expect((await service().ask(method, path, { headers: named(headers) })).status).not.toBe(403)
  })

  test('of loopback relies on the headers that browsers send there', async () => {
    const headers = { host: 'localhost:7070', accept: imageAccept, 'user-agent': firefoxAgent }
    expect((await service().ask(method, path, { headers })).status).not.toBe(403)
  })
})

test('with tokens, which no foreign page knows, a browser is admitted', async () => {
  const tokens = [{ name: 'loaders', token: tokenNamed('w'), roles: ['worker'] }]
  const baton = await TestApp.open({ tokensFile: await tokensFile({ tokens }) })
  const headers = { host: 'baton.internal', accept: imageAccept, ...bearer(tokenNamed('w')) }
  expect((await baton.get('/pull', headers)).status).toBe(200)
})

describe('views', () => {
  test.each(['/tasks', '/instances', '/test/instance-status', '/openapi.json'])(
    '%s can be opened by a link',
    async (path) => {
      const answer = await service().get(path, { 'sec-fetch-site': 'none', 'sec-fetch-mode': 'navigate' })
      expect(answer.status).toBe(200)
      const document = { host: 'baton.internal', accept: 'text/html', 'user-agent': firefoxAgent }
      expect((await service().get(path, document)).status).toBe(200)
    },
  )
})

describe('the Host header', () => {
  const names = [
    'localhost',
    'LocalHost:7070',
    'baton.localhost:80',
    '127.0.0.1',
    '127.8.9.254:7070',
    '[::1]:7070',
    'baton.internal',
    'BATON.internal:9999',
    'edge.example:8443',
  ]
  test.each(names)('%s is accepted', async (host) => {
    expect((await service().get('/pull', { host })).status).toBe(200)
  })

  const foreign = [
    'evil.example',
    'localhost.evil.example',
    '127.0.0.1.evil.example',
    '127.0.0.256',
    '128.0.0.1',
    'edge.example',
    'edge.example:80',
    '[::2]',
    'notlocalhost',
  ]
  test.each(foreign)('%s is answered 421', async (host) => {
    const answer = await service().get('/pull', { host })
    expect([answer.status, answer.body.code]).toEqual([421, 'host_refused'])
  })

  test.each(['/tasks', '/instances', '/test/instance-status', '/openapi.json', '/nowhere'])(
    'is checked for %s too',
    async (path) => {
      expect((await service().get(path, { host: 'evil.example' })).status).toBe(421)
    },
  )

  test.each(['/livez', '/readyz'])('does not matter for %s', async (path) => {
    expect((await service().get(path, { host: '10.1.2.3:7070' })).status).toBe(200)
  })
})
