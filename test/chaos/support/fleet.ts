import type { NodeProcess } from '../../postgres/support/node-process.ts'
import type { Disturbance } from './disturbances.ts'

/** Nodes on one store, what can be done to them, and a look into the store when they have ended. */
export interface Fleet {
  readonly nodes: readonly NodeProcess[]
  readonly disturbances: readonly Disturbance[]
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
