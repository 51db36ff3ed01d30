import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { WallClock } from '../handoff/clock.ts'
import type { Disk } from '../handoff/disk.ts'
import type { Log } from '../handoff/log.ts'
import type { Store } from '../handoff/store.ts'
import type { LeaderRow, Peer } from '../handoff/stored.ts'
import { ClusterStore } from './cluster-store.ts'
import type { Election } from './election.ts'
import { HintStreams } from './hint-streams.ts'
import { Leadership, type TermEvents } from './leadership.ts'
import { LeaderClock, ledDisk, type SharedDisk } from './led-disk.ts'
import { PeerSignature } from './peer-protocol.ts'
import { PeerServer } from './peer-server.ts'

interface ClusterParts {
  /** New with each start of the process. */
  readonly nodeId: string
  readonly election: Election
  /** Takes over, but only from the leader of that row. */
  open(seen: LeaderRow, events: TermEvents): Promise<Store>
  /** Closes remaining resources once this node neither leads nor follows. */
  close(): Promise<void>
  readonly log: Log
  /** CA certificates for TLS between nodes; null for those of the system. */
  readonly trusted?: Buffer | null
}

/** This node and its cluster, which is all nodes on the same database. */
export interface Cluster {
  readonly store: Store
  /** Serves requests of other nodes. `verb` is the part of the path after `/peer/`. */
  serve(verb: string, request: IncomingMessage, response: ServerResponse): void
  /** Starts to lead or to follow. The node must be listening, so that others can reach it. */
  join(): Promise<void>
  /** Called when the node is about to stop. */
  leave(): Promise<void>
}

export function clusterOf({ nodeId, election, open, close, log, trusted = null }: ClusterParts): Cluster {
  const signature = new PeerSignature(nodeId)
  const streams = new HintStreams(signature)
  const leadership = new Leadership({ signature, election, streams, open, log, trusted })
  const store = new ClusterStore(leadership, streams, close)
  const peers = new PeerServer(signature, streams, store)
  return {
    store,
    serve: (verb, request, response) => peers.serve(verb, request, response),
    join: async () => {
      leadership.start()
      // Without a leader, requests are answered with 503, and the readiness probe reports the reason.
      await leadership.whenPlaced().catch(() => undefined)
    },
    leave: async () => {
      await leadership.leave()
      await peers.disconnected()
    },
  }
}

interface OpenClusterOptions {
  /**
   * `self` is this node as others know it. Its URL is set once it listens, before `SharedDisk.open` is
   * called.
   */
  openDisk(self: Peer): Promise<SharedDisk>
  openEngine(parts: { readonly disk: Disk; readonly clock: WallClock }): Promise<Store>
  readonly log: Log
  /** CA certificates for TLS between nodes; null for those of the system. */
  readonly trusted?: Buffer | null
}

export interface OpenedCluster extends Omit<Cluster, 'join'> {
  /** `url` is where others reach this node. */
  join(url: string): Promise<void>
}

/** Rejects if the database cannot be reached or used. The node neither leads nor follows before `join`. */
export async function openCluster({
  openDisk,
  openEngine,
  log,
  trusted = null,
}: OpenClusterOptions): Promise<OpenedCluster> {
  const self = { nodeId: randomUUID(), url: '' }
  const disk = await openDisk(self)
  const clock = new LeaderClock()
  const cluster = clusterOf({
    nodeId: self.nodeId,
    election: disk,
    open: (seen, { opened, lost, over }) => {
      const events = {
        lost,
        over,
        opened: (term: string, now: number) => {
          clock.set(now)
          opened(term)
        },
      }
      return openEngine({ disk: ledDisk(disk, self.nodeId, seen, events), clock: clock.now })
    },
    close: () => disk.close(),
    log,
    trusted,
  })
  return {
    ...cluster,
    join: (url) => {
      self.url = url
      return cluster.join()
    },
  }
}
