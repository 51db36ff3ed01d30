import { afterEach, beforeEach, expect, test } from 'vitest'
import { AddressRule } from '../../src/webhooks/address-rule.ts'
import { Poster } from '../../src/webhooks/posting.ts'
import { Receiver } from './support/receiver.ts'

const MILLIS = 300
let poster: Poster
beforeEach(() => {
  poster = new Poster(new AddressRule(['127.0.0.0/8']), MILLIS)
})
afterEach(() => poster.close())

const post = (url: string) =>
  poster.post(url, { 'content-type': 'application/json' }, '{}', new AbortController().signal)

test('a receiver that never answers times out', async () => {
  const receiver = await Receiver.start(() => null)
  expect(await post(receiver.url)).toEqual({
    isDelivered: false,
    isGone: false,
    status: null,
    error: `no answer within ${MILLIS / 1000} seconds`,
    retryAfterMillis: null,
  })
})

test('a receiver whose answer never ends has answered, and is not read forever', async () => {
  const receiver = await Receiver.start((_, response) => {
    response.writeHead(200)
    response.write('and so on')
    return null
  })
  expect(await post(receiver.url)).toMatchObject({ isDelivered: true, status: 200 })
  receiver.behave = (_, response) => {
    response.writeHead(200)
    response.write('x'.repeat(1_000_000))
    return null
  }
  expect(await post(receiver.url)).toMatchObject({ isDelivered: true, status: 200 })
})

const failures = [
  [
    'HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n',
    'closed without an answer',
  ],
  ['HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\n', 'no answer within'],
  ['HTTP/1.1 200 OK\r\ncontent-le', 'no answer within'],
] as const

test.each(failures)('a receiver that sends only %j has not answered', async (bytes, error) => {
  const receiver = await Receiver.start((_, __, request) => {
    request.socket.write(bytes)
    return null
  })
  expect(await post(receiver.url)).toMatchObject({
    isDelivered: false,
    status: null,
    error: expect.stringContaining(error),
  })
})

test.each(['HTTP/1.1 103 Early Hints\r\n\r\n', 'HTTP/1.1 200 OK\r\ncontent-le'])(
  'a receiver that closes the connection after %j has not answered',
  async (bytes) => {
    const receiver = await Receiver.start((_, __, request) => {
      request.socket.end(bytes)
      return null
    })
    expect(await post(receiver.url)).toMatchObject({ isDelivered: false, status: null })
  },
)

test.each([
  'HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf',
  'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n9\r\nhalf',
])('a receiver that closes the connection after %j has answered', async (bytes) => {
  const receiver = await Receiver.start((_, __, request) => {
    request.socket.end(bytes)
    return null
  })
  expect(await post(receiver.url)).toMatchObject({ isDelivered: true, status: 200 })
})

test('a redirect is not followed, and delivers nothing', async () => {
  const receiver = await Receiver.start((_, response) => {
    response.writeHead(307, { location: '/elsewhere' }).end()
    return null
  })
  expect(await post(receiver.url)).toMatchObject({
    isDelivered: false,
    status: 307,
    error: 'redirects are not followed',
  })
  expect(receiver.received).toHaveLength(1)
})

test('Retry-After counts with 429 and 503 only, and not for longer than a day', async () => {
  const receiver = await Receiver.start()
  const answer = async (status: number, seconds: string) => {
    receiver.behave = (_, response) => void response.writeHead(status, { 'retry-after': seconds }).end()
    return (await post(receiver.url)).retryAfterMillis
  }
  expect(await answer(429, '7')).toBe(7000)
  expect(await answer(503, '9999999')).toBe(86_400_000)
  expect(await answer(500, '7')).toBeNull()
  expect(await answer(429, 'soon')).toBeNull()
  const inAnHour = new Date(Date.now() + 3_600_000).toUTCString()
  expect(await answer(503, inAnHour)).toBeGreaterThan(3_000_000)
})

test('names that do not exist, and addresses that are not allowed, are reported', async () => {
  expect((await post('http://no-such-host.invalid/')).error).toContain('no-such-host.invalid')
  expect((await post('http://10.0.0.1/')).error).toContain('10.0.0.1 is not on the public internet')
})
