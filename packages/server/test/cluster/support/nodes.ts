import { randomUUID } from 'node:crypto'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Election } from '../../../src/cluster/election.ts'
import { type Cluster, clusterOf } from '../../../src/cluster/open-cluster.ts'
import { carriedVerbs } from '../../../src/cluster/peer-protocol.ts'
import { type HandOffBatch, type Store, StoreUnavailable } from '../../../src/handoff/store.ts'
import type { LeaderRow, Peer } from '../../../src/handoff/stored.ts'
import { admitPeers } from '../../../src/http/listening.ts'
import { batchedCallBack, some } from '../../store/conformance/driver.ts'

const engineVerbs = [...carriedVerbs, 'sweep', 'maintain', 'deliver'] as const
type EngineVerb = (typeof engineVerbs)[number]

/** Replaces the database: the leader row, and a store that only the node may use whose term is that of the leader row. */
export class SharedStore {
  readonly store: () => Store
  readonly clusterId = randomUUID()
  readonly secret = randomUUID()
  term: string | null = null
  leader: Peer | null = null
  takeOvers = 0
  /** The last entry number grows with each read of the leader row, as with a working leader. */
  #entries = 0

  constructor(store: () => Store) {
    this.store = store
  }

  leaderRow(): LeaderRow {
    const { term, leader, clusterId, secret } = this
    this.#entries += 1
    return { leaderTerm: term, leader, clusterId, secret, now: Date.now(), last: this.#entries }
  }

  takeOver(self: Peer): string {
    this.takeOvers += 1
    this.term = randomUUID()
    this.leader = self
    return this.term
  }
}

/** A node that serves the others over HTTP on its own port, as the service does. */
export class TestNode {
  readonly cluster: Cluster
  readonly store: Store
  readonly self = { nodeId: randomUUID(), url: '' }
  readonly server: Server
  /** Its warnings. */
  readonly warnings: string[] = []
  readonly #shared: SharedStore
  readonly #dead = Promise.withResolvers<void>()
  #isDead = false
  /** The engine of this node waits for this before it processes a batch. */
  before: (verb: EngineVerb) => Promise<void> = async () => {}
  /** A take-over of this node waits for this. */
  opening: Promise<void> | undefined
  /** The engine of this node waits for this before it closes, and the node before it resigns. */
  closing: Promise<void> | undefined

  constructor(shared: SharedStore) {
    this.#shared = shared
    const election: Election = {
      readLeaderRow: async () => {
        this.#live()
        return shared.leaderRow()
      },
      resign: async () => {
        await this.closing
        this.#live()
        if (shared.leader?.nodeId !== this.self.nodeId) return
        shared.leader = null
        shared.term = randomUUID()
      },
    }
    this.cluster = clusterOf({
      nodeId: this.self.nodeId,
      election,
      open: async (seen, { opened, lost }) => {
        this.#live()
        if (shared.term !== seen.leaderTerm)
          throw new StoreUnavailable('store_unavailable', 'another was faster')
        const term = shared.takeOver(this.self)
        await this.opening
        opened(term)
        return this.#engineOf(term, lost)
      },
      close: async () => {},
      log: { debug() {}, info() {}, error() {}, warn: (_, message) => this.warnings.push(message) },
    })
    this.store = this.cluster.store
    this.server = createServer((_request, response) => response.writeHead(404).end())
    admitPeers(this.server, '', this.cluster)
  }

  static async start(shared: SharedStore): Promise<TestNode> {
    const node = await TestNode.listen(shared)
    await node.cluster.join()
    return node
  }

  /** A node that has not joined yet. */
  static async listen(shared: SharedStore): Promise<TestNode> {
    const node = new TestNode(shared)
    await new Promise<void>((resolve) => node.server.listen(0, '127.0.0.1', resolve))
    node.self.url = `http://127.0.0.1:${(node.server.address() as AddressInfo).port}`
    return node
  }

  get leads(): boolean {
    return this.#shared.leader?.nodeId === this.self.nodeId
  }

  /** As when a process is killed: its connections break, its port refuses, and it does nothing more. */
  kill(): void {
    this.#isDead = true
    this.#dead.resolve()
    this.server.close()
    this.server.closeAllConnections()
  }

  /** Stops gracefully, as the service does. */
  async stop(): Promise<void> {
    await this.cluster.leave()
    this.server.close()
    await this.store.close()
    this.server.closeAllConnections()
  }

  #live(): void {
    if (this.#isDead) throw new StoreUnavailable('store_unavailable', 'this node is dead')
  }

  /** Fenced as the disk is: in another term every call fails, and the leadership is notified. */
  #engineOf(term: string, lost: () => void): Store {
    const fenced = (verb: EngineVerb) => async (argument: unknown) => {
      await Promise.race([this.before(verb), this.#dead.promise])
      this.#live()
      if (this.#shared.term !== term) {
        lost()
        throw new StoreUnavailable('store_unavailable', 'another node leads')
      }
      const store = this.#shared.store()
      return (store[verb] as (argument: unknown) => Promise<unknown>).call(store, argument)
    }
    const verbs = Object.fromEntries(engineVerbs.map((verb) => [verb, fenced(verb)]))
    return { ...verbs, close: async () => this.closing } as unknown as Store
  }
}

/** This many nodes on one store, the first of which is the leader. */
export async function startNodes(shared: SharedStore, count: number): Promise<TestNode[]> {
  const nodes = [await TestNode.start(shared)]
  while (nodes.length < count) nodes.push(await TestNode.start(shared))
  return nodes
}

export const empty: HandOffBatch = { settles: [], renews: [], undos: [], callBacks: [], pulls: [] }

export const pulling: HandOffBatch = {
  ...empty,
  pulls: [{ instance: null, batch: 1, records: null, key: null, tables: null, tasks: null }],
}

export const calling = (count: number): HandOffBatch => ({
  ...empty,
  callBacks: [batchedCallBack('a', some(0, count))],
})

export const pull = async (node: TestNode) => (await node.store.handOff(pulling)).pulls[0]?.partitions ?? []

/** Blocks the engine of a node, and signals when a batch has arrived there. */
export function holdUp(node: TestNode): { arrived: Promise<void>; release: () => void } {
  const [arrived, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  node.before = async (verb) => {
    if (verb !== 'handOff') return
    arrived.resolve()
    await released.promise
  }
  return { arrived: arrived.promise, release: released.resolve }
}
