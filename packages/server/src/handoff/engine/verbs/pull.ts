import { formatLeaseId, parseLeaseId } from '../../lease-id.ts'
import { type GrantedLease, hasNoRare, type PulledPartition, rareOf } from '../../partition.ts'
import { next } from '../../rules/life-cycle.ts'
import { KEY_GRACE_MILLIS, leaseMillis, policyOf } from '../../rules/policy.ts'
import { addCapped } from '../../rules/task.ts'
import type { BatchedPull, PullResult } from '../../store.ts'
import { Choice } from '../choose.ts'
import {
  firstOf,
  LINES_AT_A_TIME,
  loadOrder,
  ORDER_LANES_AT_FIRST,
  ORDER_LANES_AT_MOST,
} from '../load-lanes.ts'
import type { Lane, LaneTable, Partition } from '../state/memory-rows.ts'
import { isLaneTable, lineToServe } from '../state/memory-rows.ts'
import { moveBarriers } from '../task-updates.ts'
import { isEndOfSlice, load, type Transaction } from '../transaction.ts'
import { loadLeases } from './settle.ts'

/**
 * Serves pulls one after another, as they arrived. Each takes from the first lane of the order until it has
 * enough.
 */
export async function pull(tx: Transaction, batched: readonly BatchedPull[]): Promise<PullResult[]> {
  const results: PullResult[] = []
  let demand = 0
  for (const { batch } of batched) demand += batch
  for (const asked of batched) {
    results.push(await pullOne(tx, asked, demand))
    demand -= asked.batch
    // A delivery may have finished a level. The next pull sees the level that this opens.
    if (tx.policy.delivery === 'at-most-once') await moveBarriers(tx)
  }
  return results
}

async function pullOne(tx: Transaction, asked: BatchedPull, demand: number): Promise<PullResult> {
  const { key } = asked
  const repeated = key === null ? undefined : await repeat(tx, key)
  if (repeated !== undefined) return repeated
  const partitions = await take(tx, asked, demand)
  if (key === null) return { partitions, repeated: false }
  if (partitions.length > 0) {
    remember(tx, key, partitions)
    return { partitions, repeated: false }
  }
  // An empty answer stores no key, so the append would not detect a key that is already known.
  if (!tx.memory.keys.has(key)) await loadKeys(tx, [key])
  return (await repeat(tx, key)) ?? { partitions, repeated: false }
}

async function take(tx: Transaction, asked: BatchedPull, demand: number): Promise<PulledPartition[]> {
  const { instance, batch, records, tables, tasks } = asked
  const choice = tables === null && tasks === null ? null : new Choice(tx, asked)
  const taken: PulledPartition[] = []
  let takenRecords = 0
  while (taken.length < batch && (records === null || taken.length === 0 || takenRecords < records)) {
    if (isEndOfSlice(taken.length)) await tx.reads.nextIteration()
    const wanted = Math.max(batch, demand) - taken.length
    let partition: Partition | undefined
    if (choice === null) {
      partition = first(tx) ?? (await findFirst(tx, wanted))
      if (partition === undefined) break
      taken.push(handOut(tx, partition, instance, partition.parentLane))
    } else {
      const chosen = await choice.next(wanted)
      if (chosen === undefined) break
      partition = chosen.partition
      taken.push(handOut(tx, partition, instance, chosen.from))
    }
    takenRecords += partition.recordCount
  }
  if (taken.length > 0 && instance !== null) {
    tx.sawInstance(instance, 'worker')
    const totals = tx.totalsOf(instance, 'worker')
    totals.partitions += taken.length
    totals.records = addCapped(totals.records, takenRecords)
  }
  return taken
}

function handOut(
  tx: Transaction,
  partition: Partition,
  instance: string | null,
  chosenFrom: Lane | LaneTable | null,
): PulledPartition {
  const { parentLane: lane, recordCount } = partition
  const { delivery } = tx.policy
  tx.lines.serve(partition, chosenFrom)
  const to = next('ready', delivery === 'at-most-once' ? 'deliver' : 'lease')
  tx.count(lane, 'ready', to, recordCount)
  tx.lines.updateTurn(lane)
  if (chosenFrom !== null && isLaneTable(chosenFrom)) tx.lines.updateTurnOfTable(chosenFrom)
  tx.touchPartition(partition)
  partition.state = to
  partition.term += 1
  // The line it joins if it is released.
  partition.line = 'released'
  partition.holder = instance
  partition.leasedAt = tx.now
  if (to === 'done') {
    partition.outcome = 'delivered'
    partition.attempts += 1
    partition.settledAt = tx.now
    partition.dueAt = null
    lane.parentTask.delivered += 1
    tx.countFinished(lane, recordCount)
    return handedOut(partition, null)
  }
  partition.outcome = null
  partition.secret = tx.secret()
  partition.dueAt = tx.now + leaseMillis(policyOf(tx.policy, lane.parentTask), recordCount)
  tx.due(partition.dueAt)
  return handedOut(partition, leaseOf(partition, tx.now))
}

/**
 * Returns the next partition, if memory knows it. Undefined if rows must be loaded or there is none.
 */
function first(tx: Transaction): Partition | undefined {
  const lane = tx.memory.order.front()
  if (lane === null || lane === undefined) return undefined
  return lane.lines[lineToServe(lane)].first
}

/** Loads rows until the first partition is known, or it is known that there is none. */
async function findFirst(tx: Transaction, demand: number): Promise<Partition | undefined> {
  const { order } = tx.memory
  let lanesAtATime = ORDER_LANES_AT_FIRST
  while (true) {
    const lane = order.front()
    if (lane === undefined) return undefined
    if (lane === null) {
      await loadOrder(tx, lanesAtATime)
      // If many lanes may not be served, they are read in ever larger pages.
      lanesAtATime = Math.min(lanesAtATime * 2, ORDER_LANES_AT_MOST)
      continue
    }
    return await firstOf(tx, lane, () => order.ahead(LINES_AT_A_TIME), demand)
  }
}

/**
 * Returns the leases granted for a key that are still valid, or undefined for a key that is not in memory.
 */
async function repeat(tx: Transaction, key: string): Promise<PullResult | undefined> {
  const row = tx.memory.keys.get(key)?.row
  if (row === null || row === undefined) return undefined
  const leases = row.leases.map(parseLeaseId).filter((lease) => lease !== undefined)
  await loadLeases(tx, leases)
  const partitions: PulledPartition[] = []
  for (const { partition: id, term, secret } of leases) {
    const partition = tx.memory.partitions.get(id)
    if (partition?.state !== 'leased' || partition.term !== term || partition.secret !== secret) continue
    if ((partition.dueAt ?? 0) <= tx.now || partition.parentLane.parentTask.cancelled) continue
    partitions.push(handedOut(partition, leaseOf(partition, tx.now)))
  }
  return { partitions, repeated: true }
}

function remember(tx: Transaction, key: string, partitions: readonly PulledPartition[]): void {
  const leases = partitions.map(({ lease }) => lease).filter((lease) => lease !== null)
  const lastExpiry = Math.max(tx.now, ...leases.map(({ expiresAt }) => expiresAt))
  if (!tx.memory.keys.has(key)) tx.newKeys.push(key)
  tx.remember(key, { key, leases: leases.map(({ id }) => id), forgetAt: lastExpiry + KEY_GRACE_MILLIS })
}

export async function loadKeys(tx: Transaction, names: readonly string[]): Promise<void> {
  const { keys } = await load(tx, { keys: names })
  for (const name of names) {
    if (tx.memory.keys.has(name)) continue
    const row = keys.find(({ key }) => key === name) ?? null
    tx.memory.keys.set(name, { row, changedIn: 0 })
  }
}

function handedOut(partition: Partition, lease: GrantedLease | null): PulledPartition {
  const { parentLane: lane, index, spelling, computeTable, recordCount } = partition
  const handed = {
    taskId: lane.parentTask.taskId,
    level: lane.level,
    index,
    spelling,
    computeTableName: computeTable,
    recordCount,
    lease,
  }
  return hasNoRare(partition) ? handed : { ...handed, ...rareOf(partition) }
}

function leaseOf(partition: Partition, now: number): GrantedLease {
  const { id, term, secret, attempts } = partition
  const expiresAt = partition.dueAt ?? now
  return {
    id: formatLeaseId({ partition: id, term, secret }),
    attempt: attempts + 1,
    expiresAt,
    expiresInMillis: expiresAt - now,
  }
}
