import type { LanesFrom } from '../disk.ts'
import type { StoredState } from '../rules/life-cycle.ts'
import { addLanes, addPartitions } from './read-rows.ts'
import type { Lane, Partition, Task } from './state/memory-rows.ts'
import type { Transaction } from './transaction.ts'

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
  readonly state: StoredState | null
  /** Only those whose last failure is of this group. */
  readonly failure?: string | undefined
  readonly countOf: (lane: Lane) => number
  /** In the first lane, only rows after this index. */
  readonly afterIndex?: number
  /** Per lane. Lanes are added until they are expected to have this many rows in total. */
  readonly most: number
}

/** Returns the first rows of these lanes, by index, with one read. */
export async function firstRows(
  tx: Transaction,
  lanes: readonly Lane[],
  { state, failure, countOf, afterIndex = -1, most }: WantedRows,
): Promise<{ lane: Lane; rows: Partition[] }[]> {
  const chosen: Lane[] = []
  let expected = 0
  for (const lane of lanes) {
    if (expected >= most) break
    chosen.push(lane)
    expected += countOf(lane)
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
