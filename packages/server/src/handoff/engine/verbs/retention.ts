import { parseLeaseId } from '../../rules/lease-id.ts'
import { KEY_GRACE_MILLIS } from '../../rules/policy.ts'
import { totalOf } from '../../rules/task-facts.ts'
import type { StoredKey } from '../../stored.ts'
import { firstRows, lanesFrom } from '../rows-of-lanes.ts'
import type { Lane, Partition, Task } from '../state/memory.ts'
import { load, type Steps, type Transaction } from '../transaction.ts'
import { loadLeases } from './settle.ts'

/** What is removed when its time is over, a bounded step at a time. Rows are flushed before each step. */

const ROWS_PER_STEP = 500
/** Keys are looked at until their leases are so many: each of them is a row to read. */
export const LEASES_PER_STEP = 1000

/** A key whose leases were renewed is kept for as long as they run. Returns how many were seen to. */
export function* forgetKeys(tx: Transaction, due: readonly StoredKey[]): Steps<number> {
  let leases = 0
  let seen = 0
  for (const { key, leases: ids } of due) {
    leases += ids.length
    if (seen > 0 && leases > LEASES_PER_STEP) break
    seen += 1
    const refs = ids.map(parseLeaseId).filter((ref) => ref !== undefined)
    yield* loadLeases(tx, refs)
    let lastExpiry = 0
    for (const { partition: id, term } of refs) {
      const partition = tx.memory.partitions.get(id)
      if (partition?.state === 'leased' && partition.term === term)
        lastExpiry = Math.max(lastExpiry, partition.dueAt ?? 0)
    }
    const forgetAt = lastExpiry + KEY_GRACE_MILLIS
    tx.remember(key, forgetAt > tx.now ? { key, leases: ids, forgetAt } : null)
  }
  return seen
}

/**
 * Removes rows of a finished task; its counters stay as its summary. It counts as purged from the first step on: what is
 * left of it is not the whole.
 */
export function* purge(tx: Transaction, task: Task): Steps<void> {
  if (task.purgedAt === null) {
    task.purgedAt = tx.now
    tx.touchTask(task)
    tx.forgetPace(task)
  }
  const lanes = yield* lanesFrom(tx, task, 0, 'rows')
  let left = ROWS_PER_STEP
  const countOf = ({ partitions, purged }: Lane) => totalOf(partitions) - purged
  for (const { lane, rows } of yield* firstRows(tx, lanes, { state: null, countOf, most: left })) {
    if (left <= 0) return
    for (const partition of rows.slice(0, left)) removeRow(tx, lane, partition)
    tx.lines.requeue(lane)
    left -= rows.length
  }
}

/** Of a cancelled task partitions may still wait: with their rows they leave the order. */
function removeRow(tx: Transaction, lane: Lane, partition: Partition): void {
  const { state, recordCount } = partition
  if (state === 'ready') tx.lines.dequeue(partition)
  if (state !== 'done') tx.count(lane, state, 'cancelled', recordCount)
  lane.purged += 1
  lane.purgedRecords += recordCount
  tx.remove(partition)
}

export function* taskWithId(tx: Transaction, id: number): Steps<Task | undefined> {
  if (!tx.memory.tasks.has(id)) yield* load(tx, { tasks: [id] })
  return tx.memory.tasks.get(id)
}
