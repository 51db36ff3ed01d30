import { parseLeaseId } from '../../rules/lease-id.ts'
import { KEY_GRACE_MILLIS } from '../../rules/policy.ts'
import { totalOf } from '../../rules/task-facts.ts'
import type { StoredKey } from '../../stored.ts'
import { firstRows, lanesFrom } from '../rows-of-lanes.ts'
import type { Lane, Partition, Task } from '../state/memory-rows.ts'
import { load, type Steps, type Transaction } from '../transaction.ts'
import { loadLeases } from './settle.ts'

/** Deletes what is past its retention, in bounded steps. Rows are flushed before each step. */

const ROWS_PER_STEP = 500
/** Each lease of a key is a row to read. A step processes keys up to this many leases. */
export const LEASES_PER_STEP = 1000

/**
 * Deletes due keys. A key whose leases were renewed is kept until they end. Returns the number of keys
 * processed.
 */
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
 * Deletes rows of a finished task. Its counters stay as a summary. The task counts as purged from the first
 * step on, because its remaining rows are incomplete.
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

/** Partitions of a cancelled task may still be queued. They leave the order together with their rows. */
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
