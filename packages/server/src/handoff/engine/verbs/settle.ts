import { formatLeaseId, type LeaseRef } from '../../lease-id.ts'
import { countDuration, truncated, withAmended, withEnded, withoutExpired } from '../../rules/attempts.ts'
import { isAtLimit, isTableAtLimit, leaseMillis, type Policy, policyOf } from '../../rules/policy.ts'
import { withReported } from '../../rules/progress.ts'
import {
  type Change,
  type GivenCheckpoint,
  judgeRenewal,
  judgeSettlement,
  judgeUndo,
  type LeaseState,
  type ReportedOutcome,
} from '../../rules/settlement.ts'
import { countReport } from '../../rules/task.ts'
import type { BatchedRenew, BatchedSettle, RenewedLease, RenewResult, SettleResult } from '../../store.ts'
import { checkpointsOf } from '../checkpoints.ts'
import { addPartitions } from '../read-rows.ts'
import { type Lane, type Partition, tableOf } from '../state/memory-rows.ts'
import { forgetExpiry, noteAttempt } from '../task-updates.ts'
import { isEndOfSlice, type Transaction } from '../transaction.ts'

/** Settles, renews and undoes leases. `applyChange` is also how leases expire and are revoked. */

export async function settle(tx: Transaction, batched: BatchedSettle): Promise<SettleResult> {
  const { instance, settlements, tables = null } = batched
  const given = settlements.flatMap(({ lease, reported: { outcome, checkpoint } }) =>
    outcome === 'done' || checkpoint === undefined ? [] : [lease],
  )
  const save = given.length === 0 ? undefined : await checkpointSaver(tx, given)
  const verdicts: SettleResult[number][] = []
  for (const [at, { lease, reported }] of settlements.entries()) {
    if (isEndOfSlice(at)) await tx.nextIteration()
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

function settleOne(
  tx: Transaction,
  partition: Partition,
  change: Change,
  instance: string | null,
  { outcome }: ReportedOutcome,
): void {
  applyChange(tx, partition, change)
  if (instance !== null) tx.totalsOf(instance, 'worker')[outcome] += 1
}

export async function renew(tx: Transaction, { leases, tables = null }: BatchedRenew): Promise<RenewResult> {
  const given = leases.filter(({ checkpoint }) => checkpoint !== undefined)
  const save = given.length === 0 ? undefined : await checkpointSaver(tx, given)
  const verdicts: RenewResult[number][] = []
  for (const [at, lease] of leases.entries()) {
    if (isEndOfSlice(at)) await tx.nextIteration()
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

/**
 * Revokes a lease of a pull whose client disconnected before the answer, as if it had never been granted.
 * Returns false if nothing was revoked.
 */
export function undo(tx: Transaction, lease: LeaseRef): boolean {
  const partition = tx.memory.partitions.get(lease.partition)
  const change = judgeUndo(leaseStateOf(partition), lease)
  if (partition === undefined || change === null) return false
  applyChange(tx, partition, change)
  return true
}

/**
 * Loads all partitions that a batch names and memory lacks, with one read. Ids that were never issued are not
 * looked up.
 */
export async function loadLeases(tx: Transaction, leases: Iterable<LeaseRef>): Promise<void> {
  const { partitions, nextIds } = tx.memory
  const missing = new Set<number>()
  for (const { partition } of leases)
    if (!partitions.has(partition) && partition < nextIds.partition) missing.add(partition)
  if (missing.size > 0) await addPartitions(tx, await tx.disk.partitionsById([...missing]))
}

/** Applies the decision about a lease. */
export function applyChange(tx: Transaction, partition: Partition, change: Change): void {
  const { parentLane: lane, recordCount } = partition
  const { parentTask: task } = lane
  tx.touchPartition(partition)
  if (change.wasted !== 0) {
    tx.touchTask(task)
    task.attemptsWasted += change.wasted
  }
  if (change.history !== 'keep') recordAttempt(tx, partition, change)
  if (change.to === 'done' && change.event !== null) {
    noteEnded(tx, partition, change, change.attempts)
    // If the lease ended before, its attempt has counted, or does not count.
    if (change.history === 'keep') noteAttempt(tx, task, false)
  }
  if (change.reason !== undefined) partition.reason = change.reason
  partition.outcome = change.outcome
  partition.attempts = change.attempts
  partition.releases = change.releases
  if (change.event === null) return
  const { to } = change
  const { state: from } = partition
  const waited = from === 'ready'
  if (waited) tx.waiting.remove(partition)
  if (from === 'leased' && to !== 'leased') {
    tx.endLease(partition)
    partition.progress = null
  }
  tx.count(partition, to)
  partition.state = to
  partition.dueAt = null
  switch (to) {
    case 'ready':
      partition.dueAt = tx.now
      tx.waiting.add(partition)
      break
    case 'leased':
      partition.dueAt = tx.now + leaseMillis(policyFor(tx, partition), recordCount)
      tx.memory.leases.put(partition)
      tx.leaseEndsAt(partition.dueAt)
      break
    case 'delayed':
      partition.dueAt = tx.now + change.delayMillis
      tx.backoffEndsAt(partition.dueAt)
      break
    case 'parked':
      if (from !== 'parked') tx.parked.push(partition)
      break
    case 'done':
      partition.settledAt = tx.now
      partition.reportedRecords = change.records ?? null
      tx.countFinished(partition)
      if (partition.leasedAt !== null) countAttempt(lane, tx.now - partition.leasedAt)
      if (partition.checkpointAt !== null) tx.setCheckpoint(partition, null)
      if (partition.reportedRecords !== null) countReport(task, recordCount, partition.reportedRecords)
      break
    case 'cancelled':
      break
  }
  if (waited) tx.waiting.update(lane)
}

/**
 * Counts an attempt that finished its partition. Lane and task are already touched when the states are
 * counted.
 */
function countAttempt(lane: Lane, millis: number): void {
  countDuration(lane.parentTask.durations, millis)
  lane.busyMillis += Math.max(0, millis)
  lane.attemptsDone += 1
}

/** Updates the attempt history and the failures of the task after a change of a lease. */
function recordAttempt(tx: Transaction, partition: Partition, change: Change): void {
  const { history, outcome, wasted, reason = null } = change
  const { parentTask: task } = partition.parentLane
  const endedAs = partition.outcome === 'revoked' ? 'revoked' : 'expired'
  switch (history) {
    case 'append':
      if (outcome === null) return
      partition.history = withEnded(partition, outcome, reason, tx.now)
      noteEnded(tx, partition, change, partition.attempts + 1)
      if (outcome === 'failed' || outcome === 'expired' || outcome === 'revoked')
        partition.failure = tx.countFailure(task, outcome, reason)
      // What an operator revoked says nothing about the task.
      if (outcome === 'failed' || outcome === 'expired') noteAttempt(tx, task, true)
      break
    case 'amend':
      partition.history = withAmended(partition.history, reason)
      noteEnded(tx, partition, change, partition.attempts)
      tx.uncountEnd(task, endedAs)
      regroup(tx, partition, tx.countFailure(task, 'failed', reason))
      break
    case 'withdraw':
      partition.history = withoutExpired(partition.history)
      // A late settlement as done leaves the expiry counted, because the attempt was treated as wasted. A
      // renewal withdraws it.
      if (wasted < 0) {
        tx.uncountEnd(task, endedAs)
        forgetExpiry(tx, task)
      }
      break
    case 'keep':
      break
  }
}

/** The reason of a late failure replaces the expiry, also if that parked the partition. */
function regroup(tx: Transaction, partition: Partition, failure: string): void {
  const { state, failure: before, recordCount, parentLane: lane } = partition
  partition.failure = failure
  if (state !== 'parked') return
  tx.countParked(lane.parentTask, failure, 1, recordCount)
  if (before !== null) tx.countParked(lane.parentTask, before, -1, recordCount)
}

const REASON_NOTED = 512

/** For the list of the holder's attempts. */
function noteEnded(
  tx: Transaction,
  partition: Partition,
  { outcome, reason = null, records = null }: Change,
  attempt: number,
): void {
  const { holder } = partition
  if (holder === null || outcome === null) return
  tx.endedAttempts.push([
    holder,
    {
      ...namedOf(partition),
      partition: partition.id,
      attempt,
      startedAt: partition.leasedAt ?? tx.now,
      endedAt: tx.now,
      outcome,
      reason: reason === null ? null : truncated(reason, REASON_NOTED),
      records,
      isLate: partition.outcome !== null,
    },
  ])
}

/** What lists of leases and attempts say about a partition. */
export function namedOf({ parentLane: lane, index, spelling, computeTable, recordCount }: Partition) {
  return {
    taskId: lane.parentTask.taskId,
    level: lane.level,
    index,
    spelling,
    computeTableName: computeTable,
    recordCount,
  }
}

export function leaseStateOf(partition: Partition): LeaseState
export function leaseStateOf(partition: Partition | undefined): LeaseState | undefined
export function leaseStateOf(partition: Partition | undefined): LeaseState | undefined {
  if (partition === undefined) return undefined
  const { state, leaseNumber, secret, outcome, attempts, releases, parentLane: lane } = partition
  return {
    state,
    leaseNumber,
    secret,
    outcome,
    attempts,
    releases,
    taskCancelled: lane.parentTask.cancelled,
    atLimit: isAtLimit(lane.parentTask) || isTableAtLimit(tableOf(partition)),
  }
}

export function policyFor(tx: Transaction, partition: Partition | undefined): Policy {
  return partition === undefined ? tx.policy : policyOf(tx.policy, partition.parentLane.parentTask)
}
