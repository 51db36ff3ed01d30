import type { Bench } from '../harness/bench.ts'
import type { Contender } from '../harness/rounds.ts'

/**
 * The same work in three forms: a claim and an acknowledgement per partition, both in one request, or many
 * partitions at once.
 */
export type Work = 'one by one' | 'one exchange' | 'batches'

export const WORKS: readonly Work[] = ['one by one', 'one exchange', 'batches']

/** One way in which a service does the work, with what a reader has to know about its figure. */
export interface PeerContender extends Contender {
  /** The peer's name and the form of the work, e.g. `pg-boss/batches`. */
  id: string
  work: Work
  /** How it was set up: the fastest documented settings that are still durable. */
  setting: string
  /** What makes this figure better, or worse, than the same work elsewhere. */
  favoured: string
  hurt: string
}

export interface Peer {
  /** The name for `--only`. */
  name: string
  /** Throws `NotInstalled` when its server is not installed. */
  start(bench: PeersBench): Promise<readonly PeerContender[]>
}

export interface PeersBench extends Bench {
  consumers: number
  batch: number
  /** A separate database on the PostgreSQL that all peers share. */
  database(name: string): Promise<PeerDatabase>
}

export interface PeerDatabase {
  url: string
  postmasterPid: number
  /** What autovacuum would do between bursts: no round starts with the dead rows of another. */
  maintain(): Promise<void>
}
