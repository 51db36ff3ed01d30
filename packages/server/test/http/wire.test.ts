import { describe, expect, test } from 'vitest'
import { until } from '../../../../test/support/until.ts'
import { listening, pullBytes, RawConnection } from '../support/raw-connection.ts'
import { descriptor, TestApp } from '../support/test-app.ts'

async function connected(changed = {}, options = {}) {
  const baton = await TestApp.open(changed, options)
  const client = await RawConnection.open(await listening(baton.app))
  return { baton, client }
}

const callBackHead = (length: number, more = '') =>
  'POST /call-back HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n' +
  `Content-Length: ${length}\r\n${more}\r\n`

describe('pipelined requests', () => {
  test('are answered in their order', async () => {
    const { baton, client } = await connected()
    await baton.callBack(descriptor('orders', 0, 1), descriptor('orders', 0, 2))
    client.send(`${pullBytes()}GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n${pullBytes()}`)
    expect((await client.answer()).body.partitions).toHaveLength(1)
    expect((await client.answer()).body).toEqual({ status: 'alive' })
    expect((await client.answer()).body.partitions).toHaveLength(1)
  })
})

describe('HEAD', () => {
  test('is answered without a body', async () => {
    const { client } = await connected()
    client.send(`HEAD /pull HTTP/1.1\r\nHost: localhost\r\n\r\n${pullBytes()}`)
    const answer = await client.answer()
    expect([answer.status, answer.headers['content-length']]).toEqual([200, undefined])
    expect((await client.answer()).body).toEqual({ partitions: [] })
  })
})

describe('a GET with a body', () => {
  test('is answered, and the connection continues', async () => {
    const { client } = await connected()
    client.send(
      `GET /pull HTTP/1.1\r\nHost: localhost\r\nContent-Length: 11\r\n\r\n{"not":"us"}`.slice(0, -1),
    )
    expect((await client.answer()).status).toBe(200)
    client.send(pullBytes())
    expect((await client.answer()).status).toBe(200)
  })
})

describe('a target without a path', () => {
  test.each(['*', '*pull', '*livez'])('GET %s is answered 404', async (target) => {
    const { client } = await connected()
    client.send(`GET ${target} HTTP/1.1\r\nHost: localhost\r\n\r\n`)
    const answer = await client.answer()
    expect([answer.status, answer.body.code]).toEqual([404, 'route_unknown'])
  })
})

describe('what is not HTTP', () => {
  test.each([
    ['noise', 'complete nonsense\r\n\r\n'],
    ['a request line in pieces', 'GET\r\n\r\n'],
    ['a header without a name', 'GET /pull HTTP/1.1\r\nHost: localhost\r\n: x\r\n\r\n'],
    ['a control character in a header', 'GET /pull HTTP/1.1\r\nHost: localhost\r\nX-A: \u0001\r\n\r\n'],
    [
      'two lengths',
      'POST /settle HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n',
    ],
    [
      'a length in addition to chunks',
      'POST /settle HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n',
    ],
    [
      'a chunk without a size',
      'POST /settle HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n',
    ],
  ])('%s is answered 400 and closed', async (_, bytes) => {
    const { client } = await connected()
    client.send(bytes)
    const answer = await client.answer()
    expect([answer.status, answer.body.code]).toEqual([400, 'bad_request'])
    await client.closed()
  })

  test('headers without end are answered 431', async () => {
    const { client } = await connected()
    client.send(`GET /pull HTTP/1.1\r\nHost: localhost\r\nX-Long: ${'x'.repeat(60_000)}\r\n\r\n`)
    const answer = await client.answer()
    expect([answer.status, answer.body.code]).toEqual([431, 'headers_too_large'])
  })

  test('a request that does not arrive is answered 408', async () => {
    const { client } = await connected({}, { timeouts: { requestMillis: 100, checkMillis: 20 } })
    client.send('POST /settle HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n')
    const answer = await client.answer()
    expect([answer.status, answer.body.code]).toEqual([408, 'request_timeout'])
  })

  test('a waiting pull does not count as a request that does not arrive', async () => {
    const { baton, client } = await connected({}, { timeouts: { requestMillis: 100, checkMillis: 20 } })
    client.send(pullBytes({ Prefer: 'wait=1' }))
    expect((await client.answer()).body).toEqual({ partitions: [] })
    expect(baton.app.handOff.waitingPulls).toBe(0)
  })
})

describe('invalid HTTP after a request', () => {
  const body = JSON.stringify([descriptor('orders', 0, 1)])
  const callBack = callBackHead(body.length) + body

  test.each([
    ['noise', 'complete nonsense\r\n\r\n', 'bad_request'],
    ['noise in several pieces', 'complete nonsense\r\n\r\nand more of it\r\n\r\n', 'bad_request'],
    ['headers without end', `GET /pull HTTP/1.1\r\nX-Long: ${'x'.repeat(60_000)}`, 'headers_too_large'],
    [
      'a body in chunks that are none',
      `${callBackHead(0).replace('Content-Length: 0', 'Transfer-Encoding: chunked')}zz\r\n`,
      'bad_request',
    ],
  ])('%s does not change the answer to that request', async (_, noise, code) => {
    const { baton, client } = await connected()
    client.send(callBack + noise)
    expect((await client.answer()).body).toEqual({ taskId: 'orders', accepted: 1, duplicates: 0 })
    expect((await client.answer()).body.code).toBe(code)
    await client.closed()
    expect(await baton.pull()).toHaveLength(1)
  })

  test('does not prevent the answers to earlier requests, in their order', async () => {
    const { client } = await connected()
    client.send(`${callBack}${callBack}${pullBytes()}nonsense\r\n\r\n`)
    expect((await client.answer()).body.accepted).toBe(1)
    expect((await client.answer()).body.duplicates).toBe(1)
    expect((await client.answer()).status).toBe(200)
    expect((await client.answer()).body.code).toBe('bad_request')
    await client.closed()
  })

  test('that arrives while a pull waits is answered after it', async () => {
    const { baton, client } = await connected()
    client.send(pullBytes({ Prefer: 'wait=60' }))
    await until(() => baton.app.handOff.waitingPulls === 1)
    client.send('nonsense\r\n\r\n')
    client.send('nonsense\r\n\r\n')
    await baton.callBack(descriptor('orders', 0, 1))
    expect((await client.answer()).body.partitions).toHaveLength(1)
    expect((await client.answer()).body.code).toBe('bad_request')
    await client.closed()
  })
})

describe('the Host header', () => {
  test.each(['1.1', '2.0'])('is required in HTTP/%s', async (version) => {
    const { client } = await connected()
    client.send(`GET /pull HTTP/${version}\r\n\r\n`)
    const answer = await client.answer()
    expect([answer.status, answer.body.code]).toEqual([400, 'bad_request'])
  })

  test('must not be repeated', async () => {
    const { client } = await connected()
    client.send('GET /pull HTTP/1.1\r\nHost: localhost\r\nhost: elsewhere\r\n\r\n')
    const answer = await client.answer()
    expect([answer.status, answer.body.code]).toEqual([400, 'bad_request'])
    expect(answer.body.detail).toBe('the Host header must not be repeated')
  })

  test('may be missing in HTTP/1.0', async () => {
    const { client } = await connected()
    client.send('GET /pull HTTP/1.0\r\n\r\n')
    expect((await client.answer()).status).toBe(200)
    await client.closed()
  })
})

describe('a body that is too large', () => {
  const limit = { bodyLimitMb: 0.01 }

  test('is refused by its announced length, and the client can read the answer after sending all of it', async () => {
    const { client } = await connected(limit)
    client.send(callBackHead(5_000_000))
    client.send('['.repeat(5_000_000))
    const answer = await client.answer()
    expect([answer.status, answer.body.code]).toEqual([413, 'body_too_large'])
    expect(answer.body.detail).toContain('larger than 0.01 MiB')
    expect(answer.body.detail).toContain('--body-limit-mb')
    client.send(pullBytes())
    expect((await client.answer()).status).toBe(200)
  })

  test('is refused with an answer that the client can read on a connection that closes, too', async () => {
    const { client } = await connected(limit)
    client.socket.pause()
    const sent = Promise.withResolvers<unknown>()
    client.socket.write(
      callBackHead(20_000_000, 'Connection: close\r\n') + '['.repeat(20_000_000),
      sent.resolve,
    )
    expect(await sent.promise).toBeFalsy()
    client.socket.resume()
    const answer = await client.answer()
    expect([answer.status, answer.body.code]).toEqual([413, 'body_too_large'])
    await client.closed()
  })

  test('that goes on and on is not read to its end', async () => {
    const { baton, client } = await connected(limit)
    const gone = Promise.withResolvers<number>()
    baton.app.http.server.once('request', ({ socket }) =>
      socket.once('close', () => gone.resolve(socket.bytesRead)),
    )
    client.send(callBackHead(2 ** 40, 'Connection: close\r\n'))
    const piece = Buffer.alloc(2 ** 20, '[')
    const send = () => client.socket.destroyed || client.socket.write(piece, send)
    send()
    expect(await gone.promise).toBeLessThan(80 * 2 ** 20)
  })

  test('is refused as it arrives in chunks', async () => {
    const { client } = await connected(limit)
    client.send(
      'POST /call-back HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n',
    )
    for (let chunk = 0; chunk < 20; chunk += 1) client.send(`1000\r\n${'['.repeat(4096)}\r\n`)
    const answer = await client.answer()
    expect([answer.status, answer.body.code]).toEqual([413, 'body_too_large'])
  })

  test('is answered with the limit also where that is not a setting', async () => {
    const { client } = await connected(limit)
    client.send(callBackHead(9_000_000).replace('/call-back', '/settle') + '['.repeat(9_000_000))
    const answer = await client.answer()
    expect([answer.status, answer.body.detail]).toEqual([
      413,
      'the body is larger than 8 MiB, the limit of this route',
    ])
  })

  test('is refused before it is sent when the client sends Expect', async () => {
    const { client } = await connected(limit)
    client.send(callBackHead(50_000_000, 'Expect: 100-continue\r\n'))
    const answer = await client.answer()
    expect([answer.status, answer.body.code]).toEqual([413, 'body_too_large'])
  })

  test('within the limit is answered with 100 Continue', async () => {
    const { client } = await connected()
    const body = JSON.stringify([descriptor('orders', 0, 1)])
    client.send(callBackHead(body.length, 'Expect: 100-continue\r\n'))
    expect((await client.answer()).status).toBe(100)
    client.send(body)
    expect((await client.answer()).body.accepted).toBe(1)
  })

  test('with another expectation is read', async () => {
    const { client } = await connected()
    const body = JSON.stringify([descriptor('orders', 0, 1)])
    client.send(callBackHead(body.length, 'Expect: miracles\r\n') + body)
    expect((await client.answer()).body.accepted).toBe(1)
  })
})

describe('a body that is refused', () => {
  test('does not cost the client its connection', async () => {
    const { client } = await connected()
    client.send(`${callBackHead(3)}[1,`)
    expect((await client.answer()).status).toBe(400)
    client.send(pullBytes())
    expect((await client.answer()).status).toBe(200)
  })
})
