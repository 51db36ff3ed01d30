/**
 * The row in the database that says which node leads. Every node reads it; only a take-over or a resignation
 * changes it.
 */
export interface Head {
  /** Changes with every take-over. */
  readonly term: string | null
  readonly leader: Peer | null
  readonly clusterId: string
  /** Known to all nodes that can read the database. They use it to authenticate each other. */
  readonly secret: string
  /** The clock of the database, in milliseconds since the epoch. */
  readonly now: number
  /** The number of the last entry. */
  readonly last: number
}

export interface LedHead extends Head {
  readonly term: string
  readonly leader: Peer
}

export const isLed = (head: Head): head is LedHead => head.term !== null && head.leader !== null

/**
 * A node as others know it: an id that is new with each start of its process, and the URL where they reach
 * it.
 */
export interface Peer {
  readonly nodeId: string
  readonly url: string
}

/** Taking over is not part of this interface: it is done by opening the engine on the disk. */
export interface Election {
  readHead(): Promise<Head>
  /** Removes the leader from the head, if this node still leads. */
  resign(): Promise<void>
}
