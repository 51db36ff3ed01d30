import { formatLeaseId, parseLeaseId } from '../../lease-id.ts'
import { type GrantedLease, hasNoRare, type PulledPartition, rareOf } from '../../partition.ts'
import { next } from '../../rules/life-cycle.ts'
import {
  isTableBlocked,
  KEY_GRACE_MILLIS,
  leaseMillis,
  nextFencingToken,
  policyOf,
} from '../../rules/policy.ts'
import { addCapped } from '../../rules/task.ts'
import type { BatchedPull, EmptyBecause, PullResult } from '../../store.ts'
import { checkpointsOf } from '../checkpoints.ts'
import { namedOf } from '../lease-changes.ts'
import { firstInMemory, firstOf, LANES_READ_TOGETHER } from '../next-partition.ts'
import type { FilterOrder } from '../state/filter-order.ts'
import { type Partition, tableOf } from '../state/memory-rows.ts'
import { moveBarriers } from '../task-updates.ts'
import { isEndOfSlice, type Transaction } from '../transaction.ts'
import { loadLeases } from './settle.ts'

/** Serves pulls as they arrived. Each takes from the first lane of the order until it has enough. */
export async function pull(tx: Transaction, batched: readonly BatchedPull[]): Promise<PullResult[]> {
  const results: PullResult[] = []
  let demand = 0
  for (const { batch } of batched) demand += batch
  for (const asked of batched) {
    const { key } = asked
    results.push(await (key === null ? pullOne(tx, asked, demand) : pullUnderKey(tx, asked, key, demand)))
    demand -= asked.batch
    // A delivery may have finished a level. The next pull sees the level that this opens.
    if (tx.policy.delivery === 'at-most-once') await moveBarriers(tx)
  }
  return results
}

/** A key that was used before gets the leases of its answer. */
async function pullUnderKey(
  tx: Transaction,
  asked: BatchedPull,
  key: string,
  demand: number,
): Promise<PullResult> {
  const repeated = await repeat(tx, key)
  if (repeated !== undefined) return repeated
  const result = await pullOne(tx, asked, demand)
  if (result.partitions.length > 0) {
    remember(tx, key, result.partitions)
    return result
  }
  // An empty answer stores no key, so the append would not detect a key that is already known.
  if (!tx.memory.keys.has(key)) await loadKeys(tx, [key])
  return (await repeat(tx, key)) ?? result
}

function whyNothing({ memory, limits }: Transaction, { instance }: BatchedPull): EmptyBecause | undefined {
  if (instance !== null && memory.pausedInstances.has(instance)) return instancePaused(instance)
  return memory.leases.size >= limits.leases ? tooManyLeases(limits.leases) : undefined
}

const tooManyLeases = (most: number): EmptyBecause => ({
  code: 'too_many_leases',
  detail: `there are ${most} leases, as many as --max-leases allows; pull again when some have ended`,
})

const instancePaused = (instanceId: string): EmptyBecause => ({
  code: 'instance_paused',
  detail: `an operator paused ${instanceId}; it gets partitions again when it is resumed`,
})

async function pullOne(tx: Transaction, asked: BatchedPull, demand: number): Promise<PullResult> {
  const because = whyNothing(tx, asked)
  if (because !== undefined) return { partitions: [], repeated: false, because }
  const { instance, batch, records, tables, tasks } = asked
  if (tasks === null) tx.memory.order.tables.asked(tables, tx.now)
  const isChosen = tables !== null || tasks !== null
  if (isChosen && !tx.memory.filterOrders.haveWork(asked)) return { partitions: [], repeated: false }
  const filterOrder = isChosen ? tx.filterOrderOf(asked) : null
  const taken: Partition[] = []
  let takenRecords = 0
  const { leases } = tx.memory
  const most = Math.min(batch, tx.limits.leases - leases.size)
  while (taken.length < most && (records === null || taken.length === 0 || takenRecords < records)) {
    if (isEndOfSlice(taken.length)) await tx.nextIteration()
    const wanted = Math.max(batch, demand) - taken.length
    const partition = nextInMemory(tx, filterOrder) ?? (await findFirst(tx, filterOrder, wanted))
    if (partition === undefined) break
    leaseOrDeliver(tx, partition, instance, filterOrder)
    taken.push(partition)
    takenRecords += partition.recordCount
  }
  if (filterOrder !== null) tx.memory.filterOrders.used(filterOrder)
  if (taken.length > 0 && instance !== null) {
    tx.instances.saw(instance, 'worker')
    const totals = tx.instances.totalsOf(instance, 'worker')
    totals.partitions += taken.length
    totals.records = addCapped(totals.records, takenRecords)
  }
  const checkpoints = await checkpointsOf(tx.memory, tx.disk, taken)
  return { partitions: handedOut(taken, tx.now, checkpoints), repeated: false }
}

/** Returns the next partition for a pull without a filter, if it is in memory. */
function nextInMemory(tx: Transaction, filterOrder: FilterOrder | null): Partition | undefined {
  const lane = filterOrder === null ? tx.memory.order.front() : undefined
  const first = lane === undefined ? undefined : firstInMemory(lane)
  // In a lane with several tables, the first partition may be of a blocked one.
  return first === undefined || isTableBlocked(tableOf(first)) ? undefined : first
}

/** Returns the next partition, reading rows if they are not in memory. Undefined if there is none. */
async function findFirst(
  tx: Transaction,
  filterOrder: FilterOrder | null,
  demand: number,
): Promise<Partition | undefined> {
  const order = filterOrder ?? tx.memory.order
  const lane = filterOrder === null ? tx.memory.order.front() : filterOrder.next()
  if (lane === undefined) return undefined
  return firstOf(tx, lane, filterOrder?.tables ?? null, () => order.ahead(LANES_READ_TOGETHER), demand)
}

function leaseOrDeliver(
  tx: Transaction,
  partition: Partition,
  instance: string | null,
  filterOrder: FilterOrder | null,
): void {
  const { parentLane: lane, recordCount } = partition
  const { delivery } = tx.policy
  tx.touchPartition(partition)
  tx.waiting.serve(partition, filterOrder)
  const to = next('ready', delivery === 'at-most-once' ? 'deliver' : 'lease')
  tx.count(partition, to)
  tx.waiting.update(lane)
  partition.state = to
  partition.leaseNumber += 1
  partition.holder = instance
  partition.leasedAt = tx.now
  partition.progress = null
  if (to === 'done') {
    partition.outcome = 'delivered'
    partition.attempts += 1
    partition.settledAt = tx.now
    partition.dueAt = null
    lane.parentTask.delivered += 1
    tx.finished.add(partition)
    if (partition.checkpointAt !== null) tx.setCheckpoint(partition, null)
    return
  }
  partition.outcome = null
  partition.secret = tx.secret()
  partition.fencingToken = nextFencingToken(partition.fencingToken, tx.now)
  partition.dueAt = tx.now + leaseMillis(policyOf(tx.policy, lane.parentTask), recordCount)
  tx.memory.leases.put(partition)
  tableOf(partition).askedAt = tx.now
  tx.leaseEndsAt(partition.dueAt)
}

/** The leases of a key that are still valid; undefined if the key is not in memory. */
async function repeat(tx: Transaction, key: string): Promise<PullResult | undefined> {
  const row = tx.memory.keys.get(key)?.row
  if (row === null || row === undefined) return undefined
  const leases = row.leases.map(parseLeaseId).filter((lease) => lease !== undefined)
  await loadLeases(tx, leases)
  const live: Partition[] = []
  for (const { partition: id, leaseNumber, secret } of leases) {
    const partition = tx.memory.partitions.get(id)
    if (partition?.state !== 'leased' || partition.leaseNumber !== leaseNumber || partition.secret !== secret)
      continue
    if ((partition.dueAt ?? 0) <= tx.now || partition.parentLane.parentTask.cancelled) continue
    live.push(partition)
  }
  const checkpoints = await checkpointsOf(tx.memory, tx.disk, live)
  return { partitions: handedOut(live, tx.now, checkpoints), repeated: true }
}

function remember(tx: Transaction, key: string, partitions: readonly PulledPartition[]): void {
  const leases = partitions.map(({ lease }) => lease).filter((lease) => lease !== null)
  const lastExpiry = Math.max(tx.now, ...leases.map(({ expiresAt }) => expiresAt))
  if (!tx.memory.keys.has(key)) tx.newKeys.push(key)
  tx.remember(key, { key, leases: leases.map(({ id }) => id), forgetAt: lastExpiry + KEY_GRACE_MILLIS })
}

export async function loadKeys(tx: Transaction, names: readonly string[]): Promise<void> {
  const keys = await tx.disk.keys(names)
  for (const name of names) {
    if (tx.memory.keys.has(name)) continue
    const row = keys.find(({ key }) => key === name) ?? null
    tx.memory.keys.set(name, { row, changedIn: 0 })
  }
}

function handedOut(
  partitions: readonly Partition[],
  now: number,
  checkpoints: ReadonlyMap<number, string>,
): PulledPartition[] {
  return partitions.map((partition) =>
    pulledPartition(
      partition,
      partition.state === 'leased' ? leaseOf(partition, now, checkpoints.get(partition.id)) : null,
    ),
  )
}

function pulledPartition(partition: Partition, lease: GrantedLease | null): PulledPartition {
  const handed = { ...namedOf(partition), lease }
  return hasNoRare(partition) ? handed : { ...handed, ...rareOf(partition) }
}

function leaseOf(partition: Partition, now: number, checkpoint: string | undefined): GrantedLease {
  const { id, leaseNumber, secret, attempts, fencingToken } = partition
  const expiresAt = partition.dueAt ?? now
  return {
    id: formatLeaseId({ partition: id, leaseNumber, secret }),
    attempt: attempts + 1,
    fencingToken: fencingToken ?? now,
    expiresAt,
    expiresInMillis: expiresAt - now,
    checkpoint: checkpoint ?? null,
  }
}
