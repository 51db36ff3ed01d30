/** What the database says about who leads. Every node reads it; only taking over and resigning change it. */
export interface Head {
  /** Changes with every take-over. */
  readonly term: string | null
  readonly leader: Peer | null
  readonly clusterId: string
  /** Known to those who can read the database: how nodes prove to each other that they belong together. */
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

/** A node as others know it: its id is new with each start of its process, its URL is where they reach it. */
export interface Peer {
  readonly nodeId: string
  readonly url: string
}

/** Taking over is no part of it: that is done by opening the engine on the disk. */
export interface Election {
  readHead(): Promise<Head>
  /** Leaves the head without a leader, if this node still leads. */
  resign(): Promise<void>
}
