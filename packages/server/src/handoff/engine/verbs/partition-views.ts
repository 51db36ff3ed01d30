import type { Disk } from '../../disk.ts'
import type { StoredPartition } from '../../partition.ts'
import { type TaskFacts, totalOf } from '../../rules/task.ts'
import { filterOf } from '../../views/partition-filter.ts'
import { PartitionWalk, ROWS_AT_A_TIME, ROWS_READ, type RowsToRead } from '../../views/partition-walk.ts'
import type {
  PartitionDetails,
  PartitionPage,
  PartitionPosition,
  PartitionQuery,
} from '../../views/queries.ts'
import { viewState } from '../../views/view-state.ts'
import { checkpointsOf, workOf } from '../checkpoints.ts'
import type { Partition } from '../state/memory-rows.ts'
import type { ViewSource } from './view-source.ts'

type Rows = Pick<ViewSource, 'disk' | 'memory'>

export async function readPartitions(rows: Rows, query: PartitionQuery): Promise<PartitionPage | null> {
  const { disk, memory } = rows
  const [task] = await disk.tasksNamed([query.taskId])
  if (task === undefined || totalOf(task.partitions) === 0) return null
  const { holder = null } = query
  if (holder !== null) {
    const held = [...memory.leases.of(holder)].filter(({ parentLane }) => parentLane.task === task.id)
    return withReports(rows, await heldPage(disk, task, { ...query, holder }, held))
  }
  const walk = new PartitionWalk(task, query, memory.order.tables.paused)
  for (let from = walk.nextLevel; from !== null; from = walk.nextLevel) {
    const [lane] = (await disk.lanesFrom({ task: task.id, from, having: 'any', limit: 1 })).lanes
    const toRead = walk.enter(lane)
    if (toRead !== null && lane !== undefined) walk.take(await rowsOf(disk, lane, toRead))
  }
  return withReports(rows, walk.page)
}

/** Adds what workers reported: their progress, and the last checkpoint. */
async function withReports({ disk, memory }: Rows, page: PartitionPage): Promise<PartitionPage> {
  const checkpoints = await checkpointsOf(memory, disk, page.partitions)
  const partitions = page.partitions.map((shown) => {
    const progress = memory.partitions.get(shown.id)?.progress ?? null
    return { ...shown, ...workOf({ id: shown.id, progress }, checkpoints) }
  })
  return { ...page, partitions }
}

async function rowsOf(
  disk: Disk,
  lane: { readonly id: number; readonly tail: number },
  read: RowsToRead,
): Promise<StoredPartition[]> {
  if (read.by === 'arrival') {
    const { last: upTo, limit } = read
    const after = { dueAt: 0, id: read.after }
    const [rows = []] = await disk.waiting([{ lane: lane.id, returned: false, after, upTo, limit }])
    return rows
  }
  const { by: _by, after: afterIndex, last: lastIndex, ...which } = read
  const [rows = []] = await disk.rows([{ lane: lane.id, tail: lane.tail, afterIndex, lastIndex, ...which }])
  return rows
}

const byPlace = (a: Partition, b: Partition): number =>
  a.parentLane.level - b.parentLane.level || a.index - b.index

/** All that an instance holds is unfinished, so both orders are the same. */
async function heldPage(
  disk: Disk,
  facts: TaskFacts,
  query: PartitionQuery & { readonly holder: string },
  held: readonly Partition[],
): Promise<PartitionPage> {
  const { levels, indexes, hasName } = filterOf(query)
  const { after, limit, state, holder, reason = null } = query
  const isAfter = (level: number, index: number) =>
    after === null || level > after.level || (level === after.level && index > after.at)
  const chosen = held
    .filter(({ index, parentLane: { level } }) => {
      const isChosen = levels(level)?.first === level && indexes(index)?.first === index
      return isChosen && isAfter(level, index)
    })
    .toSorted(byPlace)
  const partitions: PartitionDetails[] = []
  let next: PartitionPosition | null = null
  for (let from = 0; from < Math.min(chosen.length, ROWS_READ); from += ROWS_AT_A_TIME) {
    const some = chosen.slice(from, from + ROWS_AT_A_TIME)
    const rows = await disk.partitionsById(some.map(({ id }) => id))
    const rowById = new Map(rows.map((row) => [row.id, row]))
    for (const { id, parentLane } of some) {
      const row = rowById.get(id)
      if (row === undefined || (reason !== null && row.failure !== reason)) continue
      const details = { ...row, level: parentLane.level }
      const shown = viewState(facts, details)
      // The lease may have ended since memory was looked at.
      if (shown !== 'leased' || details.holder !== holder) continue
      if ((state !== null && state !== shown) || hasName?.(details) === false) continue
      if (partitions.length === limit) return { facts, partitions, next }
      partitions.push(details)
      next = placeOf(details.level, details.index)
    }
  }
  const last = chosen.length > ROWS_READ ? chosen[ROWS_READ - 1] : undefined
  next = last === undefined ? null : placeOf(last.parentLane.level, last.index)
  return { facts, partitions, next }
}

const placeOf = (level: number, at: number): PartitionPosition => ({ part: 'begun', level, at })
