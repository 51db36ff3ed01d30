import { partitionName } from '@baton/protocol'
import { judgeCancellation, judgeRevocation } from '../../rules/settlement.ts'
import { exists } from '../../rules/task.ts'
import type { NotRevoked, PartitionRef, PauseRequest, RevokeRequest, RevokeResult } from '../../store.ts'
import { applyChange, leaseStateOf, namedOf, policyFor } from '../lease-changes.ts'
import { addPartitions, loadLanes, taskNamed } from '../read-rows.ts'
import type { Partition } from '../state/memory-rows.ts'
import { concludeTasks, moveBarriers } from '../task-updates.ts'
import { isEndOfSlice, type Transaction } from '../transaction.ts'

// What operators do with leases and with those who hold them.

export async function revokeLeases(
  tx: Transaction,
  { instanceId, limit, by }: RevokeRequest,
): Promise<RevokeResult> {
  const result = await revoke(tx, tx.memory.leases.heldBy(instanceId, limit))
  const { revoked } = result
  if (revoked > 0) tx.audit(by, { action: 'release', target: instanceId, changed: revoked })
  return { ...result, more: revoked === limit }
}

export async function revokeLease(tx: Transaction, lease: PartitionRef): Promise<RevokeResult | NotRevoked> {
  const leased = await findLeased(tx, lease)
  if (leased === null) return revoke(tx, [])
  if ('unknown' in leased) return leased
  const result = await revoke(tx, [leased])
  const { taskId, by } = lease
  const { level, index, spelling } = namedOf(leased)
  const target = spelling ?? partitionName(taskId, level, index)
  tx.audit(by, { action: 'release', taskId, target, changed: 1 })
  return result
}

export function pauseInstance(
  tx: Transaction,
  { instanceId, role, paused, by }: PauseRequest,
): number | null {
  const was = tx.memory.pausedInstances.has(instanceId)
  const pausedAt = tx.instances.pause(instanceId, role, paused)
  if (was !== paused) tx.audit(by, { action: paused ? 'pause' : 'resume', target: instanceId, changed: 1 })
  return pausedAt
}

async function revoke(tx: Transaction, leased: readonly Partition[]): Promise<RevokeResult> {
  let [revoked, parked] = [0, 0]
  for (const [index, partition] of leased.entries()) {
    if (isEndOfSlice(index)) await tx.nextIteration()
    const { holder } = partition
    const leaseState = leaseStateOf(partition)
    const change = leaseState.taskCancelled
      ? judgeCancellation(leaseState)
      : judgeRevocation(leaseState, policyFor(tx, partition), holder)
    applyChange(tx, partition, change)
    if (holder !== null) tx.instances.totalsOf(holder, 'worker').revoked += 1
    revoked += 1
    if (change.to === 'parked') parked += 1
  }
  await moveBarriers(tx)
  await concludeTasks(tx)
  return { revoked, parked, newlyReady: tx.newlyReady.count, more: false }
}

/** The partition with this name if it is leased; null if it is not. */
async function findLeased(
  tx: Transaction,
  { taskId, level, index }: PartitionRef,
): Promise<Partition | null | NotRevoked> {
  const task = await taskNamed(tx, taskId)
  if (task === undefined || !exists(task)) return { unknown: 'task' }
  await loadLanes(tx, task, [level])
  const lane = task.lanes.get(level)
  const rows = lane === undefined ? [] : await tx.disk.partitionsNamed([{ lane: lane.id, indexes: [index] }])
  const counted = rows.filter(({ id }) => lane !== undefined && id <= lane.tail)
  const [partition] = await addPartitions(tx, counted)
  if (partition === undefined) return { unknown: 'partition' }
  return partition.state === 'leased' ? partition : null
}
