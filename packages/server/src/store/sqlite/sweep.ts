import { next } from '../../handoff/life-cycle.ts'
import type { Policy } from '../../handoff/policy.ts'
import { judgeExpiry } from '../../handoff/settlement.ts'
import type { SweepOrder, SweepResult } from '../../handoff/store.ts'
import type { PartitionEntry, Partitions } from './partitions.ts'

export class Sweep {
  readonly #partitions: Partitions
  readonly #policy: Policy

  constructor(partitions: Partitions, policy: Policy) {
    this.#partitions = partitions
    this.#policy = policy
  }

  /** Leases before back-offs: one that ends with no back-off at all is ready within the same sweep. */
  run({ limit, expireLeases }: SweepOrder, now: number): SweepResult {
    const expired = expireLeases ? this.#partitions.dueLeases(now, limit) : []
    let parked = 0
    for (const partition of expired) if (this.#expire(partition, now) === 'parked') parked += 1
    const woken = this.#partitions.dueBackoffs(now, limit)
    for (const partition of woken) this.#partitions.wake(partition)
    const nextDueAt = this.#partitions.nextDueAt(expireLeases)
    return {
      woken: woken.length,
      expired: expired.length,
      parked,
      more: expired.length === limit || woken.length === limit,
      nextDueInMillis: nextDueAt === null ? null : Math.max(0, nextDueAt - now),
    }
  }

  #expire(partition: PartitionEntry, now: number): string {
    const change = partition.taskCancelled
      ? {
          ...judgeExpiry(partition, this.#policy, 0),
          event: 'cancel' as const,
          to: next(partition.state, 'cancel'),
          wasted: 0,
        }
      : judgeExpiry(partition, this.#policy, Math.random())
    this.#partitions.apply(partition, change, now)
    return change.to
  }
}
