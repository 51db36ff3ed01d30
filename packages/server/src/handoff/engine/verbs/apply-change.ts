import {
  countFailure,
  uncountExpiry,
  withAmended,
  withEnded,
  withoutExpired,
} from '../../rules/attempt-history.ts'
import { countDuration } from '../../rules/durations.ts'
import { leaseMillis, type Policy } from '../../rules/policy.ts'
import type { Change, LeaseState } from '../../rules/settlement.ts'
import { policyOf } from '../../rules/task-settings.ts'
import { countReport } from '../../rules/task-state.ts'
import type { Lane, Partition } from '../state/memory-rows.ts'
import type { Transaction } from '../transaction.ts'

/** Applies the decision about a lease. */
export function applyChange(tx: Transaction, partition: Partition, change: Change): void {
  const { parentLane: lane, recordCount } = partition
  const { parentTask: task } = lane
  tx.touchPartition(partition)
  if (change.wasted !== 0) {
    task.attemptsWasted += change.wasted
    tx.touchTask(task)
  }
  if (change.history !== 'keep') recordAttempt(tx, partition, change)
  if (change.reason !== undefined) partition.reason = change.reason
  partition.outcome = change.outcome
  partition.attempts = change.attempts
  partition.releases = change.releasesInARow
  if (change.event === null) return
  const { to } = change
  const waited = partition.state === 'ready'
  if (waited) tx.lines.dequeue(partition)
  tx.count(lane, partition.state, to, recordCount)
  partition.state = to
  partition.dueAt = null
  switch (to) {
    case 'ready':
      if (!change.keepsRank) partition.line = 'retry'
      giveBack(partition, tx.now)
      tx.lines.enqueue(partition)
      break
    case 'leased':
      partition.dueAt = tx.now + leaseMillis(policyFor(tx, partition), recordCount)
      tx.due(partition.dueAt)
      break
    case 'delayed':
      if (!change.keepsRank) partition.line = 'retry'
      partition.dueAt = tx.now + change.delayMillis
      tx.due(partition.dueAt)
      break
    case 'parked':
      partition.line = 'retry'
      tx.parked.push(partition)
      break
    case 'done':
      partition.settledAt = tx.now
      partition.reportedRecords = change.records ?? null
      tx.countFinished(lane, recordCount)
      if (partition.leasedAt !== null) countAttempt(lane, tx.now - partition.leasedAt)
      if (partition.reportedRecords !== null) countReport(task, recordCount, partition.reportedRecords)
      break
    case 'cancelled':
      break
  }
  if (waited) tx.lines.requeue(lane)
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
function recordAttempt(
  tx: Transaction,
  partition: Partition,
  { history, outcome, wasted, reason = null }: Change,
): void {
  const { parentTask: task } = partition.parentLane
  switch (history) {
    case 'append':
      if (outcome === null) return
      partition.history = withEnded(partition, outcome, reason, tx.now)
      if (outcome === 'failed' || outcome === 'expired')
        tx.setFailures(task, countFailure(task.failures, outcome, reason, tx.now))
      break
    case 'amend':
      partition.history = withAmended(partition.history, reason)
      tx.setFailures(task, countFailure(uncountExpiry(task.failures), 'failed', reason, tx.now))
      break
    case 'withdraw':
      partition.history = withoutExpired(partition.history)
      // A late settlement as done leaves the expiry counted, because the attempt was treated as wasted. A
      // renewal takes it back.
      if (wasted < 0) tx.setFailures(task, uncountExpiry(task.failures))
      break
    case 'keep':
      break
  }
}

/**
 * Puts a released partition before all others. If its lease had expired and was renewed, it joins the retry
 * line instead.
 */
function giveBack(partition: Partition, now: number): void {
  if (partition.line === 'retry') partition.dueAt = now
  else partition.line = 'released'
}

export function leaseStateOf(partition: Partition): LeaseState

export function leaseStateOf(partition: Partition | undefined): LeaseState | undefined

export function leaseStateOf(partition: Partition | undefined): LeaseState | undefined {
  if (partition === undefined) return undefined
  const { state, term, secret, outcome, attempts, releases, parentLane: lane } = partition
  return {
    state,
    term,
    secret,
    outcome,
    attempts,
    releasesInARow: releases,
    taskCancelled: lane.parentTask.cancelled,
  }
}

export function policyFor(tx: Transaction, partition: Partition | undefined): Policy {
  return partition === undefined ? tx.policy : policyOf(tx.policy, partition.parentLane.parentTask)
}
