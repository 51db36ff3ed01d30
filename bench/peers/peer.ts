import type { Bench } from '../harness/bench.ts'
import type { Contender } from '../harness/rounds.ts'

/**
 * The same work in three forms: a claim and an acknowledgement per partition; both in one exchange; many
 * partitions at once.
 */
export type Work = 'one by one' | 'one exchange' | 'batches'

export const WORKS: readonly Work[] = ['one by one', 'one exchange', 'batches']

/** One way of one service to do the work, with what a reader has to know about its figure. */
export interface PeerContender extends Contender {
  /** The peer's name and its way, e.g. `pg-boss/batches`. */
  id: string
  work: Work
  /** How it was set up: its documented best that is still durable. */
  setting: string
  /** What makes this figure better, or worse, than the same work elsewhere. */
  favoured: string
  hurt: string
}

export interface Peer {
  /** For `--only`. */
  name: string
  /** Throws `NotInstalled` when its server is not there. */
  start(bench: PeersBench): Promise<readonly PeerContender[]>
}

export interface PeersBench extends Bench {
  consumers: number
  batch: number
  /** A database of its own on the one PostgreSQL that all share. */
  database(name: string): Promise<PeerDatabase>
}

export interface PeerDatabase {
  url: string
  postmasterPid: number
  /** What autovacuum would do between bursts: nobody starts a round with another round's dead rows. */
  maintain(): Promise<void>
}
