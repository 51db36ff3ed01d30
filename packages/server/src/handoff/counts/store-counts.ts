import type { HandOffAnswers, HandOffBatch, Store, SweepResult } from '../store.ts'
import { Distribution, DURATION_SECONDS } from './distribution.ts'

export type StoreVerb = Exclude<keyof Store, 'audit' | 'close' | 'onHint' | 'leads' | 'batching'>

export interface VerbCounts {
  readonly seconds: Distribution
  failures: number
}

/** Doubling: a lone client has commits of one order, a fleet those of hundreds. */
const ORDERS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024]

/** What this node has asked of its store, how long that took, and what only the store can tell. */
export class StoreCounts {
  readonly verbs = new Map<StoreVerb, VerbCounts>()
  /** How many orders shared a transaction of the hand-off. */
  readonly commitOrders = new Distribution(ORDERS)
  /** Leases that ended by themselves, and how many of them left no attempt, so that their partition is parked. */
  expired = 0
  expiredForGood = 0
  /** Leases taken back because their puller was gone. */
  undone = 0

  of(verb: StoreVerb): VerbCounts {
    let counts = this.verbs.get(verb)
    if (counts === undefined) {
      counts = { seconds: new Distribution(DURATION_SECONDS), failures: 0 }
      this.verbs.set(verb, counts)
    }
    return counts
  }

  noteCommit({ settles, renews, undos, callBacks, pulls }: HandOffBatch, { undone }: HandOffAnswers): void {
    const undoing = undos.length === 0 ? 0 : 1
    this.commitOrders.add(settles.length + renews.length + undoing + callBacks.length + pulls.length)
    this.undone += undone
  }

  noteSweep({ expired, parked }: SweepResult): void {
    this.expired += expired
    this.expiredForGood += parked
  }
}
