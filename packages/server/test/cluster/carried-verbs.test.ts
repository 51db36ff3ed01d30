import { afterAll, describe } from 'vitest'
import type { Store } from '../../src/handoff/store.ts'
import { callBackTopic } from '../store/conformance/call-back.ts'
import { changesTopic } from '../store/conformance/changes.ts'
import { extraFieldsTopic } from '../store/conformance/extra-fields.ts'
import type { StoreHarness, StoreUnderTest } from '../store/conformance/harness.ts'
import { instancesTopic } from '../store/conformance/instances.ts'
import { outboxTopic } from '../store/conformance/outbox.ts'
import { partitionPagesTopic } from '../store/conformance/partition-pages.ts'
import { pauseTopic } from '../store/conformance/pause.ts'
import { pullKeysTopic } from '../store/conformance/pull-keys.ts'
import { renewTopic } from '../store/conformance/renew.ts'
import { sealTopic } from '../store/conformance/seal.ts'
import { settleTopic } from '../store/conformance/settle.ts'
import { taskViewsTopic } from '../store/conformance/task-views.ts'
import { undoTopic } from '../store/conformance/undo.ts'
import { memoryHarness } from '../store/memory-harness.ts'
import { SharedStore, startNodes, type TestNode } from './support/nodes.ts'

let under: StoreUnderTest | undefined
let nodes: Promise<TestNode[]> | undefined

const store = (): Store => {
  if (under === undefined) throw new Error('no test has opened a store yet')
  return under.store
}

/**
 * The answers of a follower whose leader uses an embedded store. Only maintenance runs on the leader itself.
 */
const followerHarness: StoreHarness = {
  name: 'carried',
  async open(options) {
    const own = await memoryHarness().open(options)
    under = own
    nodes ??= startNodes(new SharedStore(store), 2)
    const [leader, follower] = (await nodes) as [TestNode, TestNode]
    const carried = new Proxy(follower.store, {
      get: (target, verb: keyof Store) => {
        const asked = verb === 'sweep' || verb === 'maintain' || verb === 'deliver' ? leader.store : target
        const value = asked[verb]
        return typeof value === 'function' ? value.bind(asked) : value
      },
    })
    return { store: carried, reopen: (policy) => own.reopen(policy), dispose: () => own.dispose() }
  },
}

afterAll(async () => {
  for (const node of (await nodes) ?? []) await node.stop()
})

describe('a follower answers as the leader would', () => {
  callBackTopic(followerHarness)
  extraFieldsTopic(followerHarness)
  pullKeysTopic(followerHarness)
  settleTopic(followerHarness)
  renewTopic(followerHarness)
  undoTopic(followerHarness)
  pauseTopic(followerHarness)
  sealTopic(followerHarness)
  taskViewsTopic(followerHarness)
  partitionPagesTopic(followerHarness)
  instancesTopic(followerHarness)
  changesTopic(followerHarness)
  outboxTopic(followerHarness)
})
