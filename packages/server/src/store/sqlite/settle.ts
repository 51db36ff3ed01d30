import type { LeaseRef } from '../../handoff/rules/lease-id.ts'
import type { Policy } from '../../handoff/rules/policy.ts'
import { judgeRenewal, judgeSettlement, judgeUndo } from '../../handoff/rules/settlement.ts'
import type { RenewOrder, RenewResult, SettleOrder, SettleResult } from '../../handoff/store.ts'
import type { Consequences } from './consequences.ts'
import type { Partitions } from './partitions.ts'
import { oneByOne, type Steps } from './steps.ts'

/** Everything that a worker says about a lease it was given. */
export class Settle {
  readonly #partitions: Partitions
  readonly #policy: Policy

  constructor(partitions: Partitions, policy: Policy) {
    this.#partitions = partitions
    this.#policy = policy
  }

  settle(settles: readonly SettleOrder[], now: number, consequences: Consequences): Steps<SettleResult[]> {
    const said = settles.map(({ settlements }) => settlements)
    return eachJudged(said, (settlement) => this.#settleOne(settlement, now, consequences))
  }

  renew(renews: readonly RenewOrder[], now: number, consequences: Consequences): Steps<RenewResult[]> {
    const said = renews.map(({ leases }) => leases)
    return eachJudged(said, (lease) => this.#renewOne(lease, now, consequences))
  }

  /** Returns how many partitions went back. */
  undo(leases: readonly LeaseRef[], now: number, consequences: Consequences): number {
    let undone = 0
    for (const lease of leases) {
      const partition = this.#partitions.get(lease.partition)
      const change = judgeUndo(partition, lease)
      if (partition === undefined || change === null) continue
      this.#partitions.apply(partition, change, now, consequences)
      undone += 1
    }
    return undone
  }

  #settleOne(
    { lease, order }: SettleOrder['settlements'][number],
    now: number,
    consequences: Consequences,
  ): SettleResult[number] {
    const partition = this.#partitions.get(lease.partition)
    const verdict = judgeSettlement(partition, lease, order, this.#policy, Math.random())
    if (verdict.refused !== null) return verdict.refused
    if (partition !== undefined && verdict.change !== null)
      this.#partitions.apply(partition, verdict.change, now, consequences)
    return null
  }

  #renewOne(lease: LeaseRef, now: number, consequences: Consequences): RenewResult[number] {
    const partition = this.#partitions.get(lease.partition)
    const verdict = judgeRenewal(partition, lease)
    if (verdict.refused !== null || partition === undefined || verdict.change === null) {
      return { refused: verdict.refused ?? 'lease_unknown' }
    }
    const expiresAt = this.#partitions.apply(partition, verdict.change, now, consequences) ?? now
    return { refused: null, expiresAt, expiresInMillis: expiresAt - now }
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
