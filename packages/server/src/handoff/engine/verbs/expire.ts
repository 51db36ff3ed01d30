import { silenceAllowed } from '../../heartbeats.ts'
import type { StoredPartition } from '../../partition.ts'
import { next, type StoredState } from '../../rules/life-cycle.ts'
import { leaseMillis } from '../../rules/policy.ts'
import { judgeCancellation, judgeExpiry, judgeRevocation } from '../../rules/settlement.ts'
import type { NamedLease, NotReleased } from '../../store.ts'
import { loadLanes } from '../load-lanes.ts'
import type { Partition } from '../state/memory-rows.ts'
import { addPartitions, isEndOfSlice, type Transaction } from '../transaction.ts'
import { taskNamed } from './call-back.ts'
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

/** An operator revokes leases. */
export async function revoke(
  tx: Transaction,
  leased: readonly Partition[],
): Promise<{ released: number; parked: number }> {
  let [released, parked] = [0, 0]
  for (const [at, partition] of leased.entries()) {
    if (isEndOfSlice(at)) await tx.reads.nextIteration()
    const { holder } = partition
    const leaseState = leaseStateOf(partition)
    const change = leaseState.taskCancelled
      ? judgeCancellation(leaseState)
      : judgeRevocation(leaseState, policyFor(tx, partition), holder)
    applyChange(tx, partition, change)
    if (holder !== null) tx.totalsOf(holder, 'worker').revoked += 1
    released += 1
    if (change.to === 'parked') parked += 1
  }
  return { released, parked }
}

/** The partition with this name if it is leased; null if it is not. */
export async function findLeased(
  tx: Transaction,
  { taskId, level, index }: NamedLease,
): Promise<Partition | null | NotReleased> {
  const task = await taskNamed(tx, taskId)
  if (task === undefined) return { unknown: 'task' }
  await loadLanes(tx, task, [level])
  const lane = task.lanes.get(level)
  const rows = lane === undefined ? [] : await tx.reads.partitionsNamed([{ lane: lane.id, indexes: [index] }])
  const counted = rows.filter(({ id }) => lane !== undefined && id <= lane.tail)
  const [partition] = await addPartitions(tx, counted)
  if (partition === undefined) return { unknown: 'partition' }
  return partition.state === 'leased' ? partition : null
}

function expire(tx: Transaction, partition: Partition): void {
  const leaseState = leaseStateOf(partition)
  const { holder, dueAt, recordCount } = partition
  if (holder !== null && dueAt !== null && !leaseState.taskCancelled)
    tx.expected(holder, dueAt - silenceAllowed(leaseMillis(policyFor(tx, partition), recordCount)))
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
