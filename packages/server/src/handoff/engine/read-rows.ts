import type { Lanes, LanesFrom } from '../disk.ts'
import type { StoredPartition } from '../partition.ts'
import { totalOf } from '../rules/task.ts'
import type { StoredTask } from '../stored.ts'
import type { Lane, Partition, Task } from './state/memory-rows.ts'
import type { Transaction } from './transaction.ts'

// Reading what memory lacks. Rows in memory are newer than those that were read, and stay as they are.

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

export async function taskNamed(tx: Transaction, taskId: string): Promise<Task | undefined> {
  const { tasksByName } = tx.memory
  if (!tasksByName.has(taskId)) addTasks(tx, await tx.disk.tasksNamed([taskId]))
  return tasksByName.get(taskId)
}

/** A task may have thousands of lanes with one row each, so they are read in pages. */
const TASK_LANES_AT_A_TIME = 256

/** The next lanes of a task. Rows must be flushed, so that the disk knows all of them. */
export async function lanesFrom(
  tx: Transaction,
  task: Task,
  from: number,
  having: LanesFrom['having'],
  limit = TASK_LANES_AT_A_TIME,
): Promise<Lane[]> {
  if (from > Number.MAX_SAFE_INTEGER) return []
  const read = await tx.disk.lanesFrom({ task: task.id, from, having, limit })
  await addLanes(tx, read)
  return read.lanes.flatMap(({ id }) => tx.memory.lanes.get(id) ?? [])
}

export async function loadLanes(tx: Transaction, task: Task, levels: Iterable<number>): Promise<void> {
  const missing: number[] = []
  for (const level of levels) if (!task.lanes.has(level)) missing.push(level)
  if (missing.length > 0) await addLanes(tx, await tx.disk.lanesOf(task.id, missing))
}

interface WantedRows {
  /** Null: of all states. */
  readonly state: 'parked' | null
  /** Only those whose last failure is of this group. */
  readonly failure?: string | undefined
  /** In the first lane, only rows after this index. */
  readonly afterIndex?: number
  /** Per lane. Lanes are added until they are expected to have this many rows in total. */
  readonly most: number
}

/** Most lanes may have parked partitions for other reasons only, so several are read. */
const LANES_READ_FOR_FAILURE = 20

function expectedRows({ partitions, purged }: Lane, { state, failure, most }: WantedRows): number {
  if (state === null) return totalOf(partitions) - purged
  return failure === undefined ? partitions.parked : most / LANES_READ_FOR_FAILURE
}

/** Returns the first rows of these lanes, by index, with one read. */
export async function firstRows(
  tx: Transaction,
  lanes: readonly Lane[],
  wanted: WantedRows,
): Promise<{ lane: Lane; rows: Partition[] }[]> {
  const { state, failure, afterIndex = -1, most } = wanted
  const chosen: Lane[] = []
  let expected = 0
  for (const lane of lanes) {
    if (expected >= most) break
    chosen.push(lane)
    expected += expectedRows(lane, wanted)
  }
  const queries = chosen.map(({ id, tail }, index) => ({
    lane: id,
    tail,
    state,
    failure,
    afterIndex: index === 0 ? afterIndex : -1,
    limit: most,
  }))
  const found = await tx.disk.rows(queries)
  const results: { lane: Lane; rows: Partition[] }[] = []
  for (const [index, lane] of chosen.entries())
    results.push({ lane, rows: await addPartitions(tx, found[index] ?? []) })
  return results
}
