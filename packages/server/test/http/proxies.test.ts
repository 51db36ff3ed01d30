import { describe, expect, test } from 'vitest'
import { quiet } from '../../../../test/support/quiet-log.ts'
import { bearer, tokenNamed, tokensFile } from '../../../../test/support/tokens-file.ts'
import { Proxies } from '../../src/http/admission/proxies.ts'
import { parseNetwork } from '../../src/networks.ts'
import { listening, pullBytes, RawConnection } from '../support/raw-connection.ts'
import { descriptors, TestApp } from '../support/test-app.ts'

describe('the address of a client', () => {
  const proxies = new Proxies(['10.0.0.0/8', '192.168.1.7', 'fd00::/8'])
  const addressOf = (remoteAddress: string | undefined, forwarded?: string) =>
    proxies.addressOf(
      { remoteAddress } as never,
      forwarded === undefined ? {} : { 'x-forwarded-for': forwarded },
    )

  test.each([
    ['that connects directly is its own', '203.0.113.5', undefined, '203.0.113.5'],
    ['that is not a proxy is not what its header says', '203.0.113.5', '198.51.100.1', '203.0.113.5'],
    ['behind a proxy is what the proxy reports', '10.1.2.3', '198.51.100.1', '198.51.100.1'],
    ['behind a proxy that reports none is that of the proxy', '10.1.2.3', undefined, '10.1.2.3'],
    [
      'behind two proxies is what the first of them reports',
      '10.1.2.3',
      '198.51.100.1, 192.168.1.7',
      '198.51.100.1',
    ],
    ['is not what it claimed to the first proxy', '10.1.2.3', '1.1.1.1, 198.51.100.1', '198.51.100.1'],
    ['among proxies is the farthest', '10.1.2.3', '10.9.9.9, 192.168.1.7', '10.9.9.9'],
    ['that is invalid is that of the last hop', '10.1.2.3', 'unknown, 10.4.4.4', '10.4.4.4'],
    ['may come with a port', '10.1.2.3', '198.51.100.1:4711', '198.51.100.1'],
    ['of IPv6 may have brackets and a port', 'fd00::1', '[2001:db8::1]:4711', '2001:db8::1'],
    ['of IPv4 on a socket for both is IPv4', '::ffff:10.1.2.3', '198.51.100.1', '198.51.100.1'],
    ['that disconnected is null', undefined, '198.51.100.1', null],
  ])('%s', (_, remote, forwarded, expected) => {
    expect(addressOf(remote, forwarded)).toBe(expected)
  })

  test('is found quickly in a header full of addresses', () => {
    expect(addressOf('10.1.2.3', Array(5000).fill('10.0.0.1').join())).toBe('10.0.0.1')
  })
})

test.each([
  ['10.0.0.1', true],
  ['10.0.0.0/8', true],
  ['fd00::/8', true],
  ['10.0.0.0/33', false],
  ['fd00::/129', false],
  ['10.0.0/8', false],
  ['10.0.0.0/8/8', false],
  ['example.com', false],
])('whether %s is an address or network: %s', (text, expected) => {
  expect(parseNetwork(text) !== undefined).toBe(expected)
})

describe.each([
  ['past Fastify', ''],
  ['through Fastify', '?'],
])('the Host that a proxy passes on, %s', (_, query) => {
  async function pulled(trustProxy: string[], headers: Record<string, string>): Promise<number> {
    const baton = await TestApp.open({ allowedHosts: ['baton.example'], trustProxy })
    await baton.callBack(...descriptors('orders', 1))
    const client = await RawConnection.open(await listening(baton.app))
    client.send(pullBytes(headers).replace('/pull', `/pull${query}`))
    return (await client.answer()).status
  }
  const behind = { Host: 'upstream:7070', 'X-Forwarded-Host': 'baton.example' }

  test('is used if the proxy is trusted', async () => {
    expect(await pulled(['127.0.0.1'], behind)).toBe(200)
    // A page of the service itself, as the browser knows it.
    expect(await pulled(['127.0.0.1'], { ...behind, Origin: 'https://baton.example' })).toBe(200)
    expect(await pulled(['127.0.0.1'], { ...behind, Origin: 'https://other.example' })).toBe(403)
  })

  test('is ignored from other clients', async () => {
    expect(await pulled([], behind)).toBe(421)
    expect(await pulled(['10.0.0.0/8'], behind)).toBe(421)
    expect(await pulled([], { Host: 'localhost', 'X-Forwarded-Host': 'evil.example' })).toBe(200)
  })

  test('is checked against the allowed hosts', async () => {
    expect(await pulled(['127.0.0.1'], { Host: 'localhost', 'X-Forwarded-Host': 'evil.example' })).toBe(421)
  })
})

test('audit and log have the address of the client behind the proxy', async () => {
  const tokens = [{ name: 'ops', token: tokenNamed('ops'), roles: ['operator', 'producer'] }]
  const lines: object[] = []
  const log = { ...quiet, debug: (fields: object) => lines.push(fields) }
  const baton = await TestApp.open(
    { tokensFile: await tokensFile({ tokens }), trustProxy: ['127.0.0.1'], logLevel: 'debug' },
    { log },
  )
  const through = { 'x-forwarded-for': '198.51.100.1', 'x-forwarded-proto': 'https' }
  await baton.post('/call-back', descriptors('orders', 1), bearer(tokenNamed('ops')))
  await baton.post('/tasks/orders/pause', undefined, { ...bearer(tokenNamed('ops')), ...through })
  const { body } = await baton.get('/audit', bearer(tokenNamed('ops')))
  expect(body.entries).toMatchObject([{ address: '198.51.100.1', action: 'pause' }])
  expect(lines).toContainEqual(
    expect.objectContaining({ url: '/tasks/orders/pause', address: '198.51.100.1', scheme: 'https' }),
  )
})
