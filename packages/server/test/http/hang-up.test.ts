import type { Socket } from 'node:net'
import type { PullAnswer } from '@baton/protocol'
import { describe, expect, test } from 'vitest'
import { ServiceProcess } from '../../../../test/support/service-process.ts'
import { until } from '../../../../test/support/until.ts'
import type { HandOff } from '../../src/handoff/hand-off.ts'
import { listening, postBytes, pullBytes, RawConnection } from '../support/raw-connection.ts'
import { descriptor, leaseId, TestApp } from '../support/test-app.ts'

/** Holds results of the hand-off, so that a test decides whether the disconnect or the answer comes first. */
class Gate {
  #open: () => void = () => {}
  readonly #opened = new Promise<void>((resolve) => {
    this.#open = resolve
  })
  reached = 0

  open(): void {
    this.#open()
  }

  /** The first `held` calls of a verb wait at the gate with their result. */
  static before(
    handOff: HandOff,
    verb: 'pull' | 'settle' | 'callBack' | 'tasks',
    held = Number.POSITIVE_INFINITY,
  ): Gate {
    const gate = new Gate()
    const verbs = verb === 'tasks' ? handOff.views : handOff
    const original = Reflect.get(verbs, verb).bind(verbs) as (...args: unknown[]) => Promise<unknown>
    let calls = 0
    Object.assign(verbs, {
      [verb]: async (...args: unknown[]) => {
        calls += 1
        const isHeld = calls <= held
        const result = await original(...args)
        gate.reached += 1
        if (isHeld) await gate.#opened
        return result
      },
    })
    return gate
  }
}

async function served(changed = {}) {
  const baton = await TestApp.open(changed)
  const port = await listening(baton.app)
  const sockets = new Set<Socket>()
  baton.app.http.server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    const ended = () => sockets.delete(socket)
    socket.once('end', ended).once('close', ended)
  })
  /** Connections whose client has not half-closed. */
  return { baton, port, connections: () => sockets.size }
}

type Served = Awaited<ReturnType<typeof served>>

interface Unanswered {
  readonly bytes?: string
  readonly verb?: 'pull' | 'settle'
  /** The number of requests in the bytes. */
  readonly requests?: number
  readonly hangUp?: (socket: Socket) => void
}

/** A client that disconnects when its answer is decided, just before the node sends it. */
async function hangUpUnanswered(
  { baton, port, connections }: Served,
  {
    bytes = pullBytes(),
    verb = 'pull',
    requests = 1,
    hangUp = (socket) => socket.destroy(),
  }: Unanswered = {},
): Promise<RawConnection> {
  const gate = Gate.before(baton.app.handOff, verb, 1)
  const client = await RawConnection.open(port)
  client.send(bytes)
  await until(() => gate.reached === requests)
  hangUp(client.socket)
  await until(() => connections() === 0)
  gate.open()
  return client
}

describe('a client that disconnects before the first byte of its answer', () => {
  test('has its pull undone', async () => {
    const service = await served()
    const { baton } = service
    await baton.callBack(descriptor('orders', 0, 1))
    await hangUpUnanswered(service)
    const [partition] = await baton.pull({ prefer: 'wait=60' })
    expect(partition).toMatchObject({ partition_name: 'orders-0-1', lease: { attempt: 1 } })
    expect((await baton.get('/tasks/orders')).body.attemptsWasted).toBe(0)
    await baton.expectSound()
  })

  test('counts as disconnected if it only half-closed', async () => {
    const service = await served()
    const { baton } = service
    await baton.callBack(descriptor('orders', 0, 1))
    const client = await hangUpUnanswered(service, { hangUp: (socket) => socket.end() })
    expect(await baton.pull({ prefer: 'wait=60' })).toHaveLength(1)
    await client.closed()
  })

  test('keeps its lease if it sent a key, and gets it again', async () => {
    const service = await served()
    const { baton } = service
    await baton.callBack(descriptor('orders', 0, 1))
    await hangUpUnanswered(service, { bytes: pullBytes({ 'Idempotency-Key': 'k1' }) })
    expect(await baton.pull()).toEqual([])
    expect(await baton.pull({ 'idempotency-key': 'k1' })).toMatchObject([{ partition_name: 'orders-0-1' }])
  })

  test('has all its pipelined pulls undone, also those that wait behind another answer', async () => {
    const service = await served()
    const { baton } = service
    await baton.callBack(descriptor('orders', 0, 1), descriptor('orders', 0, 2), descriptor('orders', 0, 3))
    await hangUpUnanswered(service, { bytes: pullBytes().repeat(3), requests: 3 })
    const leases: unknown[] = []
    while (leases.length < 3) leases.push(...(await baton.pull({ prefer: 'wait=60' })))
    expect(leases).toMatchObject(Array(3).fill({ lease: { attempt: 1 } }))
    await baton.expectSound()
  })

  test('keeps its settlement, and has the pull in the same request undone', async () => {
    const service = await served()
    const { baton } = service
    await baton.callBack(descriptor('orders', 0, 1), descriptor('orders', 0, 2))
    const body = JSON.stringify([{ leaseId: leaseId((await baton.pull())[0]), outcome: 'done' }])
    const bytes = postBytes('/settle', body, { Prefer: 'batch=1' })
    await hangUpUnanswered(service, { verb: 'settle', bytes })
    expect(await baton.pull({ prefer: 'wait=60' })).toMatchObject([{ partition_name: 'orders-0-2' }])
    expect((await baton.get('/tasks/orders')).body.partitions).toMatchObject({ done: 1, leased: 1 })
  })

  test('keeps its partition in at-most-once delivery', async () => {
    const service = await served({ delivery: 'at-most-once' })
    const { baton } = service
    await baton.callBack(descriptor('orders', 0, 1))
    await hangUpUnanswered(service)
    expect(await baton.pull()).toEqual([])
    expect((await baton.get('/tasks/orders')).body.partitions.done).toBe(1)
  })
})

describe('clients that disconnect while the node is frozen', () => {
  test('get no partitions when it continues', async () => {
    const service = await ServiceProcess.started()
    const descriptors = [1, 2, 3, 4, 5].map((index) => descriptor('orders', 0, index))
    const calledBack = await fetch(`${service.url}/call-back`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(descriptors),
    })
    expect(calledBack.status).toBe(200)
    service.signal('SIGSTOP')
    // The kernel accepts connections and buffers data while the process is frozen.
    for (const _ of descriptors) {
      const client = await RawConnection.open(service.port)
      await new Promise<void>((resolve) => client.socket.end(pullBytes(), resolve))
      client.socket.destroy()
    }
    service.signal('SIGCONT')
    const metrics = async () => (await fetch(`${service.url}/metrics`)).text()
    await until(async () => /^baton_undone_leases_total 5$/m.test(await metrics()))
    const pulled = await fetch(`${service.url}/pull`, { headers: { prefer: 'batch=10' } })
    expect(((await pulled.json()) as PullAnswer).partitions).toHaveLength(5)
  })
})

describe('a client that disconnects while it waits', () => {
  test('no longer waits, and the next partition goes to another', async () => {
    const { baton, port } = await served()
    const client = await RawConnection.open(port)
    client.send(pullBytes({ Prefer: 'wait=60' }))
    await until(() => baton.app.handOff.waitingPulls === 1)
    client.socket.destroy()
    await until(() => baton.app.handOff.waitingPulls === 0)
    await baton.callBack(descriptor('orders', 0, 1))
    expect(await baton.pull()).toHaveLength(1)
  })

  test('leaves nothing behind, however many requests it had pipelined', async () => {
    const { baton, port } = await served()
    const client = await RawConnection.open(port)
    client.send(pullBytes({ Prefer: 'wait=60' }).repeat(20))
    await until(() => baton.app.handOff.waitingPulls === 20)
    client.socket.destroy()
    await until(() => baton.app.handOff.waitingPulls === 0)
  })
})

describe('a client that disconnects after its answer', () => {
  test('keeps its lease', async () => {
    const { baton, port, connections } = await served()
    await baton.callBack(descriptor('orders', 0, 1))
    const client = await RawConnection.open(port)
    client.send(pullBytes())
    const { body } = await client.answer()
    client.socket.destroy()
    await until(() => connections() === 0)
    expect(await baton.pull()).toEqual([])
    const settled = await baton.post('/settle', [{ leaseId: leaseId(body.partitions[0]), outcome: 'done' }])
    expect(settled.body.settled).toHaveLength(1)
  })
})

describe('a client that half-closes and continues reading', () => {
  const posted = (path: string, body: unknown) => postBytes(path, JSON.stringify(body))

  test.each([
    ['callBack', posted('/call-back', [descriptor('orders', 0, 1)]), { accepted: 1 }],
    ['settle', posted('/settle', [{ leaseId: 'unheard-of', outcome: 'done' }]), { settled: [] }],
    ['tasks', 'GET /tasks HTTP/1.0\r\n\r\n', { tasks: [] }],
  ] as const)('is answered if no lease can be lost, however long it takes: %s', async (verb, bytes, body) => {
    const { baton, port, connections } = await served()
    const gate = Gate.before(baton.app.handOff, verb)
    const client = await RawConnection.open(port)
    client.socket.end(bytes)
    await until(() => gate.reached === 1 && connections() === 0)
    gate.open()
    expect(await client.answer()).toMatchObject({ status: 200, body })
    await client.closed()
  })

  test('gets the answers to all its pipelined requests', async () => {
    const { baton, port, connections } = await served()
    const gate = Gate.before(baton.app.handOff, 'tasks')
    const client = await RawConnection.open(port)
    client.socket.end('GET /tasks HTTP/1.1\r\nHost: localhost\r\n\r\n'.repeat(3))
    // A view starts when the answers before it are written.
    await until(() => gate.reached === 1 && connections() === 0)
    gate.open()
    for (let answers = 0; answers < 3; answers += 1) expect((await client.answer()).status).toBe(200)
    await client.closed()
  })

  test('does not wait for work, since it may be gone', async () => {
    const { baton, port } = await served()
    const client = await RawConnection.open(port)
    client.send(pullBytes({ Prefer: 'wait=60' }))
    await until(() => baton.app.handOff.waitingPulls === 1)
    client.socket.end()
    await until(() => baton.app.handOff.waitingPulls === 0)
    await client.closed()
  })

  test('gets no event stream', async () => {
    const { baton, port } = await served()
    const client = await RawConnection.open(port)
    client.send('GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n')
    await until(() => baton.app.handOff.changeStream.watchers === 1)
    client.socket.end()
    await until(() => baton.app.handOff.changeStream.watchers === 0)
    await client.closed()
  })
})
