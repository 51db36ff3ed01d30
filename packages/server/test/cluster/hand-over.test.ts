import { createServer, type IncomingMessage, request as send } from 'node:http'
import { type AddressInfo, createServer as createTcpServer } from 'node:net'
import { beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import { until } from '../../../../test/support/until.ts'
import { LeaderUnavailable } from '../../src/handoff/store.ts'
import { type StoreUnderTest, TestClock, testPolicy } from '../store/conformance/harness.ts'
import { memoryHarness } from '../store/memory-harness.ts'
import { calling, holdUp, pull, SharedStore, startNodes, TestNode } from './support/nodes.ts'

let under: StoreUnderTest
let shared: SharedStore
let nodes: TestNode[] = []

beforeEach(async () => {
  under = await memoryHarness().open({ policy: testPolicy, clock: new TestClock() })
  shared = new SharedStore(() => under.store)
  return async () => {
    for (const node of nodes.splice(0)) await node.stop()
    await under.dispose()
  }
})

/** A leader whose engine has a pull of its follower and does not answer it before `release`. */
async function withPullUnderWay() {
  const leader = await TestNode.start(shared)
  nodes.push(leader)
  const streams: IncomingMessage[] = []
  leader.server.prependListener('request', (request) => {
    if (request.url?.endsWith('hints')) streams.push(request)
  })
  const follower = await TestNode.start(shared)
  nodes.push(follower)
  await leader.store.handOff(calling(3))
  const { arrived, release } = holdUp(leader)
  const underWay = pull(follower)
  await arrived
  return { leader, follower, underWay, streams, release }
}

test('a node that joins while the leader stops lets it finish its requests', async () => {
  const { leader, underWay, streams, release } = await withPullUnderWay()
  const left = leader.cluster.leave()
  const newcomer = await TestNode.listen(shared)
  nodes.push(newcomer)
  const joined = newcomer.cluster.join()
  await until(() => streams.length > 1)
  setTimeout(release, 200)
  expect(await underWay).toHaveLength(1)
  await Promise.all([left, joined])
  expect(await pull(newcomer)).toHaveLength(1)
})

test('a request that takes too long does not keep the others from the next leader', async () => {
  const { leader, follower, underWay, release } = await withPullUnderWay()
  const refused = expect(underWay).rejects.toThrow(LeaderUnavailable)
  const closing = Promise.withResolvers<void>()
  leader.closing = closing.promise
  const left = leader.cluster.leave()
  expect(await pull(follower)).toHaveLength(1)
  expect(leader.leads).toBe(false)
  release()
  closing.resolve()
  await Promise.all([left, refused])
})

test('a cut hint stream does not cut off requests in flight', async () => {
  const { leader, underWay, streams, release } = await withPullUnderWay()
  streams[0]?.socket.destroy()
  await until(() => streams.length > 1)
  release()
  expect(await underWay).toHaveLength(1)
  expect(leader.leads).toBe(true)
})

test('a node whose clock stood still does not take over from a leader that works', async () => {
  nodes = await startNodes(shared, 1)
  const row = shared.leaderRow.bind(shared)
  const newcomer = await TestNode.listen(shared)
  nodes.push(newcomer)
  let reads = 0
  shared.leaderRow = () => ({ ...row(), now: Date.now() - (reads++ === 0 ? 70_000 : 0) })
  await newcomer.cluster.join()
  expect(shared.takeOvers).toBe(1)
  expect(await pull(newcomer)).toHaveLength(0)
})

test('a request that a proxy may have passed on to the leader is not carried twice', async () => {
  const leader = await TestNode.listen(shared)
  nodes.push(leader)
  const target = leader.self.url
  const proxy = createServer((request, response) => {
    const { method, headers } = request
    const passed = send(`${target}${request.url}`, { method, headers: { ...headers, connection: 'close' } })
    passed.on('response', (answer) => {
      const isLost = request.url?.endsWith('handOff') === true
      response.writeHead(isLost ? 502 : (answer.statusCode ?? 500), isLost ? {} : answer.headers)
      if (isLost) response.end('<html>Bad Gateway</html>')
      else answer.pipe(response)
    })
    passed.on('error', () => response.destroy())
    request.pipe(passed)
  })
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void proxy.close().closeAllConnections())
  leader.self.url = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`
  await leader.cluster.join()
  await leader.store.handOff(calling(2))
  const follower = await TestNode.start(shared)
  nodes.push(follower)
  await expect(pull(follower)).rejects.toThrow('may have been carried out')
  expect(await pull(leader)).toHaveLength(1)
})

test('a leader whose address fails only after seconds is given up as soon as a silent one', async () => {
  // Silence is counted in ticks of 500 ms, here ten times as fast.
  const start = globalThis.setInterval
  const faster = vi
    .spyOn(globalThis, 'setInterval')
    .mockImplementation(((run: () => void, millis: number) => start(run, millis / 10)) as typeof setInterval)
  onTestFinished(() => faster.mockRestore())
  let tries = 0
  const unreachable = createTcpServer((socket) => {
    tries += 1
    setTimeout(() => socket.destroy(), 330)
  })
  await new Promise<void>((resolve) => unreachable.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void unreachable.close())
  shared.takeOver({
    nodeId: 'gone',
    url: `http://127.0.0.1:${(unreachable.address() as AddressInfo).port}`,
  })
  nodes = await startNodes(shared, 1)
  await until(() => nodes[0]?.leads === true)
  expect(tries).toBeLessThan(5)
})

test('a leader that has taken over from itself is replaced as soon as it is missed', async () => {
  nodes = await startNodes(shared, 2)
  const [leader, follower] = nodes as [TestNode, TestNode]
  // As after a failure of the database.
  shared.takeOver(leader.self)
  leader.kill()
  await until(() => follower.leads)
  // Its stream broke, and its port refused the next one. A frozen leader would not be missed for 5 s more.
  expect(follower.warnings).toEqual(Array(2).fill('the leader does not answer'))
})
