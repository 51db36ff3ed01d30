import type { Lanes } from '../disk.ts'
import type { StoredPartition } from '../partition.ts'
import type { StoredTask } from '../stored.ts'
import type { Partition } from './state/memory-rows.ts'
import type { Transaction } from './transaction.ts'

// Adding rows that were read. Rows in memory are newer and stay as they are.

export function addTasks(tx: Transaction, rows: readonly StoredTask[]): void {
  for (const row of rows) {
    tx.loadedIds.tasks.push(row.id)
    if (!tx.memory.tasks.has(row.id)) tx.memory.addTask(row)
  }
}

export async function addLanes(tx: Transaction, read: Lanes): Promise<void> {
  const missing = new Set<number>()
  for (const { id, task } of read.lanes) {
    tx.loadedIds.lanes.push(id)
    if (!tx.memory.tasks.has(task)) missing.add(task)
  }
  if (missing.size > 0) addTasks(tx, await tx.disk.tasksById([...missing]))
  tx.memory.addLanes(read)
}

/** Adds partitions with their lanes and tasks, and returns those that are in memory now. */
export async function addPartitions(tx: Transaction, rows: readonly StoredPartition[]): Promise<Partition[]> {
  const missing = new Set<number>()
  for (const { lane } of rows) if (!tx.memory.lanes.has(lane)) missing.add(lane)
  if (missing.size > 0) await addLanes(tx, await tx.disk.lanesById([...missing]))
  const found: Partition[] = []
  for (const row of rows) {
    const known = tx.memory.partitions.get(row.id)
    if (known !== undefined) found.push(known)
    else if (tx.memory.lanes.has(row.lane)) {
      tx.loadedIds.partitions.push(row.id)
      found.push(tx.memory.addPartition(row))
    }
  }
  return found
}
