import type { Chance } from './chance.ts'
import type { LoggedError } from './log-checks.ts'
import type { Span } from './order-checks.ts'

/** A node as the run sees it: where to send requests, and its state. */
export interface FleetNode {
  readonly name: string
  readonly url: string
  /** No requests are sent to it at present. */
  readonly isAway: boolean
  /** How often it has ended without being killed. */
  readonly ends: number
  /** The last part of its output. */
  readonly log: string
  readonly errors: readonly LoggedError[]
}

/** A fault that is injected into a fleet. It is over when the promise resolves. */
export interface Disturbance {
  readonly name: string
  /** Errors that nodes may log because of it, from its start on. Any other error in a log is a finding. */
  readonly explains?: readonly RegExp[]
  happen(chance: Chance): Promise<void>
}

/** Nodes on one store, the disturbances for them, and an audit of the store after they have ended. */
export interface Fleet {
  readonly nodes: readonly FleetNode[]
  readonly disturbances: readonly Disturbance[]
  /** Periods whose commits the store may have lost. Only a database that is configured so may lose any. */
  readonly lostTails?: readonly Span[]
  /** Ends the nodes and recounts everything in their store. */
  audit(): Promise<readonly string[]>
  /** Ends all remaining processes and removes all files. */
  dispose(): Promise<void>
}

/** Few attempts and short back-offs, so that partitions are often parked and retried. */
export function settings(leaseMillis: number): string[] {
  return [
    ...['--lease-seconds', String(leaseMillis / 1000), '--max-attempts', '4'],
    ...['--backoff-seconds', '0.05', '--backoff-max-seconds', '0.3', '--log-level', 'warn'],
  ]
}
