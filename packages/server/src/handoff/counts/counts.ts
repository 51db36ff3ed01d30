import { type RefusalCode, refusalCodes } from '@baton/protocol'
import type { SettlementsOutcome } from '../distinct-settlements.ts'
import type {
  CallBackResult,
  HandOffAnswers,
  HandOffBatch,
  PullResult,
  RenewalAnswer,
  StoreVerb,
  SweepResult,
} from '../store.ts'

/** Histogram buckets for durations, from the fastest commits up to a typical client timeout. */
export const DURATION_SECONDS = [
  0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
]

/** The buckets of small values, which are most frequent, are tested first. */
export class Histogram {
  /** Ascending and inclusive: a value belongs to the first bucket whose bound it does not exceed. */
  readonly bounds: readonly number[]
  /** Counts by bucket. The last bucket holds values above all bounds. */
  readonly counts: number[]
  sum = 0

  constructor(bounds: readonly number[]) {
    this.bounds = bounds
    this.counts = new Array(bounds.length + 1).fill(0)
  }

  add(value: number): void {
    const { bounds, counts } = this
    let at = 0
    while (at < bounds.length && value > (bounds[at] as number)) at += 1
    counts[at] = (counts[at] as number) + 1
    this.sum += value
  }
}

interface VerbCounts {
  readonly seconds: Histogram
  failures: number
}

/** Powers of two: a commit has one request with a single client, and hundreds with a fleet. */
const REQUESTS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024]

/** Counts this node's calls to its store. */
export class StoreCounts {
  readonly verbs = new Map<StoreVerb, VerbCounts>()
  /** The number of requests that shared a hand-off transaction. */
  readonly commitRequests = new Histogram(REQUESTS)
  /** Leases that expired, and how many of those used the last attempt, so that the partition is parked. */
  expired = 0
  expiredForGood = 0
  /** Leases revoked because the client of the pull disconnected. */
  undone = 0

  of(verb: StoreVerb): VerbCounts {
    let counts = this.verbs.get(verb)
    if (counts === undefined) {
      counts = { seconds: new Histogram(DURATION_SECONDS), failures: 0 }
      this.verbs.set(verb, counts)
    }
    return counts
  }

  noteCommit({ settles, renews, undos, callBacks, pulls }: HandOffBatch, { undone }: HandOffAnswers): void {
    const undoing = undos.length === 0 ? 0 : 1
    this.commitRequests.add(settles.length + renews.length + undoing + callBacks.length + pulls.length)
    this.undone += undone
  }

  noteSweep({ expired, parked }: SweepResult): void {
    this.expired += expired
    this.expiredForGood += parked
  }
}

type Refusals = Record<RefusalCode, number>

const noRefusals = () => Object.fromEntries(refusalCodes.map((code) => [code, 0])) as Refusals

/** Counts this node's answers, in plain numbers, so that counting is cheap. */
export class HandOffCounts {
  readonly calledBack = { accepted: 0, duplicate: 0 }
  readonly pulls = { partitions: 0, nothing: 0, repeated: 0 }
  readonly handedOut = { partitions: 0, records: 0 }
  readonly settlements: SettlementsOutcome['totals'] = { done: 0, failed: 0, released: 0 }
  renewed = 0
  readonly refused: Record<'settle' | 'renew', Refusals> = { settle: noRefusals(), renew: noRefusals() }

  noteCallBack(result: CallBackResult): void {
    if (result.kind !== 'stored') return
    this.calledBack.accepted += result.accepted
    this.calledBack.duplicate += result.duplicates
  }

  /** A repeated pull returns partitions that were counted before. */
  notePull({ partitions, repeated }: PullResult): void {
    if (repeated) this.pulls.repeated += 1
    else if (partitions.length === 0) this.pulls.nothing += 1
    else {
      this.pulls.partitions += 1
      this.handedOut.partitions += partitions.length
      for (const { recordCount } of partitions) this.handedOut.records += recordCount
    }
  }

  noteSettle({ totals, refused }: SettlementsOutcome): void {
    this.settlements.done += totals.done
    this.settlements.failed += totals.failed
    this.settlements.released += totals.released
    for (const { code } of refused) this.refused.settle[code] += 1
  }

  noteRenewals(renewals: readonly RenewalAnswer[]): void {
    for (const { refused } of renewals) {
      if (refused === null) this.renewed += 1
      else this.refused.renew[refused] += 1
    }
  }
}
