import { earlier } from '../../handoff/rules/earlier.ts'
import type { LeaseRef } from '../../handoff/rules/lease-id.ts'
import type { Policy } from '../../handoff/rules/policy.ts'
import { type Change, judgeRenewal, judgeSettlement, judgeUndo } from '../../handoff/rules/settlement.ts'
import type { LaneEntry } from '../../handoff/rules/task-entry.ts'
import type { RenewOrder, RenewResult, SettleOrder, SettleResult } from '../../handoff/store.ts'
import type { PartitionEntry } from './partition-entry.ts'
import type { Partitions } from './partitions.ts'
import { oneByOne, type Steps } from './steps.ts'

/** Everything that a worker says about a lease it was given. */
export class Settle {
  readonly #partitions: Partitions
  readonly #policy: Policy

  /** The earliest expiry or end of a back-off that this transaction brought about. */
  earliestDueAt: number | null = null

  /** The lanes that a partition was given back to, to be handed out again as soon as the lane is open. */
  returnedTo: LaneEntry[] = []

  constructor(partitions: Partitions, policy: Policy) {
    this.#partitions = partitions
    this.#policy = policy
  }

  settle(settles: readonly SettleOrder[], now: number): Steps<SettleResult[]> {
    const said = settles.map(({ settlements }) => settlements)
    return eachJudged(said, (settlement) => this.#settleOne(settlement, now))
  }

  renew(renews: readonly RenewOrder[], now: number): Steps<RenewResult[]> {
    const said = renews.map(({ leases }) => leases)
    return eachJudged(said, (lease) => this.#renewOne(lease, now))
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

  #settleOne({ lease, order }: SettleOrder['settlements'][number], now: number): SettleResult[number] {
    const partition = this.#partitions.get(lease.partition)
    const verdict = judgeSettlement(partition, lease, order, this.#policy, Math.random())
    if (verdict.refused !== null) return verdict.refused
    if (partition !== undefined && verdict.change !== null) this.#apply(partition, verdict.change, now)
    return null
  }

  #renewOne(lease: LeaseRef, now: number): RenewResult[number] {
    const partition = this.#partitions.get(lease.partition)
    const verdict = judgeRenewal(partition, lease)
    if (verdict.refused !== null || partition === undefined || verdict.change === null) {
      return { refused: verdict.refused ?? 'lease_unknown' }
    }
    const expiresAt = this.#apply(partition, verdict.change, now) ?? now
    return { refused: null, expiresAt, expiresInMillis: expiresAt - now }
  }

  #apply(partition: PartitionEntry, change: Change, now: number): number | null {
    const dueAt = this.#partitions.apply(partition, change, now)
    this.earliestDueAt = earlier(this.earliestDueAt, dueAt)
    // What is said late of one that is ready anyway gives nothing back.
    if (change.event !== null && change.to === 'ready') this.returnedTo.push(partition.lane)
    return dueAt
  }
}

/** Of each request what becomes of all that it names, one after the other. */
function* eachJudged<Item, Result>(
  requests: readonly (readonly Item[])[],
  judge: (item: Item) => Result,
): Steps<Result[][]> {
  const results: Result[][] = []
  for (const items of requests) {
    const judged: Result[] = []
    yield* oneByOne(items, (item) => judged.push(judge(item)))
    results.push(judged)
  }
  return results
}
