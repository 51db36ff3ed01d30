import type { Needs } from '../disk.ts'
import type { StoredState } from '../rules/life-cycle.ts'
import type { Lane, Partition, Task } from './state/memory-rows.ts'
import { load, type Steps, type Transaction } from './transaction.ts'

/**
 * A task may have thousands of lanes with one row each, so lanes are read in pages even for work done lane by
 * lane.
 */
const LANES_AT_A_TIME = 250

type Having = NonNullable<Needs['nextLanes']>[number]['having']

/**
 * Returns the next lanes of a task, starting at a level. Rows must be flushed, so that the disk knows all of
 * them.
 */
export function* lanesFrom(tx: Transaction, task: Task, from: number, having: Having): Steps<Lane[]> {
  if (from > Number.MAX_SAFE_INTEGER) return []
  const { nextLanes } = yield* load(tx, {
    nextLanes: [{ task: task.id, from, having, limit: LANES_AT_A_TIME }],
  })
  return (nextLanes[0] ?? []).flatMap((id) => tx.memory.lanes.get(id) ?? [])
}

interface WantedRows {
  readonly state: StoredState | null
  /** The known number of matching rows in a lane. */
  readonly countOf: (lane: Lane) => number
  /** In the first lane, only rows after this index. */
  readonly afterIndex?: number
  /**
   * At most this many rows per lane. Lanes are added until they are expected to have this many rows in total.
   */
  readonly most: number
}

/** Returns the first rows of these lanes, by index, with one load. */
export function* firstRows(
  tx: Transaction,
  lanes: readonly Lane[],
  { state, countOf, afterIndex = -1, most }: WantedRows,
): Steps<{ lane: Lane; rows: Partition[] }[]> {
  const chosen: Lane[] = []
  let expected = 0
  for (const lane of lanes) {
    if (expected >= most) break
    chosen.push(lane)
    expected += countOf(lane)
  }
  const { rows } = yield* load(tx, {
    rows: chosen.map(({ id, tail }, at) => ({
      lane: id,
      tail,
      state,
      afterIndex: at === 0 ? afterIndex : -1,
      limit: most,
    })),
  })
  return chosen.map((lane, at) => ({
    lane,
    rows: (rows[at] ?? []).flatMap((id) => tx.memory.partitions.get(id) ?? []),
  }))
}
