import { silenceAllowed } from '../../instance-status.ts'
import type { StoredPartition } from '../../partition.ts'
import { next, type StoredState } from '../../rules/life-cycle.ts'
import { leaseMillis } from '../../rules/policy.ts'
import { judgeCancellation, judgeExpiry } from '../../rules/settlement.ts'
import { applyChange, leaseStateOf, policyFor } from '../lease-changes.ts'
import { addPartitions } from '../read-rows.ts'
import type { Partition } from '../state/memory-rows.ts'
import { isEndOfSlice, type Transaction } from '../transaction.ts'

interface Expired {
  expired: number
  parked: number
  woken: number
}

/** Ends what is due. Leases first: without back-off they become ready in the same step. */
export async function endDue(
  tx: Transaction,
  leased: readonly Partition[],
  backoffs: readonly StoredPartition[],
): Promise<Expired> {
  const ended: Expired = { expired: 0, parked: 0, woken: 0 }
  const delayed = await addPartitions(tx, backoffs)
  const isDue = ({ state, dueAt }: Partition, expected: StoredState): boolean =>
    state === expected && dueAt !== null && dueAt <= tx.now
  for (const [index, partition] of leased.entries()) {
    if (isEndOfSlice(index)) await tx.nextIteration()
    if (!isDue(partition, 'leased')) continue
    expire(tx, partition)
    ended.expired += 1
    if (partition.state === 'parked') ended.parked += 1
    if (isDue(partition, 'delayed')) delayed.push(partition)
  }
  for (const [index, partition] of delayed.entries()) {
    if (isEndOfSlice(index)) await tx.nextIteration()
    if (isDue(partition, 'delayed') && wake(tx, partition)) ended.woken += 1
  }
  return ended
}

function expire(tx: Transaction, partition: Partition): void {
  const leaseState = leaseStateOf(partition)
  const { holder, dueAt, recordCount } = partition
  if (holder !== null && dueAt !== null && !leaseState.taskCancelled)
    tx.instances.noteExpired(
      holder,
      dueAt - silenceAllowed(leaseMillis(policyFor(tx, partition), recordCount)),
    )
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
  if (partition.parentLane.parentTask.cancelled) {
    applyChange(tx, partition, judgeCancellation(leaseStateOf(partition)))
    return false
  }
  const to = next(partition.state, 'wake')
  tx.touchPartition(partition)
  tx.count(partition, to)
  partition.state = to
  tx.waiting.add(partition)
  return true
}
