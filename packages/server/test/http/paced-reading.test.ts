import { readFileSync } from 'node:fs'
import { IncomingMessage } from 'node:http'
import { Socket } from 'node:net'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { certificateFile } from '../../../../test/postgres/support/postgres-server.ts'
import { until } from '../../../../test/support/until.ts'
import { listening, postBytes, RawConnection } from '../support/raw-connection.ts'
import { descriptors, TestApp } from '../support/test-app.ts'

const tlsFiles = { tlsCert: certificateFile('right.crt'), tlsKey: certificateFile('server.key') }
const ca = readFileSync(certificateFile('ca.crt'))

const requestFor = (path: string) => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`

async function served(isSecure = false) {
  const baton = await TestApp.open(isSecure ? tlsFiles : {})
  const port = await listening(baton.app)
  const open = () => (isSecure ? RawConnection.openTls(port, { ca }) : RawConnection.open(port))
  return { baton, open, mostAtOnce: countRequests(baton) }
}

/** Returns the largest number of requests that reached the server in one iteration of the event loop. */
function countRequests({ app }: TestApp): () => number {
  let [now, most] = [0, 0]
  app.http.server.prependListener('request', () => {
    now += 1
    most = Math.max(most, now)
  })
  const nextIteration = () => {
    now = 0
    iteration = setImmediate(nextIteration)
  }
  let iteration = setImmediate(nextIteration)
  onTestFinished(() => clearImmediate(iteration))
  return () => most
}

/** The number of answers that have arrived. */
function answersTo({ socket }: RawConnection): () => number {
  const START = 'HTTP/1.1 '
  let [text, count] = ['', 0]
  socket.on('data', (chunk: Buffer) => {
    const parts = (text + chunk.toString('latin1')).split(START)
    count += parts.length - 1
    text = parts.at(-1)?.slice(1 - START.length) ?? ''
  })
  return () => count
}

describe.each([
  ['without TLS', false],
  ['with TLS', true],
])('pipelined requests %s', (_, isSecure) => {
  test.each(['/nothing-here', '/livez', '/tasks', '/peer/handOff'])(
    'for %s: an iteration of the event loop reads a few of a connection, and all are answered',
    async (path) => {
      const { open, mostAtOnce } = await served(isSecure)
      const client = await open()
      const answers = answersTo(client)
      client.send(requestFor(path).repeat(200))
      await until(() => answers() === 200)
      expect(mostAtOnce()).toBeLessThanOrEqual(20)
    },
  )

  test('with bodies: an iteration reads a few of a connection, and all are answered', async () => {
    const { open, mostAtOnce } = await served(isSecure)
    const client = await open()
    const answers = answersTo(client)
    const body = JSON.stringify(descriptors('orders', 1))
    client.send(postBytes('/call-back', body).repeat(200))
    await until(() => answers() === 200)
    expect(mostAtOnce()).toBeLessThanOrEqual(4)
  })

  test('of many connections: an iteration reads a bounded number, and all are answered', async () => {
    const { open, mostAtOnce } = await served(isSecure)
    const clients = await Promise.all(Array.from({ length: 10 }, open))
    const answers = clients.map(answersTo)
    const timers = vi.spyOn(globalThis, 'setTimeout')
    onTestFinished(() => timers.mockRestore())
    for (const client of clients) client.send(requestFor('/livez').repeat(150))
    await until(() => answers.every((count) => count() === 150))
    expect(mostAtOnce()).toBeLessThanOrEqual(60)
    // There is a pause before each piece but the first ones, and a piece has at most seven of these requests.
    const pauses = timers.mock.calls.filter(([, millis]) => millis === 1)
    expect(pauses.length).toBeGreaterThanOrEqual(200)
  })

  test('of a client that then closes its side: all are answered, and the connection ends', async () => {
    const { open } = await served(isSecure)
    const client = await open()
    client.send(requestFor('/nothing-here').repeat(7) + postBytes('/settle', '[{"leaseId":').repeat(2))
    client.socket.end()
    for (let at = 0; at < 7; at += 1) expect((await client.answer()).status).toBe(404)
    for (let at = 0; at < 2; at += 1) expect((await client.answer()).body.code).toBe('body_not_json')
    await expect(client.answer()).rejects.toThrow('the connection ended after ""')
  })
})

test('chunks of one byte: an iteration of the event loop reads a part of a body', async () => {
  const { open } = await served()
  const push = vi.spyOn(IncomingMessage.prototype, 'push')
  const unshift = vi.spyOn(Socket.prototype, 'unshift')
  onTestFinished(() => {
    push.mockRestore()
    unshift.mockRestore()
  })
  let [before, most] = [0, 0]
  const nextIteration = () => {
    most = Math.max(most, push.mock.calls.length - before)
    before = push.mock.calls.length
    iteration = setImmediate(nextIteration)
  }
  let iteration = setImmediate(nextIteration)
  onTestFinished(() => clearImmediate(iteration))
  const client = await open()
  const head = 'POST /call-back HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n'
  client.send(`${head}Transfer-Encoding: chunked\r\n\r\n${'1\r\n \r\n'.repeat(40_000)}`)
  await until(() => push.mock.calls.length === 40_000)
  expect(most).toBeLessThanOrEqual(100)
  // What waits is not copied together with what arrives meanwhile.
  const kept = unshift.mock.calls.map(([bytes]) => bytes.length)
  expect(Math.max(...kept)).toBeLessThanOrEqual(64 * 1024)
})

test('a request is read between the pipelined requests of others', async () => {
  const { baton, open } = await served()
  const flooding = await open()
  const answers = answersTo(flooding)
  const other = await open()
  const reached = new Promise((resolve) => baton.app.http.server.once('request', resolve))
  flooding.send(requestFor('/livez').repeat(1500))
  await reached
  other.send(requestFor('/livez'))
  expect((await other.answer()).status).toBe(200)
  expect(answers()).toBeLessThan(1500)
})

test.each([
  ['a length', (body: string) => `Content-Length: ${body.length}\r\n\r\n${body}`],
  [
    'chunks',
    (body: string) => `Transfer-Encoding: chunked\r\n\r\n${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`,
  ],
])(
  'a body with %s among pipelined requests is read whole, and what follows it in turns',
  async (_, bodyOf) => {
    const { open, mostAtOnce } = await served()
    const client = await open()
    const body = JSON.stringify(descriptors('orders', 500))
    const head = 'POST /call-back HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n'
    client.send(
      requestFor('/livez').repeat(20) + head + bodyOf(body) + requestFor('/nothing-here').repeat(300),
    )
    for (let at = 0; at < 20; at += 1) expect((await client.answer()).status).toBe(200)
    expect((await client.answer()).body).toMatchObject({ accepted: 500 })
    for (let at = 0; at < 7; at += 1) expect((await client.answer()).status).toBe(404)
    expect(mostAtOnce()).toBeLessThanOrEqual(150)
  },
)
