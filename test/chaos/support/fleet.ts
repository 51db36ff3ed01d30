import type { Chance } from './chance.ts'
import type { LoggedError } from './log-checks.ts'
import type { Span } from './order-checks.ts'

/** A node as the run sees it: where to send requests, and how it fares. */
export interface FleetNode {
  readonly name: string
  readonly url: string
  /** No requests are sent to it now. */
  readonly isAway: boolean
  /** How often it has ended although it was not killed. */
  readonly ends: number
  /** The end of what it wrote. */
  readonly log: string
  readonly errors: readonly LoggedError[]
}

/** Something bad that happens to a fleet, and is over when the promise is kept. */
export interface Disturbance {
  readonly name: string
  /** Errors that nodes may log because of it, from its beginning on. Any other error in a log is a finding. */
  readonly explains?: readonly RegExp[]
  happen(chance: Chance): Promise<void>
}

/** Nodes on one store, what can be done to them, and a look into the store when they have ended. */
export interface Fleet {
  readonly nodes: readonly FleetNode[]
  readonly disturbances: readonly Disturbance[]
  /** Times of which the store may have lost what was committed. Only a database that is told to may do so. */
  readonly lostTails?: readonly Span[]
  /** Ends the nodes and recounts everything in their store. */
  audit(): Promise<string[]>
  /** Ends whatever still runs, and leaves nothing behind. */
  dispose(): Promise<void>
}

/** Few attempts and short back-offs, so that partitions are parked and come back all the time. */
export function settings(leaseMillis: number): string[] {
  return [
    ...['--lease-seconds', String(leaseMillis / 1000), '--max-attempts', '4'],
    ...['--backoff-seconds', '0.05', '--backoff-max-seconds', '0.3', '--log-level', 'warn'],
  ]
}
