import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import type { Admission } from '../../src/http/admission/admission.ts'
import { Proxies } from '../../src/http/admission/proxies.ts'
import { FastPath } from '../../src/http/fast-path/fast-path.ts'
import { RequestCounts } from '../../src/http/observability/answered-requests.ts'
import type { Serve } from '../../src/http/requests/exchange.ts'
import { keyOwners } from '../../src/http/requests/preferences.ts'
import { TimeSlicer } from '../../src/http/requests/time-slicer.ts'
import { HOUR } from '../store/conformance/test-policy.ts'
import { openLimiter } from '../support/open-limiter.ts'
import { RawConnection } from '../support/raw-connection.ts'

interface Door {
  serve?: Serve
  keepAliveTimeout?: number
  headTimeoutMillis?: number
}

/** A fast path for `GET /pull` and `POST /settle`, in front of a Node server that records its requests. */
async function laneBefore({ serve = echo, keepAliveTimeout = 72_000, headTimeoutMillis = HOUR }: Door = {}) {
  const server = createServer({ keepAliveTimeout }, (request, response) => {
    request.resume()
    request.on('end', () => response.setHeader('content-length', 4).end('node'))
  })
  const handOff = { isDraining: false }
  const problemOf = () => ({ code: 'internal', detail: 'it failed' }) as const
  const requests = new RequestCounts()
  const admission: Admission = ({ headers }) =>
    headers.authorization === undefined ? undefined : { code: 'token_unknown', detail: 'no' }
  const limiter = openLimiter()
  const fastPath = new FastPath({
    handOff,
    keyOwner: keyOwners(null),
    isSecure: false,
    admissionOf: () => admission,
    limiter,
    problemOf,
    requests,
    proxies: new Proxies([]),
    logAnswer: null,
    slicer: new TimeSlicer(),
    forwarding: null,
  })
  fastPath.addRoute('GET', '', '/pull', 'pull', serve)
  fastPath.addRoute('POST', '', '/settle', 'worker', serve)
  const handedOver = new Promise<void>((resolve) => server.on('connection', () => resolve()))
  fastPath.interceptConnections(server, headTimeoutMillis)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    limiter.stop()
    fastPath.closeAll()
    server.closeAllConnections()
    server.close()
  })
  const open = () => RawConnection.open((server.address() as AddressInfo).port)
  return { fastPath, handOff, open, requests, handedOver }
}

/** Answers at once. */
const saying =
  (textOf: (body: unknown) => string): Serve =>
  async ({ answer }, body) => {
    answer(textOf(body), [], () => {})
    return { waited: false }
  }
const echo = saying((body) => JSON.stringify({ fastPath: body ?? null }))

const pull = 'GET /pull HTTP/1.1\r\nHost: a\r\n\r\n'
const settle = (body: string, more = '') =>
  `POST /settle HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n${more}Content-Length: ${body.length}\r\n\r\n${body}`

test('plain requests stay in the fast path, one after the other', async () => {
  const client = await (await laneBefore()).open()
  for (const body of ['[1]', '[2]', '[31]', '[4]']) {
    client.send(pull)
    expect((await client.answer()).text).toBe('{"fastPath":null}')
    client.send(settle(body))
    const { status, headers, text } = await client.answer()
    expect([status, text]).toEqual([200, `{"fastPath":${body}}`])
    expect(headers).toMatchObject({ connection: 'keep-alive', 'keep-alive': 'timeout=72' })
    expect(Math.abs(Date.parse(String(headers['date'])) - Date.now())).toBeLessThan(60_000)
  }
})

test.each([
  ['another path', 'GET /livez HTTP/1.1\r\nHost: a\r\n\r\n'],
  ['another method', 'POST /pull HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n'],
  ['what is refused at the door', 'GET /pull HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer b\r\n\r\n'],
  [
    'a body that comes in chunks',
    `${settle('', 'Transfer-Encoding: chunked\r\n').replace('Content-Length: 0\r\n', '')}0\r\n\r\n`,
  ],
  ['a body that is too large for it', settle(`"${'x'.repeat(300_000)}"`)],
])('%s is left to the server, and so is all that follows', async (_, request) => {
  const client = await (await laneBefore()).open()
  client.send(pull)
  expect((await client.answer()).text).toBe('{"fastPath":null}')
  client.send(request)
  expect((await client.answer()).text).toBe('node')
  client.send(pull)
  expect((await client.answer()).text).toBe('node')
})

test('a body may follow its head in pieces', async () => {
  const client = await (await laneBefore()).open()
  const request = settle('[1,2,3]')
  for (const [start, end] of [
    [0, request.length - 7],
    [request.length - 7, request.length - 2],
    [request.length - 2, request.length],
  ]) {
    client.send(request.slice(start, end))
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  expect((await client.answer()).text).toBe('{"fastPath":[1,2,3]}')
})

test('a slow body is left to the server and its timers', async () => {
  const { open, handedOver } = await laneBefore({ headTimeoutMillis: 1 })
  const client = await open()
  client.send(settle('[1,2,3]').slice(0, -2))
  await handedOver
  client.send('3]')
  expect((await client.answer()).text).toBe('node')
})

test('a truncated request is answered 400', async () => {
  const client = await (await laneBefore()).open()
  client.socket.end(settle('[1,2,3]').slice(0, -2))
  expect((await client.answer()).status).toBe(400)
})

test('pipelined requests that arrive together are left to the server', async () => {
  const client = await (await laneBefore()).open()
  client.send(pull + pull)
  expect([(await client.answer()).text, (await client.answer()).text]).toEqual(['node', 'node'])
})

test('a pipelined request waits while another is answered', async () => {
  const answers: (() => void)[] = []
  const held: Serve = ({ answer }) =>
    new Promise((resolve) => {
      answers.push(() => {
        answer(String(answers.length), [], () => {})
        resolve({ waited: false })
      })
    })
  const client = await (await laneBefore({ serve: held })).open()
  client.send(pull)
  while (answers.length < 1) await new Promise((resolve) => setTimeout(resolve, 5))
  client.send(pull)
  await new Promise((resolve) => setTimeout(resolve, 50))
  expect(answers.length).toBe(1)
  answers[0]?.()
  expect((await client.answer()).text).toBe('1')
  while (answers.length < 2) await new Promise((resolve) => setTimeout(resolve, 5))
  answers[1]?.()
  expect((await client.answer()).text).toBe('2')
})

test('an answer that is not read holds the next request back, and both arrive', async () => {
  const long = JSON.stringify('x'.repeat(3_000_000))
  const client = await (await laneBefore({ serve: saying(() => long) })).open()
  client.socket.pause()
  client.send(pull)
  await new Promise((resolve) => setTimeout(resolve, 100))
  client.send(pull)
  client.socket.resume()
  expect((await client.answer()).text.length).toBe(long.length)
  expect((await client.answer()).text.length).toBe(long.length)
})

test('a failure is answered with a problem, and the connection continues', async () => {
  const client = await (await laneBefore({ serve: () => Promise.reject(new Error('it is late')) })).open()
  for (const request of [pull, settle('[1]'), settle('[')]) {
    client.send(request)
    expect(await client.answer()).toMatchObject({ status: 500, body: { code: 'internal' } })
  }
})

test('answers are counted with status and duration, without the time of waiting pulls', async () => {
  const waited: Serve = async ({ answer }, body) => {
    if (body === 'broken') throw new Error('it is late')
    answer('[]', [], () => {})
    return { waited: body === 'waits' }
  }
  const { open, requests } = await laneBefore({ serve: waited })
  const client = await open()
  for (const request of [pull, settle('"waits"'), settle('"broken"'), settle('"x"')]) {
    client.send(request)
    await client.answer()
  }
  const seen = [...requests.routes()].map(({ method, route, statuses, seconds }) => ({
    route: `${method} ${route}`,
    statuses: Object.fromEntries(statuses),
    timed: seconds.counts.reduce((sum, count) => sum + count),
  }))
  expect(seen).toEqual([
    { route: 'GET /pull', statuses: { 200: 1 }, timed: 1 },
    { route: 'POST /settle', statuses: { 200: 2, 500: 1 }, timed: 2 },
  ])
})

test('an answer to a disconnected client is not counted', async () => {
  const lost = Promise.withResolvers<void>()
  const gone: Serve = async ({ socket, answer }) => {
    socket.destroy()
    answer('[]', [], lost.resolve)
    return { waited: false }
  }
  const { open, requests } = await laneBefore({ serve: gone })
  const client = await open()
  client.send(pull)
  await lost.promise
  await client.closed()
  expect([...requests.routes()].map(({ statuses }) => statuses.size)).toEqual([0, 0])
})

/** Long enough for a busy machine to read a request. */
const KEPT_MILLIS = 600

test('an idle connection is closed at its timeout', async () => {
  const client = await (await laneBefore({ keepAliveTimeout: KEPT_MILLIS })).open()
  client.send(pull)
  await client.answer()
  await client.closed()
})

test('a connection whose timeout is between a head and its body is kept for the body', async () => {
  const client = await (await laneBefore({ keepAliveTimeout: KEPT_MILLIS })).open()
  const request = settle('[1,2,3]')
  client.send(request.slice(0, -7))
  await pause(2 * KEPT_MILLIS)
  client.send(request.slice(-7))
  expect((await client.answer()).text).toBe('{"fastPath":[1,2,3]}')
})

test('a request that has arrived unread at the timeout is answered', async () => {
  const client = await (await laneBefore({ keepAliveTimeout: KEPT_MILLIS })).open()
  client.send(pull)
  await client.answer()
  client.send(pull)
  // The event loop is blocked: when it continues, the timer fires first.
  const end = performance.now() + 2 * KEPT_MILLIS
  while (performance.now() < end);
  expect((await client.answer()).text).toBe('{"fastPath":null}')
  await client.closed()
})

test('a connection whose answer takes longer than the timeout is closed after it', async () => {
  const late: Serve = async ({ answer }) => {
    await pause(1.5 * KEPT_MILLIS)
    answer('"late"', [], null)
    return { waited: true }
  }
  const client = await (await laneBefore({ serve: late, keepAliveTimeout: KEPT_MILLIS })).open()
  client.send(pull)
  expect((await client.answer()).text).toBe('"late"')
  await client.closed()
})

test('a node that drains closes after its answer, and idle connections at once', async () => {
  const { fastPath, handOff, open } = await laneBefore()
  const [busy, idle, fresh] = [await open(), await open(), await open()]
  for (const client of [busy, idle]) {
    client.send(pull)
    await client.answer()
  }
  handOff.isDraining = true
  busy.send(pull)
  expect((await busy.answer()).headers['connection']).toBe('close')
  await busy.closed()
  fastPath.closeIdle()
  await idle.closed()
  // Its first request may be in flight.
  fresh.send(pull)
  expect((await fresh.answer()).headers['connection']).toBe('close')
})
