import { next, type StoredState } from '../../rules/life-cycle.ts'
import { judgeCancellation, judgeExpiry, judgeRevocation } from '../../rules/settlement.ts'
import type { Partition } from '../state/memory-rows.ts'
import { isEndOfSlice, load, type Transaction } from '../transaction.ts'
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
  leased: readonly number[],
  delayed: readonly number[],
): Promise<Expired> {
  const ended: Expired = { expired: 0, parked: 0, woken: 0 }
  // Read within the transaction: another node may have been leader since these were found to be due.
  const missing = [...leased, ...delayed].filter((id) => !tx.memory.partitions.has(id))
  if (missing.length > 0) await load(tx, { partitions: missing })
  const isDue = (partition: Partition | undefined, state: StoredState): partition is Partition =>
    partition?.state === state && partition.dueAt !== null && partition.dueAt <= tx.now
  const waking: number[] = []
  for (const [at, id] of leased.entries()) {
    if (isEndOfSlice(at)) await tx.reads.nextIteration()
    const partition = tx.memory.partitions.get(id)
    if (!isDue(partition, 'leased')) continue
    expire(tx, partition)
    ended.expired += 1
    if (partition.state === 'parked') ended.parked += 1
    if (isDue(partition, 'delayed')) waking.push(id)
  }
  for (const [at, id] of [...delayed, ...waking].entries()) {
    if (isEndOfSlice(at)) await tx.reads.nextIteration()
    const partition = tx.memory.partitions.get(id)
    if (isDue(partition, 'delayed') && wake(tx, partition)) ended.woken += 1
  }
  return ended
}

/** An operator revokes the leases that an instance still holds. */
export async function revoke(
  tx: Transaction,
  instanceId: string,
  held: readonly number[],
): Promise<{ released: number; parked: number }> {
  const missing = held.filter((id) => !tx.memory.partitions.has(id))
  if (missing.length > 0) await load(tx, { partitions: missing })
  let [released, parked] = [0, 0]
  for (const [at, id] of held.entries()) {
    if (isEndOfSlice(at)) await tx.reads.nextIteration()
    const partition = tx.memory.partitions.get(id)
    if (partition?.state !== 'leased' || partition.holder !== instanceId) continue
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

/**
 * Ends a back-off: the partition joins the line that was chosen when it began. Returns false if the task is
 * cancelled.
 */
function wake(tx: Transaction, partition: Partition): boolean {
  const { parentLane: lane, recordCount } = partition
  if (lane.parentTask.cancelled) {
    applyChange(tx, partition, judgeCancellation(leaseStateOf(partition)))
    return false
  }
  const to = next(partition.state, 'wake')
  tx.count(lane, partition.state, to, recordCount)
  tx.touchPartition(partition)
  partition.state = to
  if (partition.line === 'released') partition.dueAt = null
  tx.lines.enqueue(partition)
  return true
}
