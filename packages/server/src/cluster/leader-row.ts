import type { SharedDisk } from '../handoff/disk.ts'
import type { ClusterNode, LeaderRow } from '../handoff/stored.ts'

export interface LedRow extends LeaderRow {
  readonly term: string
  readonly leader: ClusterNode
}

export const isLed = (row: LeaderRow): row is LedRow => row.term !== null && row.leader !== null

/** Taking over is not part of this interface: it is done by opening the engine on the disk. */
export type LeaderRowStore = Pick<SharedDisk, 'readLeaderRow' | 'resign'>
