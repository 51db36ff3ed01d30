/**
 * The row in the database that says which node leads. Every node reads it; only a take-over or a resignation
 * changes it.
 */
export interface LeaderRow {
  /** Changes with every take-over. Null until the first node has led. */
  readonly leaderTerm: string | null
  /** Null after the leader stopped gracefully, or if other nodes cannot reach it. */
  readonly leader: Peer | null
  readonly clusterId: string
  /** Known to all nodes that can read the database. They use it to authenticate each other. */
  readonly secret: string
  /** The clock of the database, as Unix time in milliseconds. */
  readonly now: number
  /** The number of the last entry. */
  readonly last: number
}

/**
 * A node as others know it: an id that is new with each start of its process, and the URL where they reach
 * it.
 */
export interface Peer {
  readonly nodeId: string
  readonly url: string
}
