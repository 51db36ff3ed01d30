import type { Needs } from '../disk.ts'
import type { StoredState } from '../stored.ts'
import type { Lane, Partition, Task } from './state/memory.ts'
import { load, type Steps, type Transaction } from './transaction.ts'

/** A task may have thousands of lanes with a row each: they are read many at a time, for work that is done lane by lane. */
const LANES_AT_A_TIME = 250

type Having = NonNullable<Needs['nextLanes']>[number]['having']

/** The next lanes of a task from a level on. Rows were flushed before: the disk knows all of them. */
export function* lanesFrom(tx: Transaction, task: Task, from: number, having: Having): Steps<Lane[]> {
  if (from > Number.MAX_SAFE_INTEGER) return []
  const { nextLanes } = yield* load(tx, {
    nextLanes: [{ task: task.id, from, having, limit: LANES_AT_A_TIME }],
  })
  return (nextLanes[0] ?? []).flatMap((id) => tx.memory.lanes.get(id) ?? [])
}

interface WantedRows {
  readonly state: StoredState | null
  /** How many of them a lane is known to have. */
  readonly countOf: (lane: Lane) => number
  /** Of the first lane, those behind this index. */
  readonly afterIndex?: number
  /** At most so many of each lane, and of as many lanes as it takes. */
  readonly most: number
}

/** The first rows of these lanes, by index, with one load. */
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
