import { describe, expect, test } from 'vitest'
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

describe('views', () => {
  test.each(['/tasks', '/instances', '/test/instance-status', '/openapi.json'])(
    '%s may be looked at by following a link',
    async (path) => {
      const answer = await service().get(path, { 'sec-fetch-site': 'none', 'sec-fetch-mode': 'navigate' })
      expect(answer.status).toBe(200)
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
  test.each(names)('%s is served', async (host) => {
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
    'is looked at for %s too',
    async (path) => {
      expect((await service().get(path, { host: 'evil.example' })).status).toBe(421)
    },
  )

  test.each(['/livez', '/readyz'])('does not matter for %s', async (path) => {
    expect((await service().get(path, { host: '10.1.2.3:7070' })).status).toBe(200)
  })
})
