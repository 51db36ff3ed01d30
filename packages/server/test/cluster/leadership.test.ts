import { type AddressInfo, createServer as createTcpServer } from 'node:net'
import { describe, expect, onTestFinished, test } from 'vitest'
import { localServer } from '../../../../test/support/local-server.ts'
import { until } from '../../../../test/support/until.ts'
import { descriptors } from '../support/test-app.ts'
import { databases, holdUp, startNodes, TestNode } from './support/nodes.ts'

const on = databases()

/** What the database says about the leader. */
const writeLeader = (database: string, url: string) =>
  on.query(
    database,
    `UPDATE baton.head SET term = gen_random_uuid(), leader_id = gen_random_uuid(), leader_url = '${url}'`,
  )

describe('the leader', () => {
  test('is one node, however many start at once', async () => {
    const database = await on.create()
    const nodes = await Promise.all([1, 2, 3, 4].map(() => TestNode.start(database)))
    expect(nodes.filter(({ leads }) => leads)).toHaveLength(1)
    for (const node of nodes) expect((await node.get('/readyz')).status).toBe(200)
    await nodes[0]?.post('/call-back', descriptors('orders', 4))
    const pulled = await Promise.all(nodes.map((node) => node.pull()))
    expect(new Set(pulled.flat()).size).toBe(4)
  })

  test('finishes its requests when it stops, and another node takes over at once', async () => {
    const [leader, follower] = await startNodes(await on.create(), {}, {})
    await leader.post('/call-back', descriptors('orders', 2))
    const { arrived, release } = holdUp(leader)
    const underWay = follower.pull()
    await arrived
    const closed = leader.close()
    const waits = follower.pull()
    release()
    expect(await underWay).toHaveLength(1)
    expect(await waits).toHaveLength(1)
    await closed
    expect(follower.leads).toBe(true)
  })

  test('lets a node that joins meanwhile wait until it has finished', async () => {
    const database = await on.create()
    const [leader, follower] = await startNodes(database, {}, {})
    await leader.post('/call-back', descriptors('orders', 1))
    const { arrived, release } = holdUp(leader)
    const underWay = follower.pull()
    await arrived
    const closed = leader.close()
    const joined = TestNode.start(database)
    setTimeout(release, 200)
    expect(await underWay).toHaveLength(1)
    await closed
    expect((await (await joined).get('/tasks/orders')).status).toBe(200)
  })

  test('does not keep others from the next leader with a request that takes too long', async () => {
    const [leader, follower] = await startNodes(await on.create(), {}, {})
    await leader.post('/call-back', descriptors('orders', 2))
    const { arrived, release } = holdUp(leader)
    const underWay = follower.get('/pull')
    await arrived
    const closed = leader.close()
    expect(await follower.pull()).toHaveLength(1)
    expect(leader.leads).toBe(false)
    release()
    await underWay
    await closed
  })

  test('stays leader until its end when it stops as the only node', async () => {
    const database = await on.create()
    const [leader] = await startNodes(database, {})
    const { arrived, release } = holdUp(leader)
    const underWay = leader.pull()
    await arrived
    const closed = leader.close()
    expect(leader.leads).toBe(true)
    release()
    await Promise.all([underWay, closed])
    expect(await on.query(database, 'SELECT leader_id FROM baton.head')).toEqual([{ leader_id: null }])
  })

  test('that was deposed notices, ends what waits there, and follows', async () => {
    const database = await on.create()
    const [old, follower] = await startNodes(database, {}, {})
    const waiting = old.get('/pull', { prefer: 'wait=60' })
    await until(() => old.app.handOff.waitingPulls === 1)
    const newcomer = await TestNode.listen(database)
    // As if it had found the leader gone, although it is not.
    await on.query(database, 'UPDATE baton.head SET leader_id = NULL, leader_url = NULL')
    await newcomer.join()
    await until(() => [old, follower, newcomer].filter(({ leads }) => leads).length === 1 && !old.leads)
    expect((await waiting).status).toBe(503)
    for (const node of [old, follower, newcomer])
      await until(async () => (await node.get('/readyz')).status === 200)
    await old.post('/call-back', descriptors('orders', 3))
    for (const node of [old, follower, newcomer]) expect(await node.pull()).toHaveLength(1)
  })

  test('does not alternate endlessly between two nodes that cannot reach each other', async () => {
    const database = await on.create()
    const [first, second] = [await TestNode.listen(database), await TestNode.listen(database)]
    for (const node of [first, second]) await node.join('http://127.0.0.1:1')
    expect(second.leads).toBe(true)
    expect((await first.post('/call-back', descriptors('orders', 1))).status).toBe(503)
    await until(() => first.messages.some((message) => message.includes('delays its next take-over')))
    expect(second.leads).toBe(true)
  })

  test('is the node itself when another program answers at the address in the database', async () => {
    const { url } = await localServer((_request, response) => response.end('<html>'))
    const database = await on.create()
    await writeLeader(database, url)
    const node = await TestNode.start(database)
    await until(() => node.leads)
  })

  test('is replaced at once when its address refuses connections', async () => {
    const database = await on.create()
    await writeLeader(database, 'http://127.0.0.1:1')
    const node = await TestNode.start(database)
    await until(() => node.leads)
    expect(node.messages).toContain('the leader does not answer')
  })

  test('is replaced after a few tries when its address closes every connection', async () => {
    let tries = 0
    const unreachable = createTcpServer((socket) => {
      tries += 1
      socket.destroy()
    })
    await new Promise<void>((resolve) => unreachable.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => void unreachable.close())
    const database = await on.create()
    await writeLeader(database, `http://127.0.0.1:${(unreachable.address() as AddressInfo).port}`)
    const node = await TestNode.start(database)
    await until(() => node.leads)
    expect(tries).toBeGreaterThan(1)
  })
})

test('without a leader requests wait for a moment and are then answered 503 with the reason', async () => {
  const database = await on.create()
  const [leader, follower] = await startNodes(database, {}, {})
  // No node can take over any more.
  await on.query(database, 'ALTER TABLE baton.head RENAME TO gone')
  onTestFinished(async () => void (await on.query(database, 'ALTER TABLE baton.gone RENAME TO head')))
  await leader.close()
  const { status, headers, body } = await follower.get('/pull')
  expect({ status, code: body.code }).toEqual({ status: 503, code: 'store_unavailable' })
  expect(body.detail).toContain('there is no leader')
  expect(headers.get('retry-after')).toBe('1')
  const ready = await follower.get('/readyz')
  expect(ready).toMatchObject({
    status: 503,
    body: { detail: expect.stringContaining('there is no leader') },
  })
})

test('an answer that was cut off, and one of another program, is a 503 of unknown outcome; it is never sent twice', async () => {
  const database = await on.create()
  const leader = await TestNode.listen(database)
  let pulls = 0
  let cut: 'before the head' | 'by a proxy' = 'before the head'
  // Between the nodes: it passes on everything, and loses the answers of pulls.
  const proxy = await localServer(async (request, response) => {
    const isPull = request.url === '/pull'
    const headers = Object.fromEntries(
      Object.entries(request.headers).filter(([name]) => name !== 'host' && name !== 'connection'),
    ) as Record<string, string>
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const passed = await import('undici').then(({ request: send }) =>
      send(`${leader.url}${request.url}`, {
        method: (request.method ?? 'GET') as 'GET',
        headers,
        body: chunks.length === 0 ? null : Buffer.concat(chunks),
      }),
    )
    if (!isPull) {
      response.writeHead(passed.statusCode, passed.headers)
      passed.body.on('error', () => response.destroy()).pipe(response)
      return
    }
    pulls += 1
    await passed.body.text()
    if (cut === 'by a proxy') response.writeHead(502).end('<html>Bad Gateway</html>')
    else response.destroy()
  })
  await leader.join(proxy.url)
  await leader.post('/call-back', descriptors('orders', 3))
  const follower = await TestNode.start(database)
  for (const how of ['before the head', 'by a proxy'] as const) {
    cut = how
    const { status, body } = await follower.get('/pull')
    expect({ status, code: body.code }).toEqual({ status: 503, code: 'store_unavailable' })
    expect(body.detail).toContain('the outcome is unknown')
  }
  expect(pulls).toBe(2)
  expect(await leader.pull()).toEqual(['orders-0-2'])
})
