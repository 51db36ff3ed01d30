import type { Socket } from 'node:net'
import { gzipSync } from 'node:zlib'
import { BatonClient } from '@baton/client'
import { describe, expect, test } from 'vitest'
import { freePort } from '../../../../bench/harness/clean-up.ts'
import { bearer, tokenNamed, tokensFile } from '../../../../test/support/tokens-file.ts'
import { until } from '../../../../test/support/until.ts'
import { EventStream } from '../support/event-stream.ts'
import { postBytes, pullBytes, RawConnection } from '../support/raw-connection.ts'
import { Scrape } from '../support/scrape.ts'
import { descriptors } from '../support/test-app.ts'
import { databases, holdUp, startNodes, TestNode } from './support/nodes.ts'

const on = databases()

const metricsOf = async (node: TestNode, headers: Record<string, string> = {}) =>
  new Scrape((await node.get('/metrics', headers)).body as string)

describe('a follower', () => {
  test('answers as the leader would', async () => {
    const [leader, follower] = await startNodes(await on.create(), {}, {})
    const called = await follower.post('/call-back', descriptors('orders', 3))
    expect(called).toMatchObject({ status: 200, body: { taskId: 'orders', accepted: 3 } })
    const { body } = await follower.get('/pull', { prefer: 'batch=2', 'x-instance-id': 'w' })
    expect(body.partitions).toHaveLength(2)
    const [first, second] = body.partitions.map(({ lease }: { lease: { id: string } }) => lease.id)
    expect((await follower.post('/renew', [second])).body.renewed).toMatchObject([{ leaseId: second }])
    const done = [{ leaseId: first, outcome: 'done' }]
    const settled = await follower.post('/settle', done, { prefer: 'batch=1' })
    expect(settled.body).toMatchObject({ settled: [first], partitions: [{ partition_name: 'orders-0-2' }] })
    expect(settled.headers.get('preference-applied')).toBe('batch=1')
    expect((await follower.post('/tasks/orders/pause', {})).status).toBe(200)
    for (const node of [leader, follower])
      expect((await node.get('/tasks/orders')).body).toMatchObject({ state: 'paused' })
    expect((await follower.post('/settle', [{}])).body).toMatchObject({ code: 'contract_violation' })
    expect((await follower.ask('HEAD', '/pull', {})).status).toBe(200)
  })

  test('forwards a compressed body, and a large one', async () => {
    const [, follower] = await startNodes(await on.create(), {}, {})
    const body = JSON.stringify(descriptors('orders', 5000))
    const plain = { 'content-type': 'application/json' }
    const zipped = await follower.ask(
      'POST',
      '/call-back',
      { ...plain, 'content-encoding': 'gzip' },
      gzipSync(body),
    )
    expect(zipped).toMatchObject({ status: 200, body: { accepted: 5000 } })
    const again = await follower.ask('POST', '/call-back', plain, body)
    expect(again).toMatchObject({ status: 200, body: { duplicates: 5000 } })
  })

  test('describes itself, serves its own probes and files, and counts what it forwards', async () => {
    const [leader, follower] = await startNodes(await on.create(), {}, {})
    await follower.pull()
    await follower.pull()
    expect((await follower.get('/test/instance-status')).body).toMatchObject({ instanceId: 'node-1' })
    const named = await follower.get('/test/instance-status?instanceId=node-0')
    expect(named.body).toMatchObject({ instanceId: 'node-0', status: 'up' })
    for (const path of ['/livez', '/readyz', '/openapi.json', '/'])
      expect((await follower.get(path)).status, path).toBe(200)
    const [led, followed] = [await metricsOf(leader), await metricsOf(follower)]
    expect(followed.value('baton_forwarded_requests_total')).toBe(4)
    expect(led.value('baton_forwarded_requests_total')).toBe(0)
    const pulls = 'baton_requests_total{method="GET",route="/pull",status="200"}'
    expect([led.value(pulls), followed.value(pulls)]).toEqual([2, undefined])
    expect([led.value('baton_leader'), followed.value('baton_leader')]).toEqual([1, 0])
  })

  test('refuses by its own token file and limits before it forwards', async () => {
    const tokens = await tokensFile({
      tokens: [{ name: 'fleet', token: tokenNamed('fleet'), roles: ['worker', 'producer', 'viewer'] }],
    })
    const limited = { tokensFile: tokens, bodyLimitMb: 0.01 }
    const [leader, follower] = await startNodes(await on.create(), {}, limited)
    expect((await follower.get('/pull')).status).toBe(401)
    const many = await follower.post('/call-back', descriptors('orders', 500), bearer(tokenNamed('fleet')))
    expect(many.status).toBe(413)
    expect((await follower.get('/nowhere')).status).toBe(404)
    const routes = Object.keys((await metricsOf(leader)).by('baton_requests_total'))
    expect(routes.filter((route) => /call-back|pull|none/.test(route))).toEqual([])
  })
})

describe('the leader', () => {
  test('checks the token of a forwarded request itself', async () => {
    const file = (word: string) =>
      tokensFile({ tokens: [{ name: word, token: tokenNamed(word), roles: ['worker'] }] })
    const [one, other] = [await file('one'), await file('other')]
    const [, follower] = await startNodes(await on.create(), { tokensFile: one }, { tokensFile: other })
    expect((await follower.get('/pull', bearer(tokenNamed('other')))).status).toBe(401)
    expect((await follower.get('/pull', bearer(tokenNamed('one')))).status).toBe(401)
  })

  test('believes the address and the host that the follower found, and no header of the client', async () => {
    const tokens = await tokensFile({
      tokens: [{ name: 'op', token: tokenNamed('op'), roles: ['operator', 'producer'] }],
    })
    const proxied = { tokensFile: tokens, trustProxy: ['127.0.0.1'] }
    const [leader, plain, trusting] = await startNodes(
      await on.create(),
      proxied,
      { tokensFile: tokens },
      proxied,
    )
    const claims = { ...bearer(tokenNamed('op')), 'x-forwarded-for': '192.0.2.7' }
    await leader.post('/call-back', descriptors('orders', 1), claims)
    await plain.post('/tasks/orders/pause', {}, claims)
    await trusting.post('/tasks/orders/resume', {}, claims)
    // The audit is the same on all nodes.
    for (const node of [leader, plain, trusting]) {
      const { body } = await node.get('/audit', bearer(tokenNamed('op')))
      expect(body.entries).toMatchObject([
        { action: 'resume', name: 'op', address: '192.0.2.7' },
        { action: 'pause', name: 'op', address: '127.0.0.1' },
      ])
    }
  })

  test('believes the user that the follower found, and no header of the client', async () => {
    const groups = [{ group: 'ops', roles: ['operator'] }]
    const tokens = [{ name: 'compute', token: tokenNamed('compute'), roles: ['producer'] }]
    const file = await tokensFile({ tokens, groups })
    const trusting = { tokensFile: file, authProxy: ['127.0.0.1'] }
    const [leader, plain, proxied] = await startNodes(
      await on.create(),
      trusting,
      { tokensFile: file },
      trusting,
    )
    await leader.post('/call-back', descriptors('orders', 1), bearer(tokenNamed('compute')))
    const ana = { 'x-forwarded-user': 'ana', 'x-forwarded-groups': 'ops' }
    // The connection of a follower comes from an address that the leader trusts, too.
    expect((await plain.post('/tasks/orders/pause', {}, ana)).status).toBe(401)
    expect((await proxied.post('/tasks/orders/pause', {}, ana)).status).toBe(200)
    expect((await proxied.get('/audit', ana)).body.entries).toMatchObject([{ action: 'pause', name: 'ana' }])
  })

  test('checks the Host header that the client sent to the follower', async () => {
    const [, follower] = await startNodes(await on.create(), {}, { allowedHosts: ['baton.example'] })
    const connection = await RawConnection.open(follower.port)
    connection.send(pullBytes({ Host: 'baton.example' }))
    expect((await connection.answer()).body).toMatchObject({ code: 'host_refused' })
    connection.send(pullBytes())
    expect((await connection.answer()).status).toBe(200)
  })

  test('counts requests per second by the address of the client', async () => {
    const [, follower] = await startNodes(
      await on.create(),
      { maxRequestsPerSecond: 1 },
      { trustProxy: ['127.0.0.1'] },
    )
    const from = async (address: string) =>
      (await follower.get('/pull', { 'x-forwarded-for': address })).status
    expect([await from('192.0.2.1'), await from('192.0.2.2')]).toEqual([200, 200])
    expect([await from('192.0.2.1'), await from('192.0.2.1')]).toContain(429)
  })

  test('does not count the connections of followers for their address', async () => {
    const [leader, follower] = await startNodes(await on.create(), { maxConnectionsPerAddress: 4 }, {})
    const waiting = Array.from({ length: 8 }, () => follower.pull({ prefer: 'wait=60' }))
    await until(() => leader.app.handOff.waitingPulls === 8)
    await follower.post('/call-back', descriptors('orders', 8))
    expect((await Promise.all(waiting)).flat()).toHaveLength(8)
  })

  test('names its own URL to clients in forwarded answers that were admitted, and in no others', async () => {
    const tokens = await tokensFile({ tokens: [{ name: 'w', token: tokenNamed('w'), roles: ['worker'] }] })
    const advertiseUrl = 'https://north.example/baton'
    const [leader, follower, anonymous] = await startNodes(
      await on.create(),
      { tokensFile: tokens, advertiseUrl },
      { tokensFile: tokens },
      {},
    )
    const named = async (node: TestNode, headers: Record<string, string>) =>
      (await node.get('/pull', headers)).headers.get('baton-leader')
    expect(await named(follower, bearer(tokenNamed('w')))).toBe(advertiseUrl)
    expect(await named(leader, bearer(tokenNamed('w')))).toBeNull()
    expect(await named(anonymous, {})).toBeNull()
    const answer = await follower.post('/renew', [], bearer(tokenNamed('w')))
    expect(answer.headers.get('baton-leader')).toBe(advertiseUrl)
    expect(answer.headers.get('baton-node')).toBeNull()
  })
})

describe('a client of a follower that disconnects before its answer', () => {
  /** The pull is decided at the leader when the client disconnects, and answered when the leader knows. */
  async function hangUp(headers: Record<string, string>, close: (connection: RawConnection) => void) {
    const [leader, follower] = await startNodes(await on.create(), {}, {})
    await leader.post('/call-back', descriptors('orders', 1))
    const noticed = new Promise((resolve) => {
      leader.app.http.server.once('connection', (socket: Socket) => socket.once('end', resolve))
    })
    const { arrived, release } = holdUp(leader)
    const connection = await RawConnection.open(follower.port)
    connection.send(pullBytes(headers))
    await arrived
    close(connection)
    await noticed
    release()
    return follower
  }

  test.each([
    ['closes the connection', (connection: RawConnection) => connection.socket.destroy()],
    ['closes its side', (connection: RawConnection) => connection.socket.end()],
  ])('and %s has its pull undone', async (_, close) => {
    const follower = await hangUp({}, close)
    expect(await follower.pull({ prefer: 'wait=60' })).toEqual(['orders-0-0'])
    expect((await follower.get('/tasks/orders')).body.attemptsWasted).toBe(0)
  })

  test('keeps its lease if it sent a key, and gets it again', async () => {
    const key = { 'idempotency-key': 'k1' }
    const follower = await hangUp(key, (connection) => connection.socket.destroy())
    expect(await follower.pull()).toEqual([])
    expect(await follower.pull(key)).toEqual(['orders-0-0'])
  })

  test('does not wait at the leader any more', async () => {
    const [leader, follower] = await startNodes(await on.create(), {}, {})
    const connection = await RawConnection.open(follower.port)
    connection.send(pullBytes({ prefer: 'wait=60' }))
    await until(() => leader.app.handOff.waitingPulls === 1)
    connection.socket.destroy()
    await until(() => leader.app.handOff.waitingPulls === 0)
  })

  test('still gets the answer of a settle if it only closed its side', async () => {
    const [leader, follower] = await startNodes(await on.create(), {}, {})
    const { arrived, release } = holdUp(leader, 'settle')
    const connection = await RawConnection.open(follower.port)
    const body = JSON.stringify([{ leaseId: 'unknown', outcome: 'done' }])
    connection.send(postBytes('/settle', body, { Host: '127.0.0.1' }))
    connection.socket.end()
    await arrived
    release()
    expect(await connection.answer()).toMatchObject({ status: 200, body: { settled: [] } })
  })
})

describe('what waits at the leader for a client of a follower', () => {
  test('is a pull, which is answered when partitions come', async () => {
    const [leader, follower] = await startNodes(await on.create(), {}, {})
    const waiting = follower.pull({ prefer: 'wait=60' })
    await until(() => leader.app.handOff.waitingPulls === 1)
    await leader.post('/call-back', descriptors('orders', 1))
    expect(await waiting).toEqual(['orders-0-0'])
  })

  test('is an event stream, which ends when the leader stops and goes on with the next', async () => {
    const [leader, follower] = await startNodes(await on.create(), {}, {})
    const stream = await EventStream.open(follower.url)
    expect(stream.headers.get('content-type')).toContain('text/event-stream')
    await stream.openingId()
    await follower.post('/call-back', descriptors('orders', 1))
    expect((await stream.next('task')).data).toMatchObject({ taskId: 'orders' })
    await leader.close()
    await stream.ended
    const next = await EventStream.open(follower.url)
    await next.openingId()
    await follower.post('/call-back', descriptors('returns', 1))
    expect((await next.next('task')).data).toMatchObject({ taskId: 'returns' })
  })

  test('waits at the next leader for the rest of its time when the leader stops', async () => {
    const [leader, follower, third] = await startNodes(await on.create(), {}, {}, {})
    const waiting = follower.get('/pull', { prefer: 'wait=60' })
    await until(() => leader.app.handOff.waitingPulls === 1)
    await leader.close()
    const next = () => [follower, third].find(({ leads }) => leads)
    await until(() => next()?.app.handOff.waitingPulls === 1)
    await third.post('/call-back', descriptors('orders', 1))
    expect((await waiting).body.partitions).toMatchObject([{ partition_name: 'orders-0-0' }])
  })

  test('is answered when the follower stops', async () => {
    const [leader, follower] = await startNodes(await on.create(), {}, {})
    const waiting = follower.get('/pull', { prefer: 'wait=60' })
    await until(() => leader.app.handOff.waitingPulls === 1)
    await follower.close()
    expect(await waiting).toMatchObject({ status: 200, body: { partitions: [] } })
  })
})

test('the client moves from a follower to a leader that advertises its URL', async () => {
  const database = await on.create()
  const port = await freePort()
  const advertiseUrl = `http://127.0.0.1:${port}`
  const leader = await TestNode.start(database, { advertiseUrl }, port)
  await until(() => leader.leads)
  const follower = await TestNode.start(database)
  const client = new BatonClient({ url: [follower.url, leader.url] })
  await client.callBack(descriptors('orders', 2))
  for (let count = 0; count < 2; count += 1) expect((await client.pull()).partitions).toHaveLength(1)
  expect((await metricsOf(follower)).value('baton_forwarded_requests_total')).toBe(1)
  // The leader is gone: the client finds the other node.
  await leader.close()
  expect(await client.task('orders')).toMatchObject({ taskId: 'orders' })
})

test('a partition that is delivered at most once is delivered once through a follower', async () => {
  const [, follower] = await startNodes(
    await on.create(),
    { delivery: 'at-most-once' },
    { delivery: 'at-most-once' },
  )
  await follower.post('/call-back', descriptors('orders', 1))
  const { body } = await follower.get('/pull')
  expect(body.partitions).toMatchObject([{ partition_name: 'orders-0-0', lease: null }])
  expect(await follower.pull()).toEqual([])
  expect((await follower.get('/tasks/orders')).body).toMatchObject({ state: 'done' })
})
