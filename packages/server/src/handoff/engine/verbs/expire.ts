import type { StoredPartition } from '../../partition.ts'
import { next, type StoredState } from '../../rules/life-cycle.ts'
import { judgeCancellation, judgeExpiry, judgeRevocation } from '../../rules/settlement.ts'
import type { Partition } from '../state/memory-rows.ts'
import { addPartitions, isEndOfSlice, type Transaction } from '../transaction.ts'
import { applyChange, leaseStateOf, policyFor } from './settle.ts'

interface Expired {
  expired: number
  parked: number
  woken: number
}

/**
 * Ends leases and back-offs that are due, if memory confirms that. Leases are first: without back-off they
 * become ready in the same step.
 */
export async function endDue(
  tx: Transaction,
  leased: readonly Partition[],
  backoffs: readonly StoredPartition[],
): Promise<Expired> {
  const ended: Expired = { expired: 0, parked: 0, woken: 0 }
  const delayed = await addPartitions(tx, backoffs)
  const isDue = ({ state, dueAt }: Partition, expected: StoredState): boolean =>
    state === expected && dueAt !== null && dueAt <= tx.now
  for (const [at, partition] of leased.entries()) {
    if (isEndOfSlice(at)) await tx.reads.nextIteration()
    if (!isDue(partition, 'leased')) continue
    expire(tx, partition)
    ended.expired += 1
    if (partition.state === 'parked') ended.parked += 1
    if (isDue(partition, 'delayed')) delayed.push(partition)
  }
  for (const [at, partition] of delayed.entries()) {
    if (isEndOfSlice(at)) await tx.reads.nextIteration()
    if (isDue(partition, 'delayed') && wake(tx, partition)) ended.woken += 1
  }
  return ended
}

/** An operator revokes the leases that an instance still holds. */
export async function revoke(
  tx: Transaction,
  instanceId: string,
  limit: number,
): Promise<{ released: number; parked: number }> {
  let [released, parked] = [0, 0]
  for (const [at, partition] of tx.memory.leases.heldBy(instanceId, limit).entries()) {
    if (isEndOfSlice(at)) await tx.reads.nextIteration()
    const leaseState = leaseStateOf(partition)
    const change = leaseState.taskCancelled
      ? judgeCancellation(leaseState)
      : judgeRevocation(leaseState, policyFor(tx, partition), instanceId)
    applyChange(tx, partition, change)
    released += 1
    if (change.to === 'parked') parked += 1
  }
  return { released, parked }
}

function expire(tx: Transaction, partition: Partition): void {
  const leaseState = leaseStateOf(partition)
  applyChange(
    tx,
    partition,
    leaseState.taskCancelled
      ? judgeCancellation(leaseState)
      : judgeExpiry(leaseState, policyFor(tx, partition), tx.random()),
  )
}

/** Ends a back-off: the partition came back when it was due. Returns false if the task is cancelled. */
function wake(tx: Transaction, partition: Partition): boolean {
  const { parentLane: lane, recordCount } = partition
  if (lane.parentTask.cancelled) {
    applyChange(tx, partition, judgeCancellation(leaseStateOf(partition)))
    return false
  }
  const to = next(partition.state, 'wake')
  tx.touchPartition(partition)
  tx.count(lane, partition.state, to, recordCount)
  partition.state = to
  tx.waiting.add(partition)
  return true
}
