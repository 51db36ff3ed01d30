import type { LeaseRef } from '../../handoff/lease-id.ts'
import type { Policy } from '../../handoff/policy.ts'
import { judgeRenewal, judgeSettlement, judgeUndo } from '../../handoff/settlement.ts'
import type { RenewOrder, RenewResult, SettleOrder, SettleResult } from '../../handoff/store.ts'
import type { Partitions } from './partitions.ts'

/** Everything that a worker says about a lease it was given. */
export class Settle {
  readonly #partitions: Partitions
  readonly #policy: Policy

  constructor(partitions: Partitions, policy: Policy) {
    this.#partitions = partitions
    this.#policy = policy
  }

  /** The earliest expiry or end of a back-off that this transaction brought about. */
  earliestDueAt: number | null = null

  /** Partitions given back, to be handed out again at once. */
  returned = 0

  settle(settles: readonly SettleOrder[], now: number): SettleResult[] {
    this.returned = 0
    return settles.map(({ settlements }) =>
      settlements.map(({ lease, order }) => {
        const partition = this.#partitions.get(lease.partition)
        const verdict = judgeSettlement(partition, lease, order, this.#policy, Math.random())
        if (verdict.refused !== null) return verdict.refused
        if (partition !== undefined && verdict.change !== null) {
          this.#watch(this.#partitions.apply(partition, verdict.change, now))
          if (verdict.change.to === 'ready') this.returned += 1
        }
        return null
      }),
    )
  }

  renew(renews: readonly RenewOrder[], now: number): RenewResult[] {
    return renews.map(({ leases }) =>
      leases.map((lease) => {
        const partition = this.#partitions.get(lease.partition)
        const verdict = judgeRenewal(partition, lease)
        if (verdict.refused !== null || partition === undefined || verdict.change === null) {
          return { refused: verdict.refused ?? 'lease_unknown' }
        }
        const expiresAt = this.#partitions.apply(partition, verdict.change, now) ?? now
        this.#watch(expiresAt)
        return { refused: null, expiresAt, expiresInMillis: expiresAt - now }
      }),
    )
  }

  /** Returns how many partitions went back. */
  undo(leases: readonly LeaseRef[], now: number): number {
    let undone = 0
    for (const lease of leases) {
      const partition = this.#partitions.get(lease.partition)
      const change = judgeUndo(partition, lease)
      if (partition === undefined || change === null) continue
      this.#partitions.apply(partition, change, now)
      undone += 1
    }
    return undone
  }

  #watch(dueAt: number | null): void {
    if (dueAt !== null && (this.earliestDueAt === null || dueAt < this.earliestDueAt))
      this.earliestDueAt = dueAt
  }
}
