import type { PartitionState } from '../../handoff/rules/life-cycle.ts'
import type { Policy } from '../../handoff/rules/policy.ts'
import { judgeCancellation, judgeExpiry } from '../../handoff/rules/settlement.ts'
import type { SweepOrder, SweepResult } from '../../handoff/store.ts'
import type { Consequences } from './consequences.ts'
import type { PartitionEntry } from './partition-entry.ts'
import type { Partitions } from './partitions.ts'

export class Sweep {
  readonly #partitions: Partitions
  readonly #policy: Policy

  constructor(partitions: Partitions, policy: Policy) {
    this.#partitions = partitions
    this.#policy = policy
  }

  /** Leases before back-offs: one that ends with no back-off at all is ready within the same sweep. */
  run({ limit, expireLeases }: SweepOrder, now: number, consequences: Consequences): SweepResult {
    const leases = expireLeases ? this.#partitions.dueLeases(now, limit) : []
    let parked = 0
    for (const partition of leases) if (this.#expire(partition, now, consequences) === 'parked') parked += 1
    const backoffs = this.#partitions.dueBackoffs(now, limit)
    let woken = 0
    for (const partition of backoffs) {
      if (partition.taskCancelled) {
        this.#partitions.apply(partition, judgeCancellation(partition), now, consequences)
      } else {
        this.#partitions.wake(partition)
        woken += 1
      }
    }
    const nextDueAt = this.#partitions.nextDueAt(expireLeases)
    return {
      woken,
      expired: leases.length,
      parked,
      more: leases.length === limit || backoffs.length === limit,
      nextDueInMillis: nextDueAt === null ? null : Math.max(0, nextDueAt - now),
    }
  }

  #expire(partition: PartitionEntry, now: number, consequences: Consequences): PartitionState {
    const change = partition.taskCancelled
      ? judgeCancellation(partition)
      : judgeExpiry(partition, this.#policy, Math.random())
    this.#partitions.apply(partition, change, now, consequences)
    return change.to
  }
}
