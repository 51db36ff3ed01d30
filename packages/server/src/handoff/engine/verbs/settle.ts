import { formatLeaseId, type LeaseRef } from '../../rules/lease-id.ts'
import {
  type Change,
  judgeRenewal,
  judgeSettlement,
  judgeUndo,
  type SettlementOrder,
} from '../../rules/settlement.ts'
import type { RenewOrder, RenewResult, SettleOrder, SettleResult } from '../../store.ts'
import type { Partition } from '../state/memory-rows.ts'
import { load, type Steps, type Transaction, yieldToEventLoop } from '../transaction.ts'
import { applyChange, leaseStateOf, policyFor } from './apply-change.ts'

/** Everything that workers or timeouts do to leases. */

export function* settle(tx: Transaction, orders: readonly SettleOrder[]): Steps<SettleResult[]> {
  const results: SettleResult[] = []
  for (const { instance, settlements, tables = null } of orders) {
    const verdicts: SettleResult[number][] = []
    for (const [at, { lease, order }] of settlements.entries()) {
      if (settlements.length > 1) yield* yieldToEventLoop(at)
      const partition = within(
        tables,
        tx.memory.partitions.get(lease.partition) ?? (yield* partitionOf(tx, lease)),
      )
      const verdict = judgeSettlement(
        leaseStateOf(partition),
        lease,
        order,
        policyFor(tx, partition),
        tx.random(),
      )
      if (verdict.refused === null && verdict.change !== null && partition !== undefined)
        settleOne(tx, partition, verdict.change, instance, order)
      if (verdict.refused === null && order.outcome === 'failed' && partition?.state === 'parked')
        tx.parkedLeases.push(formatLeaseId(lease))
      verdicts.push(verdict.refused)
    }
    results.push(verdicts)
  }
  return results
}

function settleOne(
  tx: Transaction,
  partition: Partition,
  change: Change,
  instance: string | null,
  { outcome }: SettlementOrder,
): void {
  applyChange(tx, partition, change)
  if (instance !== null) tx.totalsOf(instance, 'worker')[outcome] += 1
}

export function* renew(tx: Transaction, orders: readonly RenewOrder[]): Steps<RenewResult[]> {
  const results: RenewResult[] = []
  for (const { leases, tables = null } of orders) {
    const verdicts: RenewResult[number][] = []
    for (const [at, lease] of leases.entries()) {
      yield* yieldToEventLoop(at)
      const partition = tx.memory.partitions.get(lease.partition) ?? (yield* partitionOf(tx, lease))
      verdicts.push(renewOne(tx, within(tables, partition), lease))
    }
    results.push(verdicts)
  }
  return results
}

/** For a caller that is limited to some tables, partitions of other tables do not exist. */
const within = (tables: readonly string[] | null, partition: Partition | undefined): Partition | undefined =>
  tables === null || partition === undefined || tables.includes(partition.computeTable)
    ? partition
    : undefined

function renewOne(tx: Transaction, partition: Partition | undefined, lease: LeaseRef): RenewResult[number] {
  const verdict = judgeRenewal(leaseStateOf(partition), lease)
  if (verdict.refused !== null || verdict.change === null || partition === undefined)
    return { refused: verdict.refused ?? 'lease_unknown' }
  applyChange(tx, partition, verdict.change)
  const expiresAt = partition.dueAt ?? tx.now
  return { refused: null, expiresAt, expiresInMillis: expiresAt - tx.now }
}

/** Revokes leases of pulls whose client disconnected before the answer, as if they had never been granted. */
export function* undo(tx: Transaction, leases: readonly LeaseRef[]): Steps<number> {
  let undone = 0
  for (const lease of leases) {
    const partition = tx.memory.partitions.get(lease.partition) ?? (yield* partitionOf(tx, lease))
    const change = judgeUndo(leaseStateOf(partition), lease)
    if (partition === undefined || change === null) continue
    applyChange(tx, partition, change)
    undone += 1
  }
  return undone
}

/** Loads all partitions that a batch names and memory lacks, with one load. */
export function* loadLeases(tx: Transaction, leases: Iterable<LeaseRef>): Steps<void> {
  const missing = new Set<number>()
  for (const { partition } of leases) if (!tx.memory.partitions.has(partition)) missing.add(partition)
  if (missing.size > 0) yield* load(tx, { partitions: [...missing] })
}

function* partitionOf(tx: Transaction, { partition }: LeaseRef): Steps<Partition | undefined> {
  // Ids that were never issued are not looked up.
  if (partition >= tx.memory.nextIds.partition) return undefined
  yield* load(tx, { partitions: [partition] })
  return tx.memory.partitions.get(partition)
}
