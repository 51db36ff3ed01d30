import { type LeaseRef, parseLeaseId } from './lease-id.ts'
import type { RefusalCode, SettlementOrder } from './settlement.ts'
import type { SettleResult } from './store.ts'

interface Mention {
  readonly order: SettlementOrder
  code: RefusalCode | null
}

/**
 * The leases that one array of settlements names. The first mention of a lease wins, also where it
 * changes nothing, like a late release; the others hear what became of it.
 */
export class Mentions {
  readonly #first = new Map<string, Mention>()
  readonly #known: Mention[] = []
  /** What is to be judged: each lease once, and only ids that can have come from here. */
  readonly settlements: { readonly lease: LeaseRef; readonly order: SettlementOrder }[] = []

  constructor(settlements: readonly { readonly leaseId: string; readonly order: SettlementOrder }[]) {
    for (const { leaseId, order } of settlements) {
      if (this.#first.has(leaseId)) continue
      const mention: Mention = { order, code: 'lease_unknown' }
      this.#first.set(leaseId, mention)
      const lease = parseLeaseId(leaseId)
      if (lease === undefined) continue
      this.#known.push(mention)
      this.settlements.push({ lease, order })
    }
  }

  /** Takes the verdicts, in the order of `settlements`. */
  judged(verdicts: SettleResult): void {
    for (const [at, mention] of this.#known.entries()) mention.code = verdicts[at] ?? null
  }

  /** `null` is settled as asked. */
  codeFor(leaseId: string, order: SettlementOrder): RefusalCode | null {
    const first = this.#first.get(leaseId)
    if (first === undefined) return 'lease_unknown'
    return first.code ?? (first.order.outcome === order.outcome ? null : 'lease_settled')
  }
}
