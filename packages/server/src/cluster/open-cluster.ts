import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { WallClock } from '../handoff/clock.ts'
import type { Disk, SharedDisk } from '../handoff/disk.ts'
import type { Log } from '../handoff/log.ts'
import { type Store, StoreUnavailable } from '../handoff/store.ts'
import type { ClusterNode } from '../handoff/stored.ts'
import { clusterStore } from './cluster-store.ts'
import { diskOfTerm } from './disk-of-term.ts'
import { Followers } from './followers.ts'
import type { ForwardedAnswer } from './forwarded-request.ts'
import { Forwarder } from './forwarder.ts'
import { LeaderClock } from './leader-clock.ts'
import { Leadership } from './leadership.ts'
import { PeerSignature } from './peer-signature.ts'

interface ClusterOptions {
  /** `self` is this node as others know it. It has its URL before `SharedDisk.open` is called. */
  openDisk(self: ClusterNode): Promise<SharedDisk>
  openEngine(parts: { readonly disk: Disk; readonly clock: WallClock }): Promise<Store>
  readonly log: Log
  /** CA certificates for TLS between nodes; null for those of the system. */
  readonly trusted?: Buffer | null
}

/** This node and its cluster, which is all nodes on the same database. */
export interface Cluster {
  readonly nodeId: string
  readonly store: Store
  readonly forwarder: Forwarder
  readonly leads: boolean
  /** See `Leadership`. */
  countRequest(): () => void
  /** Serves the stream that tells a follower that this node leads. */
  serveStream(request: IncomingMessage, response: ServerResponse): void
  /** Calls `end` when that follower stops. The returned function cancels that. */
  whenFollowerStops(follower: string, end: () => void): () => void
  /** Starts to lead or to follow. The node must be listening; `url` is where others reach it. */
  join(url: string): Promise<void>
  prepareToStop(): Promise<void>
}

/** Rejects if the database cannot be reached or used. The node neither leads nor follows before `join`. */
export async function openCluster({
  openDisk,
  openEngine,
  log,
  trusted = null,
}: ClusterOptions): Promise<Cluster> {
  const self = { nodeId: randomUUID(), url: '' }
  const disk = await openDisk(self)
  const clock = new LeaderClock()
  const signature = new PeerSignature(self.nodeId)
  const followers = new Followers(signature)
  const leadership = new Leadership({
    signature,
    leaderRow: disk,
    followers,
    log,
    trusted,
    clock,
    open: (seen, callbacks) =>
      openEngine({ disk: diskOfTerm(disk, self.nodeId, seen, callbacks), clock: clock.now }),
  })
  const forwarder = new Forwarder(leadership, followers, signature)
  const store = clusterStore({
    leadership,
    disk,
    now: () => signature.now,
    probeLeader: () => probeLeader(forwarder),
    close: () => disk.close(),
  })
  return {
    nodeId: self.nodeId,
    store,
    forwarder,
    get leads() {
      return leadership.leads
    },
    countRequest: () => leadership.countRequest(),
    serveStream: (request, response) => followers.serve(request, response),
    whenFollowerStops: (follower, end) => followers.whenFollowerStops(follower, end),
    join: async (url) => {
      self.url = url
      leadership.start()
      // Without a leader, requests are answered with 503, and the readiness probe reports the reason.
      await leadership.whenLeaderFound().catch(() => undefined)
    },
    prepareToStop: async () => {
      await leadership.handOverAndDrain()
      await followers.disconnected()
    },
  }
}

/** A follower is ready if its leader is. */
async function probeLeader(forwarder: Forwarder): Promise<void> {
  let status = 200
  let text = ''
  const answer: ForwardedAnswer = {
    head: (given) => {
      status = given
    },
    write: (chunk) => {
      text += chunk
      return true
    },
    end: () => undefined,
    cut: () => {
      status = 503
    },
  }
  const request = {
    method: 'GET',
    target: '/readyz',
    headers: {},
    body: null,
    client: { address: null, host: null, scheme: 'http', instanceId: '' },
    arrivedAt: performance.now(),
    signal: new AbortController().signal,
  }
  await forwarder.forward(request, answer)
  if (status === 200) return
  const { detail = `status ${status}` } = JSON.parse(text || '{}') as { detail?: string }
  throw new StoreUnavailable('store_unavailable', `the leader is not ready: ${detail}`)
}
