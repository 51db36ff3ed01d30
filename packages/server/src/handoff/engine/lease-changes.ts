import type { FailureOutcome } from '@baton/protocol'
import { withAmended, withEnded, withoutExpired } from '../rules/attempts.ts'
import { countDuration } from '../rules/durations.ts'
import { failureReason } from '../rules/failure-reason.ts'
import { countFailure, countParked, uncountEnd } from '../rules/failures.ts'
import { isAtLimit, isTableAtLimit, leaseMillis, type Policy, policyOf } from '../rules/policy.ts'
import type { Change, LeaseState } from '../rules/settlement.ts'
import { countReport } from '../rules/task.ts'
import { truncated } from '../rules/truncated.ts'
import { type Lane, type Partition, type Task, tableOf } from './state/memory-rows.ts'
import { forgetExpiry, noteAttempt } from './task-updates.ts'
import type { Transaction } from './transaction.ts'

// What settling, renewing, undoing, expiry and revocation do to a partition once the rules have decided.

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
      tx.finished.add(partition)
      if (partition.leasedAt !== null) countAttempt(lane, tx.now - partition.leasedAt)
      if (partition.checkpointAt !== null) tx.setCheckpoint(partition, null)
      if (partition.reportedRecords !== null) countReport(task, recordCount, partition.reportedRecords)
      break
    case 'cancelled':
      break
  }
  if (waited) tx.waiting.update(lane)
}

/** Lane and task are already touched when the states are counted. */
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
        partition.failure = addFailure(tx, task, outcome, reason)
      // What an operator revoked says nothing about the task.
      if (outcome === 'failed' || outcome === 'expired') noteAttempt(tx, task, true)
      break
    case 'amend':
      partition.history = withAmended(partition.history, reason)
      noteEnded(tx, partition, change, partition.attempts)
      tx.setFailures(task, uncountEnd(task.failures ?? [], endedAs))
      regroup(tx, partition, addFailure(tx, task, 'failed', reason))
      break
    case 'withdraw':
      partition.history = withoutExpired(partition.history)
      // A late settlement as done leaves the expiry counted, because the attempt was treated as wasted. A
      // renewal withdraws it.
      if (wasted < 0) {
        tx.setFailures(task, uncountEnd(task.failures ?? [], endedAs))
        forgetExpiry(tx, task)
      }
      break
    case 'keep':
      break
  }
}

/** Returns the key of the group. */
function addFailure(tx: Transaction, task: Task, outcome: FailureOutcome, reason: string | null): string {
  const { groups, key } = countFailure(task.failures ?? [], outcome, failureReason(outcome, reason), tx.now)
  tx.setFailures(task, groups)
  return key
}

/** The reason of a late failure replaces the expiry, also if that parked the partition. */
function regroup(tx: Transaction, partition: Partition, failure: string): void {
  const { state, failure: before, recordCount, parentLane: lane } = partition
  partition.failure = failure
  if (state !== 'parked') return
  const { parentTask: task } = lane
  tx.setFailures(task, countParked(task.failures ?? [], failure, 1, recordCount))
  if (before !== null) tx.setFailures(task, countParked(task.failures ?? [], before, -1, recordCount))
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
  tx.endedAttempts.push({
    ...namedOf(partition),
    partition: partition.id,
    holder,
    attempt,
    startedAt: partition.leasedAt ?? tx.now,
    endedAt: tx.now,
    outcome,
    reason: reason === null ? null : truncated(reason, REASON_NOTED),
    records,
    isLate: partition.outcome !== null,
  })
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
