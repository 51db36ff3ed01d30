import type { IncomingMessage } from 'node:http'
import { beforeEach, expect, test } from 'vitest'
import type { HandOffBatch } from '../../src/handoff/store.ts'
import { batchedCallBack, some } from '../store/conformance/driver.ts'
import { type StoreUnderTest, TestClock, testPolicy } from '../store/conformance/harness.ts'
import { memoryHarness } from '../store/memory-harness.ts'
import { SharedStore, TestNode } from './support/nodes.ts'

const empty: HandOffBatch = { settles: [], renews: [], undos: [], callBacks: [], pulls: [] }
const pulling: HandOffBatch = {
  ...empty,
  pulls: [{ instance: null, batch: 1, records: null, key: null, tables: null, tasks: null }],
}
const calling = (count: number): HandOffBatch => ({
  ...empty,
  callBacks: [batchedCallBack('a', some(0, count))],
})

let under: StoreUnderTest
let shared: SharedStore
const nodes: TestNode[] = []

beforeEach(async () => {
  under = await memoryHarness().open({ policy: testPolicy, clock: new TestClock() })
  shared = new SharedStore(() => under.store)
  return async () => {
    for (const node of nodes.splice(0)) await node.stop()
    await under.dispose()
  }
})

const pull = async (node: TestNode) => (await node.store.handOff(pulling)).pulls[0]?.partitions ?? []

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise((resolve) => setTimeout(resolve, 5))
}

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
  const [arrived, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  leader.before = async (verb) => {
    if (verb !== 'handOff') return
    arrived.resolve()
    await released.promise
  }
  const underWay = pull(follower)
  await arrived.promise
  return { leader, follower, underWay, streams, release: released.resolve }
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
