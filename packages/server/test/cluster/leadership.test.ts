import { createServer, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { promisify } from 'node:util'
import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { quiet } from '../../../../test/support/quiet-log.ts'
import { until } from '../../../../test/support/until.ts'
import { HandOff } from '../../src/handoff/hand-off.ts'
import type { PulledPartition } from '../../src/handoff/partition.ts'
import { StoreUnavailable } from '../../src/handoff/store.ts'
import { batchedCallBack, leaseOf, settlement, some } from '../store/conformance/driver.ts'
import { DAY, type StoreUnderTest, TestClock, testPolicy } from '../store/conformance/harness.ts'
import { memoryHarness } from '../store/memory-harness.ts'
import { calling, empty, holdUp, pull, pulling, SharedStore, startNodes, TestNode } from './support/nodes.ts'

let under: StoreUnderTest
let shared: SharedStore
let nodes: TestNode[] = []
const handOffs: HandOff[] = []

beforeEach(async () => {
  under = await memoryHarness().open({ policy: testPolicy, clock: new TestClock() })
  shared = new SharedStore(() => under.store)
  return async () => {
    for (const handOff of handOffs.splice(0)) await handOff.stop()
    for (const node of nodes.splice(0)) await node.stop()
    await under.dispose()
  }
})

async function start(count: number): Promise<TestNode[]> {
  nodes = await startNodes(shared, count)
  return nodes
}

describe('the leader', () => {
  test('is one node, however many start at once', async () => {
    nodes = await Promise.all([1, 2, 3, 4].map(() => TestNode.start(shared)))
    expect(nodes.filter(({ leads }) => leads)).toHaveLength(1)
    expect(nodes.map(({ store }) => store.leads?.())).toEqual(nodes.map(({ leads }) => leads))
    await Promise.all(nodes.map((node) => node.store.probe()))
    await nodes[0]?.store.handOff(calling(4))
    const pulled = await Promise.all(nodes.map(pull))
    expect(new Set(pulled.flat().map(({ index }) => index)).size).toBe(4)
  })

  test('takes larger batches than a follower, and both wait for clients that were just answered', async () => {
    const [leader, follower] = (await start(2)) as [TestNode, TestNode]
    const [led, carried] = [leader.store.batching, follower.store.batching]
    expect(led?.full).toBeGreaterThan(carried?.full ?? Infinity)
    expect([led?.waitShare, carried?.waitShare]).toEqual([0.5, 0.5])
  })

  test('is replaced when it dies: requests in flight are answered 503, waiting pulls are served', async () => {
    const [leader, ...followers] = (await start(3)) as [TestNode, TestNode, TestNode]
    await leader.store.handOff(calling(10))
    const { arrived } = holdUp(leader)
    const underWay = followers[0].store.handOff(pulling)
    const refused = expect(underWay).rejects.toThrow(StoreUnavailable)
    await arrived
    leader.kill()
    // Sent before another node has noticed or taken over.
    const [first, second] = await Promise.all(followers.map(pull))
    await refused
    expect([first?.length, second?.length]).toEqual([1, 1])
    expect(followers.filter(({ leads }) => leads)).toHaveLength(1)
  })

  test('is replaced at once when it stops, and finishes its requests', async () => {
    const [leader, follower] = (await start(2)) as [TestNode, TestNode]
    await leader.store.handOff(calling(2))
    const { arrived, release } = holdUp(leader)
    const underWay = pull(follower)
    await arrived
    const left = leader.cluster.leave()
    const waits = pull(follower)
    release()
    expect(await underWay).toHaveLength(1)
    await left
    expect(await waits).toHaveLength(1)
    // On a busy machine the node that stops may lead again for a moment, until it is followed.
    await until(() => follower.leads)
    // It still serves its connected clients, through the new leader.
    expect(
      (await leader.store.tasks({ state: null, parked: false, before: null, limit: 1, search: null })).tasks,
    ).toHaveLength(1)
  })

  test('can still answer a request after another node has taken over from it', async () => {
    const [leader, follower] = (await start(2)) as [TestNode, TestNode]
    await leader.store.handOff(calling(1))
    // Answers and resignation use separate connections, so the resignation may arrive first.
    leader.server.prependListener('request', (request, response) => {
      if (!request.url?.endsWith('handOff')) return
      const end = response.end.bind(response)
      response.end = ((text: string) => {
        void until(() => follower.leads).then(() => end(text))
        return response
      }) as typeof end
    })
    const { arrived, release } = holdUp(leader)
    const underWay = pull(follower)
    await arrived
    const left = leader.cluster.leave()
    release()
    expect(await underWay).toHaveLength(1)
    await left
  })

  test('finishes its requests although a follower learns from a refusal that it stops', async () => {
    const [leader, follower] = (await start(2)) as [TestNode, TestNode]
    await leader.store.handOff(calling(2))
    const { arrived, release } = holdUp(leader)
    const underWay = pull(follower)
    await arrived
    const refused = Promise.withResolvers<void>()
    leader.server.prependListener('request', (_, response) => response.once('finish', refused.resolve))
    const write = ServerResponse.prototype.write
    const announcing = vi.spyOn(ServerResponse.prototype, 'write').mockImplementation(function (
      this: ServerResponse,
      ...written: unknown[]
    ) {
      const go = () => write.apply(this, written as Parameters<typeof write>)
      if (!String(written[0]).includes('leaving')) return go()
      void refused.promise.then(() => setTimeout(go, 50))
      return true
    })
    onTestFinished(() => announcing.mockRestore())
    const left = leader.cluster.leave()
    const waits = pull(follower)
    await refused.promise
    setTimeout(release, 100)
    expect(await underWay).toHaveLength(1)
    expect(await waits).toHaveLength(1)
    await left
  })

  test('stays leader until its end when it stops as the only node', async () => {
    const [leader] = (await start(1)) as [TestNode]
    await leader.cluster.leave()
    expect(leader.leads).toBe(true)
    await leader.store.handOff(calling(1))
    await leader.store.close()
    expect(shared.leader).toBeNull()
  })

  test('is replaced by a node that starts while the only one stops', async () => {
    const [leader] = (await start(1)) as [TestNode]
    await leader.cluster.leave()
    const newcomer = await TestNode.start(shared)
    nodes.push(newcomer)
    await until(() => newcomer.leads)
    await leader.store.handOff(calling(1))
    expect(await pull(newcomer)).toHaveLength(1)
  })

  test('is replaced by a node that follows it before its take-over is complete, if it stops by then', async () => {
    const [leader, follower] = [await TestNode.listen(shared), await TestNode.listen(shared)]
    nodes.push(leader, follower)
    const opening = Promise.withResolvers<void>()
    leader.opening = opening.promise
    const following = new Promise((resolve) => leader.server.once('request', resolve))
    const joined = [leader.cluster.join()]
    await until(() => leader.leads)
    await leader.cluster.leave()
    joined.push(follower.cluster.join())
    await following
    opening.resolve()
    const waits = pull(follower)
    await Promise.all(joined)
    await until(() => follower.leads)
    expect(await waits).toHaveLength(0)
  })

  test('is not the deposed node, which notices and follows', async () => {
    const [old, follower] = (await start(2)) as [TestNode, TestNode]
    await old.store.handOff(calling(3))
    const newcomer = await TestNode.listen(shared)
    nodes.push(newcomer)
    // As if it had found the leader gone, although it is not.
    shared.takeOver(newcomer.self)
    await expect(old.store.handOff(pulling)).rejects.toThrow(StoreUnavailable)
    await newcomer.cluster.join()
    expect(await pull(old)).toHaveLength(1)
    expect(await pull(follower)).toHaveLength(1)
    expect(await pull(newcomer)).toHaveLength(1)
    expect(nodes.filter(({ leads }) => leads)).toHaveLength(1)
  })

  test('does not alternate endlessly between two nodes that cannot reach each other', async () => {
    const refusing = 'http://127.0.0.1:1'
    const [first, second] = [new TestNode(shared), new TestNode(shared)]
    nodes.push(first, second)
    for (const node of nodes) {
      node.self.url = refusing
      await node.cluster.join()
    }
    expect(second.leads).toBe(true)
    await expect(first.store.probe()).rejects.toThrow(StoreUnavailable)
    await until(() => first.warnings.some((warning) => warning.includes('delays its next take-over')))
    expect(shared.takeOvers).toBe(2)
    expect(second.leads).toBe(true)
  })

  test('is the node itself when another program answers at the address in the database', async () => {
    const stranger = createServer((_request, response) => response.end('<html>'))
    await new Promise<void>((resolve) => stranger.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => void stranger.close())
    const { port } = stranger.address() as AddressInfo
    shared.takeOver({ nodeId: 'long gone', url: `http://127.0.0.1:${port}` })
    const [node] = (await start(1)) as [TestNode]
    await node.store.probe()
    expect(node.leads).toBe(true)
  })
})

test('without a leader requests wait for a moment and are then answered 503 with the reason', async () => {
  const [leader, follower] = (await start(2)) as [TestNode, TestNode]
  shared.takeOver = () => {
    throw new StoreUnavailable('store_unavailable', 'the database takes no writes')
  }
  leader.kill()
  await expect(pull(follower)).rejects.toThrow(/there is no leader: .*the database takes no writes/)
  await expect(follower.store.probe()).rejects.toThrow(/there is no leader/)
})

test('leases granted to a follower that died before the answer are released, unless a key repeats them', async () => {
  const [leader, follower] = (await start(2)) as [TestNode, TestNode]
  await leader.store.handOff(calling(2))
  const { arrived, release } = holdUp(leader)
  const plain = { instance: null, batch: 1, records: null, key: null, tables: null, tasks: null }
  const keyed = { ...plain, key: 'k' }
  const underWay = follower.store.handOff({ ...empty, pulls: [keyed, plain] })
  const refused = expect(underWay).rejects.toThrow(StoreUnavailable)
  await arrived
  await follower.store.close()
  await refused
  await until(async () => (await promisify(leader.server.getConnections.bind(leader.server))()) === 0)
  release()
  const { pulls } = await leader.store.handOff({ ...empty, pulls: [keyed] })
  const again: PulledPartition[] = []
  await until(async () => again.push(...(await pull(leader))) > 0)
  expect(again).toHaveLength(1)
  const lease = leaseOf(pulls[0]?.partitions[0]?.lease?.id as string)
  const settle = { instance: null, settlements: [{ lease, order: settlement({ outcome: 'done' }) }] }
  expect((await leader.store.handOff({ ...empty, settles: [settle] })).settles).toEqual([[null]])
})

test('a large call-back is forwarded in pieces and stored as one', async () => {
  const [leader, follower] = (await start(2)) as [TestNode, TestNode]
  const { callBacks } = await follower.store.handOff(calling(4321))
  expect(callBacks).toEqual([{ kind: 'stored', accepted: 4321, duplicates: 0 }])
  const { callBacks: again } = await leader.store.handOff(calling(4321))
  expect(again).toEqual([{ kind: 'stored', accepted: 0, duplicates: 4321 }])
})

describe('a pull that waits', () => {
  const handOffOn = async (node: TestNode) => {
    const options = { store: node.store, policy: testPolicy, retentionMillis: DAY, log: quiet }
    const handOff = new HandOff({ ...options, node: { instanceId: node.self.nodeId, version: '0' } })
    await handOff.start()
    handOffs.push(handOff)
    return handOff
  }
  const waiting = {
    instance: null,
    batch: 1,
    records: null,
    key: null,
    tables: null,
    tasks: null,
    waitMillis: 600_000,
  }

  test.each([
    ['the leader', 'a follower', 0, 1],
    ['a follower', 'the leader', 1, 0],
    ['a follower', 'another follower', 1, 2],
  ])('on %s is woken by a call-back on %s', async (_on, _to, on, to) => {
    const all = await Promise.all((await start(3)).map(handOffOn))
    const pulled = all[on]?.pull(waiting)
    await until(() => all[on]?.waitingPulls === 1)
    await all[to]?.callBack(batchedCallBack('a', some(0, 1)).callBack, null)
    expect((await pulled)?.partitions).toHaveLength(1)
  })

  test('outlives the leader, and is woken by the next one', async () => {
    const [leader, ...others] = (await start(3)) as [TestNode, TestNode, TestNode]
    const [waits, brings] = (await Promise.all(others.map(handOffOn))) as [HandOff, HandOff]
    const pulled = waits.pull(waiting)
    await until(() => waits.waitingPulls === 1)
    leader.kill()
    await brings.callBack(batchedCallBack('a', some(0, 1)).callBack, null)
    expect((await pulled).partitions).toHaveLength(1)
  })
})
