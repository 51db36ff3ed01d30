import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Log } from '../handoff/log.ts'
import type { Store } from '../handoff/store.ts'
import { ClusterStore } from './cluster-store.ts'
import type { Election, Head } from './head.ts'
import { HintStreams } from './hint-streams.ts'
import { Leadership, type TermEvents } from './leadership.ts'
import { PeerServer } from './peer-server.ts'
import { PeerSignature } from './peer-signature.ts'

export interface ClusterParts {
  /** Another one with each start. */
  readonly nodeId: string
  readonly election: Election
  /** Takes over from the leader of that head, and from no other. */
  open(seen: Head, events: TermEvents): Promise<Store>
  /** Closes what is left when this node neither leads nor follows any more. */
  close(): Promise<void>
  readonly log: Log
  /** Certificates by which other nodes are known over TLS; null for those of the system. */
  readonly trusted?: Buffer | null
}

/** This node among the others on the same database. */
export interface Cluster {
  readonly store: Store
  /** For the HTTP server of this node: what other nodes ask it, by what stands behind `/peer/` in the path. */
  serve(verb: string, request: IncomingMessage, response: ServerResponse): void
  /** From now on this node leads or follows: it listens, and the others reach it. */
  join(): Promise<void>
  /** It is about to stop. */
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
      // Without a leader requests are answered 503, and the readiness probe says why.
      await leadership.whenPlaced().catch(() => undefined)
    },
    leave: () => leadership.leave(),
  }
}
