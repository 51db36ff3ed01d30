import { formatLeaseId, type LeaseRef } from '../../lease-id.ts'
import { withReported } from '../../rules/progress.ts'
import {
  type Change,
  type GivenCheckpoint,
  judgeRenewal,
  judgeSettlement,
  judgeUndo,
  type ReportedOutcome,
} from '../../rules/settlement.ts'
import type { BatchedRenew, BatchedSettle, RenewedLease, RenewResult, SettleResult } from '../../store.ts'
import { checkpointsOf } from '../checkpoints.ts'
import { applyChange, leaseStateOf, policyFor } from '../lease-changes.ts'
import { addPartitions } from '../read-rows.ts'
import type { Partition } from '../state/memory-rows.ts'
import { isEndOfSlice, type Transaction } from '../transaction.ts'

// Settles, renews and undoes leases.

export async function settle(tx: Transaction, batched: BatchedSettle): Promise<SettleResult> {
  const { instance, settlements, tables = null } = batched
  const given = settlements.filter(givesCheckpoint).map(({ lease }) => lease)
  const save = given.length === 0 ? undefined : await checkpointSaver(tx, given)
  const verdicts: SettleResult[number][] = []
  for (const { lease, reported } of settlements) {
    if (isEndOfSlice(verdicts.length)) await tx.nextIteration()
    const partition = within(tables, tx.memory.partitions.get(lease.partition))
    const verdict = judgeSettlement(
      leaseStateOf(partition),
      lease,
      reported,
      policyFor(tx, partition),
      tx.random(),
    )
    if (verdict.refused === null && verdict.change !== null && partition !== undefined)
      settleOne(tx, partition, verdict.change, instance, reported)
    if (verdict.refused === null && reported.outcome !== 'done' && partition !== undefined)
      save?.(partition, reported.checkpoint)
    if (verdict.refused === null && reported.outcome === 'failed' && partition?.state === 'parked')
      tx.parkedLeases.push(formatLeaseId(lease))
    verdicts.push(verdict.refused)
  }
  return verdicts
}

const givesCheckpoint = ({ reported: { outcome, checkpoint } }: BatchedSettle['settlements'][number]) =>
  outcome !== 'done' && checkpoint !== undefined

function settleOne(
  tx: Transaction,
  partition: Partition,
  change: Change,
  instance: string | null,
  { outcome }: ReportedOutcome,
): void {
  applyChange(tx, partition, change)
  if (instance !== null) tx.instances.totalsOf(instance, 'worker')[outcome] += 1
}

export async function renew(tx: Transaction, { leases, tables = null }: BatchedRenew): Promise<RenewResult> {
  const given = leases.filter(({ checkpoint }) => checkpoint !== undefined)
  const save = given.length === 0 ? undefined : await checkpointSaver(tx, given)
  const verdicts: RenewResult[number][] = []
  for (const lease of leases) {
    if (isEndOfSlice(verdicts.length)) await tx.nextIteration()
    const partition = within(tables, tx.memory.partitions.get(lease.partition))
    const verdict = renewOne(tx, partition, lease)
    if (verdict.refused === null && partition !== undefined) save?.(partition, lease.checkpoint)
    verdicts.push(verdict)
  }
  return verdicts
}

/** Null clears it, undefined keeps it. */
type SaveCheckpoint = (partition: Partition, given: GivenCheckpoint) => void

/** Saves checkpoints that differ from the last ones of these partitions. */
async function checkpointSaver(tx: Transaction, leases: readonly LeaseRef[]): Promise<SaveCheckpoint> {
  const partitions = leases.flatMap(({ partition }) => tx.memory.partitions.get(partition) ?? [])
  const known = await checkpointsOf(tx.memory, tx.disk, partitions)
  return (partition, checkpoint) => {
    if (checkpoint === undefined || checkpoint === (known.get(partition.id) ?? null)) return
    tx.setCheckpoint(partition, checkpoint)
  }
}

/** For a caller that is limited to some tables, partitions of other tables do not exist. */
const within = (tables: readonly string[] | null, partition: Partition | undefined): Partition | undefined =>
  tables === null || partition === undefined || tables.includes(partition.computeTable)
    ? partition
    : undefined

function renewOne(
  tx: Transaction,
  partition: Partition | undefined,
  lease: RenewedLease,
): RenewResult[number] {
  const verdict = judgeRenewal(leaseStateOf(partition), lease, lease.checkpoint)
  if (verdict.refused !== null || verdict.change === null || partition === undefined)
    return { refused: verdict.refused ?? 'lease_unknown' }
  applyChange(tx, partition, verdict.change)
  if (lease.progress !== undefined)
    partition.progress = withReported(partition.progress, lease.progress, tx.now)
  const expiresAt = partition.dueAt ?? tx.now
  return { refused: null, expiresAt, expiresInMillis: expiresAt - tx.now }
}

/** Revokes a lease as if it had never been granted: its client was gone before the answer. */
export function undo(tx: Transaction, lease: LeaseRef): boolean {
  const partition = tx.memory.partitions.get(lease.partition)
  const change = judgeUndo(leaseStateOf(partition), lease)
  if (partition === undefined || change === null) return false
  applyChange(tx, partition, change)
  return true
}

/** Loads what memory lacks, with one read. Ids that were never issued are not looked up. */
export async function loadLeases(tx: Transaction, leases: Iterable<LeaseRef>): Promise<void> {
  const { partitions, nextIds } = tx.memory
  const missing = new Set<number>()
  for (const { partition } of leases)
    if (!partitions.has(partition) && partition < nextIds.partition) missing.add(partition)
  if (missing.size > 0) await addPartitions(tx, await tx.disk.partitionsById([...missing]))
}
