import type { Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { dial, readUntil, statusOf } from '../../../../test/support/hostile-client.ts'
import { ServiceProcess } from '../../../../test/support/service-process.ts'
import { until } from '../../../../test/support/until.ts'
import { pullBytes } from '../support/raw-connection.ts'
import { descriptors } from '../support/test-app.ts'

const json = { 'content-type': 'application/json' }
const livez = 'GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n'

const open = (count: number, port: number, address?: string): Promise<Socket[]> =>
  Promise.all(Array.from({ length: count }, () => dial(port, address)))

/** Connections that the service has not closed. */
const alive = (sockets: readonly Socket[]) => sockets.filter(({ destroyed }) => !destroyed)

async function isAlive(socket: Socket): Promise<boolean> {
  socket.write(livez)
  return (await statusOf(socket)) === 200
}

async function scraped(socket: Socket): Promise<string> {
  socket.write('GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n')
  return readUntil(socket, () => false)
}

async function reached(service: ServiceProcess, bound: string): Promise<number> {
  const text = await scraped(await dial(service.port, '127.0.0.9'))
  return Number(new RegExp(`bounds_met_total\\{bound="${bound}"\\} (\\d+)`).exec(text)?.[1])
}

const logged = (service: ServiceProcess, bound: string) =>
  until(() => service.logLines.some((line) => line['bound'] === bound))

describe('connections beyond the limit', () => {
  test('of one address are refused, and others are accepted', async () => {
    const service = await ServiceProcess.started([
      '--max-connections',
      '40',
      '--max-connections-per-address',
      '20',
    ])
    const held = await open(20, service.port, '127.0.0.2')
    for (const socket of held) expect(await isAlive(socket)).toBe(true)
    const refused = await dial(service.port, '127.0.0.2')
    refused.write(livez)
    const answer = await readUntil(refused, () => false)
    expect(answer).toContain('HTTP/1.1 503')
    expect(answer.toLowerCase()).toContain('retry-after: 1')
    expect(answer).toContain('"code":"overloaded"')
    expect(answer.toLowerCase()).toContain('x-content-type-options: nosniff')
    expect(await isAlive(await dial(service.port, '127.0.0.3'))).toBe(true)
    expect(await reached(service, 'address-connections')).toBe(1)
    await logged(service, 'address-connections')
  })

  test('in total close the oldest of the address that has most, and a probe is accepted', async () => {
    const service = await ServiceProcess.started([
      '--max-connections',
      '20',
      '--max-connections-per-address',
      '20',
    ])
    const held: Socket[] = []
    // One after the other: of concurrent connections, any may be accepted first.
    for (let count = 0; count < 20; count += 1) {
      const socket = await dial(service.port, '127.0.0.2')
      expect(await isAlive(socket)).toBe(true)
      held.push(socket)
    }
    expect(await isAlive(await dial(service.port, '127.0.0.3'))).toBe(true)
    await until(() => alive(held).length === 19)
    expect(held[0]?.destroyed).toBe(true)
    const refused = await dial(service.port, '127.0.0.2')
    expect(await statusOf(refused)).toBe(503)
    await logged(service, 'connections')
  })

  test('of file handles are refused with a log line, and the store continues', async () => {
    const service = await ServiceProcess.withOpenFiles(200)
    const flood = await open(400, service.port, '127.0.0.2')
    await logged(service, 'address-connections')
    const more = await open(400, service.port, '127.0.0.4')
    const honest = await dial(service.port, '127.0.0.3')
    await logged(service, 'file-handles')
    const body = JSON.stringify(descriptors('orders', 10))
    const head = `POST /call-back HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`
    honest.write(head + body)
    expect(await statusOf(honest)).toBe(200)
    honest.write(pullBytes({ Host: 'localhost' }))
    expect(await statusOf(honest)).toBe(200)
    for (const socket of [...flood, ...more]) socket.destroy()
    await until(async () => isAlive(await dial(service.port, '127.0.0.2')))
  })
})

describe('answers that are not read', () => {
  /** Requests more than the system's buffers hold, and reads nothing. */
  async function unread(service: ServiceProcess): Promise<Socket> {
    const socket = await dial(service.port, '127.0.0.2')
    socket.pause()
    socket.write('GET /tasks/large/manifest HTTP/1.1\r\nHost: localhost\r\n\r\n'.repeat(8))
    return socket
  }

  async function withLargeTask(args: readonly string[]): Promise<ServiceProcess> {
    const service = await ServiceProcess.started(args)
    const wide = descriptors('large', 15_000, { computeTableName: `results.${'o'.repeat(900)}` })
    const body = JSON.stringify(wide)
    expect((await fetch(`${service.url}/call-back`, { method: 'POST', headers: json, body })).status).toBe(
      200,
    )
    return service
  }

  test('are dropped after a timeout', async () => {
    const service = await withLargeTask(['--answer-seconds', '1'])
    const socket = await unread(service)
    await logged(service, 'answer-time')
    expect((await fetch(`${service.url}/livez`)).status).toBe(200)
    socket.destroy()
  })

  test('are dropped when there are too many', async () => {
    const service = await withLargeTask(['--max-unsent-mb', '0.01'])
    const socket = await unread(service)
    await logged(service, 'unsent-bytes')
    expect((await fetch(`${service.url}/livez`)).status).toBe(200)
    socket.destroy()
  })
})

describe('waiting pulls', () => {
  test('beyond those of one caller are answered at once, and others wait', async () => {
    const service = await ServiceProcess.started(['--max-waiting-pulls-per-caller', '5'])
    const waiting = await open(5, service.port, '127.0.0.2')
    const waitingPull = pullBytes({ Host: 'localhost', Prefer: 'wait=60' })
    for (const socket of waiting) socket.write(waitingPull)
    const number = async () =>
      Number(/^baton_waiting_pulls (\d+)$/m.exec(await (await fetch(`${service.url}/metrics`)).text())?.[1])
    await until(async () => (await number()) === 5)
    const sixth = await dial(service.port, '127.0.0.2')
    sixth.write(waitingPull)
    const answer = await readUntil(sixth, (text) => text.includes('{"partitions":[]}'))
    expect(answer).toContain('HTTP/1.1 200')
    expect(answer.toLowerCase()).toContain('retry-after: 1')
    const other = await dial(service.port, '127.0.0.3')
    other.write(waitingPull)
    await until(async () => (await number()) === 6)
    await logged(service, 'caller-waiting-pulls')
  })

  test('with long filters keep a bounded number of bytes, and others wait', async () => {
    const service = await ServiceProcess.started([])
    const filter = (at: number) =>
      Array.from({ length: 50 }, (_, of) => `task=${`${at}-${of}-`.padEnd(500, 'x')}`)
    const query = (at: number) => filter(at).join('&')
    const most = Math.floor((4 * 2 ** 20) / query(0).length)
    const sockets = await open(most + 60, service.port, '127.0.0.2')
    for (const [at, socket] of sockets.entries())
      socket.write(`GET /pull?${query(at)} HTTP/1.1\r\nHost: localhost\r\nPrefer: wait=60\r\n\r\n`)
    await until(async () => (await reached(service, 'caller-waiting-pulls')) >= 60)
    const number = async () =>
      Number(/^baton_waiting_pulls (\d+)$/m.exec(await (await fetch(`${service.url}/metrics`)).text())?.[1])
    await until(async () => (await number()) === most)
    const other = await dial(service.port, '127.0.0.3')
    other.write('GET /pull?task=a HTTP/1.1\r\nHost: localhost\r\nPrefer: wait=60\r\n\r\n')
    await until(async () => (await number()) === most + 1)
    expect(await reached(service, 'caller-waiting-pulls')).toBe(60)
  })
})

describe('a rate limit', () => {
  test('is enforced with 429 and a delay, on both paths', async () => {
    const service = await ServiceProcess.started(['--max-requests-per-second', '1'])
    const refused = async (request: string) => {
      const socket = await dial(service.port, '127.0.0.2')
      while (true) {
        socket.write(request)
        const text = await readUntil(socket, (seen) => /\r\n\r\n.*\}$/s.test(seen))
        if (text.startsWith('HTTP/1.1 429')) return text
        expect(text).toContain('HTTP/1.1 200')
      }
    }
    for (const request of [
      pullBytes({ Host: 'localhost' }),
      'GET /tasks HTTP/1.1\r\nHost: localhost\r\n\r\n',
    ]) {
      const answer = await refused(request)
      expect(answer.toLowerCase()).toContain('retry-after: 1')
      expect(answer).toContain('"code":"rate_limited"')
    }
    expect(await isAlive(await dial(service.port, '127.0.0.2'))).toBe(true)
    await logged(service, 'rate')
  })
})

describe('an overloaded node', () => {
  test('refuses call-backs before all else, and probes never', async () => {
    const service = await ServiceProcess.started(['--overload-seconds', '0.05'])
    const producer = await dial(service.port, '127.0.0.2')
    const prober = await dial(service.port, '127.0.0.3')
    const body = JSON.stringify(descriptors('orders', 1))
    const head = `POST /call-back HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`
    const statuses: number[] = []
    const probes: number[] = []
    let isStopped = false
    // Most of the time the process gets no processor time, so its event loop is late at each check.
    const stopping = (async () => {
      while (!statuses.includes(503)) {
        service.signal('SIGSTOP')
        isStopped = true
        await pause(150)
        service.signal('SIGCONT')
        isStopped = false
        await pause(3)
      }
    })()
    const ask = async (socket: Socket, request: string, seen: number[]) => {
      while (!statuses.includes(503)) {
        socket.write(request)
        seen.push((await statusOf(socket)) ?? 0)
      }
    }
    await Promise.all([stopping, ask(producer, head + body, statuses), ask(prober, livez, probes)])
    if (isStopped) service.signal('SIGCONT')
    expect(new Set(probes)).toEqual(new Set([200]))
    await logged(service, 'overload')
    await until(async () => {
      producer.write(head + body)
      return (await statusOf(producer)) === 200
    })
  })
})
