import type { Socket } from 'node:net'
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { postHead } from '../../../../test/support/hostile-client.ts'
import { until } from '../../../../test/support/until.ts'
import { JsonShape } from '../../src/http/bodies/json-shape.ts'
import { TimeSlicer } from '../../src/http/requests/time-slicer.ts'
import { listening, RawConnection } from '../support/raw-connection.ts'
import { descriptors, TestApp } from '../support/test-app.ts'

const KIB = 1024

// Only `spend` moves the clock, so that a slow machine does not lengthen an iteration and with it the share.
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance'] })
})

afterEach(() => {
  vi.useRealTimers()
})

/** Takes the whole share of an iteration. */
function spend(): void {
  vi.advanceTimersByTime(1)
}

/** The number of the current event-loop iteration. */
function turnsCounted(): () => number {
  let turns = 0
  const count = () => {
    turns += 1
    counting = setImmediate(count)
  }
  let counting = setImmediate(count)
  onTestFinished(() => clearImmediate(counting))
  return () => turns
}

describe('bulk work', () => {
  const from = (remoteAddress: string) => ({ remoteAddress, destroyed: false }) as Socket

  test('takes its share of each event-loop iteration, and addresses alternate', async () => {
    const turn = turnsCounted()
    const slicer = new TimeSlicer()
    const done: { name: string; turn: number }[] = []
    const add = (name: string, socket: Socket, steps = 1) => {
      let left = steps
      slicer.add(socket, () => {
        spend()
        left -= 1
        done.push({ name, turn: turn() })
        return left > 0
      })
    }
    for (const name of ['a1', 'a2', 'a3']) add(name, from('127.0.0.2'), name === 'a2' ? 2 : 1)
    add('b1', from('127.0.0.3'))
    await until(() => done.length === 5)
    expect(done.map(({ name }) => name)).toEqual(['a1', 'a2', 'b1', 'a3', 'a2'])
    expect(new Set(done.map((each) => each.turn)).size).toBe(5)
  })

  test('of closed connections is dropped', async () => {
    const slicer = new TimeSlicer()
    const [closing, open] = [from('127.0.0.2'), from('127.0.0.2')]
    const done: string[] = []
    const add = (name: string, socket: Socket) =>
      slicer.add(socket, () => {
        spend()
        done.push(name)
        return false
      })
    add('first', closing)
    add('second', closing)
    add('third', open)
    Object.assign(closing, { destroyed: true })
    await until(() => done.includes('third'))
    expect(done).toEqual(['first', 'third'])
  })
})

test('a large body is checked in steps, over several event-loop iterations', async () => {
  const baton = await TestApp.open()
  const client = await RawConnection.open(await listening(baton.app))
  const turn = turnsCounted()
  const byTurn = new Map<number, number>()
  const { take } = JsonShape.prototype
  let bytes = 0
  const spy = vi.spyOn(JsonShape.prototype, 'take').mockImplementation(function (this: JsonShape, chunk) {
    bytes += chunk.length
    // The first bytes are checked as they arrive.
    if (bytes > 64 * KIB) {
      byTurn.set(turn(), (byTurn.get(turn()) ?? 0) + chunk.length)
      spend()
    }
    return take.call(this, chunk)
  })
  onTestFinished(() => spy.mockRestore())
  const body = JSON.stringify(descriptors('orders', 4000))
  client.send(postHead('/call-back', body.length) + body)
  expect((await client.answer()).body).toMatchObject({ accepted: 4000 })
  expect(bytes).toBe(body.length)
  // One step when a chunk arrives, and one of the iteration.
  expect(Math.max(...byTurn.values())).toBeLessThanOrEqual(16 * KIB)
})

test.each([
  ['at once', 0],
  ['in pieces', 3000],
])('long heads that arrive %s are read one by one, in event-loop iterations', async (_, firstBytes) => {
  const baton = await TestApp.open()
  const { server } = baton.app.http
  const port = await listening(baton.app)
  const turn = turnsCounted()
  const byTurn = new Map<number, number>()
  server.prependListener('request', () => {
    byTurn.set(turn(), (byTurn.get(turn()) ?? 0) + 1)
    spend()
  })
  const sockets: Socket[] = []
  server.on('connection', (socket: Socket) => sockets.push(socket))
  const clients = await Promise.all(Array.from({ length: 20 }, () => RawConnection.open(port)))
  const names = Array.from({ length: 10 }, (_, at) => `task=${`${at}-`.padEnd(500, 'x')}`)
  const head = `GET /pull?${names.join('&')} HTTP/1.1\r\nHost: localhost\r\n\r\n`
  for (const client of clients) client.send(head.slice(0, firstBytes))
  await until(() => sockets.filter(({ bytesRead }) => bytesRead === firstBytes).length === clients.length)
  for (const client of clients) client.send(head.slice(firstBytes))
  for (const client of clients) expect((await client.answer()).status).toBe(200)
  // One when it arrives, and one of the iteration.
  expect(Math.max(...byTurn.values())).toBeLessThanOrEqual(2)
})

const callBack = 'POST /call-back HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n'

test.each([
  ['a long head', `GET /pull HTTP/1.1\r\nHost: localhost\r\nX-More: ${'z'.repeat(4096)}\r\n\r\n`],
  ['a large body', `${callBack}Content-Length: 8002\r\n\r\n[${' '.repeat(8000)}]`],
])(
  'of connections that begin with %s, a bounded number waits, and others are refused',
  async (_, request) => {
    const baton = await TestApp.open()
    baton.app.http.server.prependListener('request', spend)
    let accepted = 0
    baton.app.http.server.on('connection', () => {
      accepted += 1
    })
    const port = await listening(baton.app)
    const clients = await Promise.all(Array.from({ length: 400 }, () => RawConnection.open(port)))
    await until(() => accepted === clients.length)
    for (const client of clients) client.send(request)
    const answers = await Promise.all(clients.map((client) => client.answer().catch(() => null)))
    const refused = answers.filter((answer) => answer?.status === 503)
    const closed = answers.filter((answer) => answer === null)
    expect(refused[0]?.body).toMatchObject({ code: 'overloaded', retryable: true })
    // Few of them are kept open until they have read why.
    expect(closed.length).toBeGreaterThan(0)
    expect(400 - refused.length - closed.length).toBeGreaterThanOrEqual(256)
  },
)
