import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { ServiceProcess } from '../../../../test/support/service-process.ts'
import { until } from '../../../../test/support/until.ts'
import { settingOf } from '../../src/config.ts'
import { MAX_WAITING_PULLS } from '../../src/handoff/pulls.ts'
import { batchedPull } from '../store/conformance/driver.ts'
import { measured } from '../support/hostile-bodies.ts'
import { listening, postBytes, pullBytes, RawConnection } from '../support/raw-connection.ts'
import { descriptors, TestApp } from '../support/test-app.ts'

const MAX_UNDER_WAY = settingOf('maxRequestsPerConnection').default as number
const waitingPull = pullBytes({ Prefer: 'wait=60' })

async function served() {
  const baton = await TestApp.open()
  const port = await listening(baton.app)
  const sockets: Socket[] = []
  baton.app.http.server.on('connection', (socket: Socket) => sockets.push(socket))
  return { baton, port, sockets }
}

/** The number of answers with this body that have arrived. */
function answersWith({ socket }: RawConnection, body: string): () => number {
  let text = ''
  let count = 0
  socket.on('data', (chunk: Buffer) => {
    const [first = '', ...others] = (text + chunk.toString('latin1')).split(body)
    count += others.length
    text = others.at(-1) ?? first
  })
  return () => count
}

/**
 * Other connections are answered several times: by then, everything that will be read of this one has been
 * read.
 */
async function turns(port: number): Promise<void> {
  const other = await RawConnection.open(port)
  for (let asked = 0; asked < 20; asked += 1) {
    other.send('GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n')
    expect((await other.answer()).status).toBe(200)
  }
}

describe('a connection with more requests than are served concurrently', () => {
  test('has its pulls answered without a wait, except for the last within the limit', async () => {
    const { baton, port } = await served()
    const client = await RawConnection.open(port)
    const sent = 5 * MAX_UNDER_WAY
    const empty = answersWith(client, '{"partitions":[]}')
    client.send(waitingPull.repeat(sent))
    await until(() => empty() + baton.app.handOff.waitingPulls === sent)
    await turns(port)
    const waiting = baton.app.handOff.waitingPulls
    expect(empty()).toBe(sent - waiting)
    expect(waiting).toBeLessThanOrEqual(MAX_UNDER_WAY)
    for (let answers = 0; answers < sent - waiting; answers += 1)
      expect((await client.answer()).headers['retry-after']).toBe('1')
    await baton.callBack(...descriptors('orders', sent))
    const names = new Set<string>()
    for (let answers = 0; answers < waiting; answers += 1)
      names.add((await client.answer()).body.partitions[0].partition_name)
    expect(names.size).toBe(waiting)
  })

  test('has an earlier event stream ended', async () => {
    const { baton, port } = await served()
    const client = await RawConnection.open(port)
    client.send('GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n')
    await until(() => client.socket.bytesRead > 0)
    client.send(waitingPull.repeat(MAX_UNDER_WAY + 1))
    await until(() => baton.app.handOff.waitingPulls > 0)
    client.socket.destroy()
    await until(() => baton.app.handOff.waitingPulls === 0)
  })

  test('is read to the end of a body that was sent behind them', async () => {
    const { port } = await served()
    const client = await RawConnection.open(port)
    const body = JSON.stringify(descriptors('orders', 2000))
    const pulls = MAX_UNDER_WAY + 50
    client.send(waitingPull.repeat(pulls))
    client.send(postBytes('/call-back', body))
    const handedOut: number[] = []
    for (let answers = 0; answers < pulls; answers += 1)
      handedOut.push((await client.answer()).body.partitions.length)
    expect((await client.answer()).body).toMatchObject({ accepted: 2000 })
    expect(handedOut[0]).toBe(0)
  })

  test('is answered in order if nothing has to wait, on any path', async () => {
    const { port } = await served()
    const client = await RawConnection.open(port)
    const paths = Array.from({ length: 1000 }, (_, at) => (at % 3 === 0 ? '/livez' : `/nowhere-${at}`))
    client.send(paths.map((path) => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`).join(''))
    for (const path of paths) expect((await client.answer()).status).toBe(path === '/livez' ? 200 : 404)
  })
})

describe('a disconnect with many requests in progress', () => {
  const later = 'GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n'.repeat(2000)

  test.each([
    ['more requests than are served at once', waitingPull.repeat(20 * MAX_UNDER_WAY), ''],
    ['one pull that waits, and many bytes behind it', waitingPull, later],
  ])('is noticed at once: %s', async (_, first, behind) => {
    const { baton, port, sockets } = await served()
    const client = await RawConnection.open(port)
    client.send(first)
    await until(() => baton.app.handOff.waitingPulls > 0)
    client.send(behind)
    await turns(port)
    client.socket.destroy()
    await until(() => baton.app.handOff.waitingPulls === 0)
    await until(() => sockets[0]?.destroyed === true)
  })

  test('does not add a listener per request', async () => {
    const { baton, port, sockets } = await served()
    const client = await RawConnection.open(port)
    const listenersFor = async (waiting: number) => {
      client.send(waitingPull.repeat(waiting - baton.app.handOff.waitingPulls))
      await until(() => baton.app.handOff.waitingPulls === waiting)
      return ['end', 'close'].map((event) => sockets[0]?.listenerCount(event))
    }
    const withFew = await listenersFor(2)
    expect(await listenersFor(90)).toEqual(withFew)
  })

  test('takes the service almost no time', async () => {
    const service = await ServiceProcess.started()
    const cpuSeconds = () => measured(service, 'baton_process_cpu_seconds_total{mode="user"}')
    const client = await RawConnection.open(service.port)
    const empty = answersWith(client, '{"partitions":[]}')
    client.send(waitingPull.repeat(10_000))
    await until(() => empty() > 0)
    const before = await cpuSeconds()
    client.socket.destroy()
    for (let asked = 0; asked < 10; asked += 1) expect((await fetch(`${service.url}/livez`)).status).toBe(200)
    // Processor time, which does not depend on the load of the machine.
    expect((await cpuSeconds()) - before).toBeLessThan(1)
    await until(async () => (await measured(service, 'baton_waiting_pulls')) === 0)
  })
})

test('a view starts when the answers before it are written', async () => {
  const { baton, port } = await served()
  const answers: ServerResponse[] = []
  const unwritten: number[] = []
  baton.app.http.server.prependListener('request', (_: IncomingMessage, response: ServerResponse) => {
    answers.push(response)
    const { writeHead } = response
    response.writeHead = (...args: never[]) => {
      const earlier = answers.slice(0, answers.indexOf(response))
      unwritten.push(earlier.filter(({ writableFinished }) => !writableFinished).length)
      return Reflect.apply(writeHead, response, args)
    }
  })
  const client = await RawConnection.open(port)
  client.send('GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n'.repeat(50))
  for (let seen = 0; seen < 50; seen += 1) expect((await client.answer()).status).toBe(200)
  expect(unwritten).toEqual(Array(50).fill(0))
})

test('a connection that sends ahead is closed when too many requests are queued', async () => {
  const { baton, port, sockets } = await served()
  const { promise, resolve } = Promise.withResolvers<{ tables: []; next: null }>()
  // The first view of a connection takes long, and the others wait for it.
  const views = vi.spyOn(baton.app.handOff.views, 'tables').mockReturnValue(promise)
  onTestFinished(() => {
    views.mockRestore()
  })
  const clients = await Promise.all(Array.from({ length: 60 }, () => RawConnection.open(port)))
  for (const client of clients)
    client.send('GET /tables HTTP/1.1\r\nHost: localhost\r\n\r\n'.repeat(2 * MAX_UNDER_WAY))
  const closed = () => sockets.slice(0, clients.length).filter(({ destroyed }) => destroyed).length
  await until(() => closed() > 0)
  await turns(port)
  expect(closed()).toBeLessThan(clients.length)
  for (const { socket } of clients) socket.destroy()
  // A connection that is not read notices the hang-up when it is written to.
  resolve({ tables: [], next: null })
  await until(() => closed() === clients.length)
  // Nothing is queued now.
  const later = await RawConnection.open(port)
  later.send('GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n'.repeat(2 * MAX_UNDER_WAY))
  for (let seen = 0; seen < 2 * MAX_UNDER_WAY; seen += 1) expect((await later.answer()).status).toBe(200)
})

test('a pull beyond the total of waiting pulls is answered at once', async () => {
  const { baton } = await served()
  const { handOff } = baton.app
  const request = { ...batchedPull(), waitMillis: 60_000 }
  const waiting = Array.from({ length: MAX_WAITING_PULLS }, () => handOff.pull(request))
  await until(() => handOff.waitingPulls === MAX_WAITING_PULLS)
  const { status, headers, body } = await baton.get('/pull', { prefer: 'wait=60' })
  expect([status, headers['retry-after'], body]).toEqual([200, '1', { partitions: [] }])
  handOff.drain()
  await Promise.all(waiting)
})
