import { randomUUID } from 'node:crypto'
import type { WallClock } from '../handoff/clock.ts'
import type { Disk } from '../handoff/disk.ts'
import type { Log } from '../handoff/log.ts'
import type { Store } from '../handoff/store.ts'
import { type Cluster, clusterOf } from './cluster.ts'
import type { Peer } from './head.ts'
import { LeaderClock } from './leader-clock.ts'
import { ledDisk, type SharedDisk } from './led-disk.ts'

export interface OpenClusterOptions {
  /** `self` is this node as others know it. Its URL is known when it listens, and the disk is opened after that. */
  openDisk(self: Peer): Promise<SharedDisk>
  openEngine(parts: { readonly disk: Disk; readonly clock: WallClock }): Promise<Store>
  readonly log: Log
  /** Certificates by which other nodes are known over TLS; null for those of the system. */
  readonly trusted?: Buffer | null
}

export interface OpenedCluster extends Omit<Cluster, 'join'> {
  /** `url` is where others reach this node. */
  join(url: string): Promise<void>
}

/** Rejects when the database cannot be reached or used. Nobody leads or follows before `join`. */
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
