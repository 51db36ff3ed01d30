import type { ClusterNode, LeaderRow } from '../handoff/stored.ts'

export interface LedRow extends LeaderRow {
  readonly leaderTerm: string
  readonly leader: ClusterNode
}

export const isLed = (row: LeaderRow): row is LedRow => row.leaderTerm !== null && row.leader !== null

/** Taking over is not part of this interface: it is done by opening the engine on the disk. */
export interface LeaderRowStore {
  readLeaderRow(): Promise<LeaderRow>
  /** Removes the leader from the row, if this node still leads. */
  resign(): Promise<void>
}
