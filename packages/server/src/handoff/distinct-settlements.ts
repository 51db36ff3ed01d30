import { parseLeaseId } from './lease-id.ts'
import type { RefusalCode, ReportedOutcome } from './rules/settlement.ts'
import type { BatchedSettle, SettleRequest, SettleResult } from './store.ts'

type NamedSettlement = SettleRequest['settlements'][number]

export interface SettlementsOutcome {
  readonly settled: string[]
  readonly refused: { readonly leaseId: string; readonly code: RefusalCode }[]
  readonly totals: Record<ReportedOutcome['outcome'], number>
}

/** Marks an id that is not a lease id of this service, so that the store is not queried. */
const NOT_JUDGED = -1

/** The leases that one array of settlements names. The first mention wins, even if it changes nothing. */
export class DistinctSettlements {
  /** The settlements to process: each lease once, and only valid lease ids. */
  readonly settlements: BatchedSettle['settlements'][number][] = []
  readonly #mentions: readonly NamedSettlement[]
  /** For each mention, the index in `settlements` that decides it, or NOT_JUDGED. */
  readonly #judgedAt: number[] = []

  constructor(mentions: readonly NamedSettlement[]) {
    this.#mentions = mentions
    // Most arrays have a single settlement and need no map.
    const known = mentions.length > 1 ? new Map<string, number>() : undefined
    for (const { leaseId, reported } of mentions) {
      const before = known?.get(leaseId)
      const index = before ?? this.#place(leaseId, reported)
      if (before === undefined) known?.set(leaseId, index)
      this.#judgedAt.push(index)
    }
  }

  outcome(verdicts: SettleResult): SettlementsOutcome {
    const outcome: SettlementsOutcome = {
      settled: [],
      refused: [],
      totals: { done: 0, failed: 0, released: 0 },
    }
    let mention = 0
    for (const { leaseId, reported } of this.#mentions) {
      const code = this.#codeOf(reported, this.#judgedAt[mention] ?? NOT_JUDGED, verdicts)
      mention += 1
      if (code !== null) outcome.refused.push({ leaseId, code })
      else {
        outcome.settled.push(leaseId)
        outcome.totals[reported.outcome] += 1
      }
    }
    return outcome
  }

  /** `null` means settled as requested. */
  #codeOf({ outcome }: ReportedOutcome, judgedAt: number, verdicts: SettleResult): RefusalCode | null {
    const first = this.settlements[judgedAt]
    if (first === undefined) return 'lease_unknown'
    return verdicts[judgedAt] ?? (first.reported.outcome === outcome ? null : 'lease_settled')
  }

  #place(leaseId: string, reported: ReportedOutcome): number {
    const lease = parseLeaseId(leaseId)
    return lease === undefined ? NOT_JUDGED : this.settlements.push({ lease, reported }) - 1
  }
}
