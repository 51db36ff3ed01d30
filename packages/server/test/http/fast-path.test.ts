import { describe, expect, test } from 'vitest'
import { quiet } from '../../../../test/support/quiet-log.ts'
import { listening, RawConnection } from '../support/raw-connection.ts'
import { type Answer, TestApp } from '../support/test-app.ts'

const unknownLease = '1-1-aaaaaaaaaaaaaaaa'

async function connected(options = {}) {
  const baton = await TestApp.open({}, options)
  const client = await RawConnection.open(await listening(baton.app))
  return { baton, client }
}

function bytes(
  method: string,
  path: string,
  headers: Readonly<Record<string, string>>,
  body?: string | Buffer,
) {
  const length = body === undefined ? {} : { 'Content-Length': String(Buffer.byteLength(body)) }
  const lines = Object.entries({ Host: 'localhost', ...length, ...headers })
  const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')
  return Buffer.concat([Buffer.from(`${method} ${path} HTTP/1.1\r\n${head}\r\n`), Buffer.from(body ?? '')])
}

function settleBytes(body: unknown, headers: Readonly<Record<string, string>> = {}, path = '/settle') {
  return bytes('POST', path, { 'Content-Type': 'application/json', ...headers }, JSON.stringify(body))
}

/** All that a client reads, except that a keep-alive header may be absent. */
function comparable({ status, headers, text }: Answer) {
  const { date: _date, 'keep-alive': _keepAlive, connection, ...others } = headers
  return { status, headers: others, closes: connection === 'close', text }
}

describe('the fast path answers like Fastify', () => {
  const json = { 'Content-Type': 'application/json' }
  const done = JSON.stringify([{ leaseId: unknownLease, outcome: 'done' }])
  test.each<[string, string, string, Record<string, string>, (string | Buffer)?]>([
    ['an empty pull', 'GET', '/pull', {}],
    ['preferences', 'GET', '/pull', { Prefer: 'batch=3, records=7' }],
    ['a name that is too long', 'GET', '/pull', { 'X-Instance-Id': 'x'.repeat(300) }],
    ['an invalid key', 'GET', '/pull', { 'Idempotency-Key': 'a b' }],
    ['a foreign host', 'GET', '/pull', { Host: 'example.org' }],
    ['a page of another site', 'GET', '/pull', { 'Sec-Fetch-Site': 'cross-site' }],
    ['a connection to be closed', 'GET', '/pull', { Connection: 'close' }],
    [
      'a connection to be closed, in the header of old proxies',
      'GET',
      '/pull',
      { 'Proxy-Connection': 'close' },
    ],
    ['a settlement', 'POST', '/settle', json, done],
    ['a settlement that also pulls', 'POST', '/settle', { ...json, Prefer: 'batch=2' }, done],
    ['a settlement with an invalid key', 'POST', '/settle', { ...json, 'Idempotency-Key': 'a b' }, done],
    ['a reason that is not ASCII', 'POST', '/settle', json, done.replace('}', ',"reason":"zu müde"}')],
    ['a lease id that is not ASCII', 'POST', '/settle', json, '[{"leaseId":"é","outcome":"done"}]'],
    ['a broken contract', 'POST', '/settle', json, '[{"leaseId":7,"outcome":"finished"}]'],
    ['no array', 'POST', '/settle', json, 'null'],
    ['an empty body', 'POST', '/settle', json, ''],
    ['no body', 'POST', '/settle', json],
    ['broken JSON', 'POST', '/settle', json, done.slice(0, -1)],
    ['broken UTF-8', 'POST', '/settle', json, Buffer.from([0x22, 0xff, 0x22])],
    ['another charset', 'POST', '/settle', { 'Content-Type': 'application/json; charset=utf-16' }, done],
    ['another type', 'POST', '/settle', { 'Content-Type': 'text/plain' }, done],
    ['an encoding', 'POST', '/settle', { ...json, 'Content-Encoding': 'gzip' }, done],
    ['a page of another origin', 'POST', '/settle', { ...json, Origin: 'http://example.org' }, done],
  ])('to %s', async (_, method, path, headers, body) => {
    const { baton, client } = await connected()
    client.send(bytes(method, path, headers, body))
    const express = comparable(await client.answer())
    // A query, even if it is ignored, is not plain.
    const other = await RawConnection.open((baton.app.http.server.address() as { port: number }).port)
    other.send(bytes(method, `${path}?`, headers, body))
    expect(express).toEqual(comparable(await other.answer()))
  })

  test.each(['GET /pull', 'POST /call-back', 'POST /renew'])(
    'by refusing %s from two senders',
    async (what) => {
      const { client } = await connected()
      client.send(`${what} HTTP/1.1\r\nHost: localhost\r\nX-Instance-Id: a\r\nX-Instance-Id: b\r\n\r\n`)
      const { status, body } = await client.answer()
      expect([status, body.code, body.detail]).toEqual([
        422,
        'parameter_invalid',
        'X-Instance-Id must not be repeated',
      ])
    },
  )

  test('by taking a name with a comma as one sender', async () => {
    const { client } = await connected()
    client.send(bytes('GET', '/pull?', { 'X-Instance-Id': 'a, b' }))
    expect((await client.answer()).status).toBe(200)
  })

  test.each([
    ['/pull', (path: string) => bytes('GET', path, {})],
    ['/settle', (path: string) => settleBytes([{ leaseId: unknownLease, outcome: 'done' }], {}, path)],
  ])('to %s on a store that cannot commit', async (path, request) => {
    const { baton, client } = await connected()
    await baton.app.store.close()
    client.send(request(path))
    const express = comparable(await client.answer())
    expect([express.status, express.headers['retry-after']]).toEqual([503, '1'])
    client.send(request(`${path}?`))
    expect(express).toEqual(comparable(await client.answer()))
  })

  test('to a request that fails unexpectedly', async () => {
    const logged: object[] = []
    const log = { ...quiet, error: (fields: object) => logged.push(fields) }
    const { baton, client } = await connected({ log })
    baton.app.handOff.pull = () => Promise.reject(new Error('the password is hunter2'))
    client.send(bytes('GET', '/pull', {}))
    const { status, text, body } = await client.answer()
    expect([status, body.code, text.includes('hunter2')]).toEqual([500, 'internal', false])
    expect(logged).toMatchObject([{ instance: body.instance, method: 'GET', url: '/pull' }])
  })

  test('by closing the connection after each answer of a draining node', async () => {
    const { baton, client } = await connected()
    baton.app.handOff.drain()
    client.send(bytes('POST', '/settle', { 'Content-Type': 'application/json' }, '[]'))
    expect((await client.answer()).headers['connection']).toBe('close')
    await client.closed()
  })
})
