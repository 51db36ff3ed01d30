import { earlier } from '../../handoff/earlier.ts'
import type { LeaseRef } from '../../handoff/lease-id.ts'
import type { Policy } from '../../handoff/policy.ts'
import { type Change, judgeRenewal, judgeSettlement, judgeUndo } from '../../handoff/settlement.ts'
import type { RenewOrder, RenewResult, SettleOrder, SettleResult } from '../../handoff/store.ts'
import type { LaneEntry } from '../../handoff/task-entry.ts'
import type { PartitionEntry } from './partition-entry.ts'
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

  /** The lanes that a partition was given back to, to be handed out again as soon as the lane is open. */
  returnedTo: LaneEntry[] = []

  settle(settles: readonly SettleOrder[], now: number): SettleResult[] {
    return settles.map(({ settlements }) =>
      settlements.map(({ lease, order }) => {
        const partition = this.#partitions.get(lease.partition)
        const verdict = judgeSettlement(partition, lease, order, this.#policy, Math.random())
        if (verdict.refused !== null) return verdict.refused
        if (partition !== undefined && verdict.change !== null) this.#apply(partition, verdict.change, now)
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
        const expiresAt = this.#apply(partition, verdict.change, now) ?? now
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
      this.#apply(partition, change, now)
      undone += 1
    }
    return undone
  }

  #apply(partition: PartitionEntry, change: Change, now: number): number | null {
    const dueAt = this.#partitions.apply(partition, change, now)
    this.earliestDueAt = earlier(this.earliestDueAt, dueAt)
    // What is said late of one that is ready anyway gives nothing back.
    if (change.event !== null && change.to === 'ready') this.returnedTo.push(partition.lane)
    return dueAt
  }
}
