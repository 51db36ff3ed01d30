import type { Disk } from '../../disk.ts'
import type { StoredPartition } from '../../partition.ts'
import { type TaskFacts, totalOf, withRerunning } from '../../rules/task.ts'
import { filterOf } from '../../views/partition-filter.ts'
import {
  PartitionWalk,
  partitionDetails,
  ROWS_AT_A_TIME,
  ROWS_READ,
  type RowsToRead,
} from '../../views/partition-walk.ts'
import type {
  PartitionDetails,
  PartitionPage,
  PartitionPosition,
  PartitionQuery,
} from '../../views/queries.ts'
import { viewState } from '../../views/view-state.ts'
import { workOf } from '../checkpoints.ts'
import type { Partition } from '../state/memory-rows.ts'
import type { OnlyInMemory, ViewSource } from './view-source.ts'

export async function readPartitions(
  { disk, inMemory }: Pick<ViewSource, 'disk' | 'inMemory'>,
  query: PartitionQuery,
): Promise<PartitionPage | null> {
  const [task] = await disk.tasksNamed([query.taskId])
  if (task === undefined || totalOf(task.partitions) === 0) return null
  const facts = withRerunning(task)
  const { holder = null } = query
  if (holder !== null) {
    const held = [...inMemory.leasesOf(holder)].filter(({ parentLane }) => parentLane.task === task.id)
    return withReports(disk, await heldPage(disk, facts, { ...query, holder }, held), inMemory)
  }
  const walk = new PartitionWalk(facts, query, inMemory.pausedTables)
  for (let from = walk.nextLevel; from !== null; from = walk.nextLevel) {
    const [lane] = (await disk.lanesFrom({ task: task.id, from, having: 'any', limit: 1 })).lanes
    const toRead = walk.enter(lane)
    if (toRead !== null && lane !== undefined) walk.take(await rowsOf(disk, lane, toRead))
  }
  return withReports(disk, walk.page, inMemory)
}

/** Adds what workers reported: their progress, and the last checkpoint. */
async function withReports(
  disk: Disk,
  page: PartitionPage,
  { progressOf }: OnlyInMemory,
): Promise<PartitionPage> {
  const saved = page.partitions.filter(({ checkpointAt }) => checkpointAt !== null).map(({ id }) => id)
  const stored = saved.length === 0 ? [] : await disk.checkpoints(saved)
  const checkpoints = new Map(stored.map(({ partition, text }) => [partition, text]))
  const partitions = page.partitions.map((shown) => ({
    ...shown,
    ...workOf({ id: shown.id, progress: progressOf(shown.id) }, checkpoints),
  }))
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
  for (let from = 0; from < Math.min(chosen.length, ROWS_READ); from += ROWS_AT_A_TIME) {
    const some = chosen.slice(from, from + ROWS_AT_A_TIME)
    const rows = await disk.partitionsById(some.map(({ id }) => id))
    const rowById = new Map(rows.map((row) => [row.id, row]))
    for (const { id, parentLane } of some) {
      const row = rowById.get(id)
      if (row === undefined || (reason !== null && row.failure !== reason)) continue
      const details = partitionDetails(row, parentLane.level, NO_TABLES)
      const shown = viewState(facts, details)
      // The lease may have ended since memory was looked at.
      if (shown !== 'leased' || details.holder !== holder) continue
      if ((state !== null && state !== shown) || hasName?.(details) === false) continue
      if (partitions.length === limit) return { facts, partitions, next: placeOf(partitions.at(-1)) }
      partitions.push(details)
    }
  }
  const last = chosen.length > ROWS_READ ? chosen[ROWS_READ - 1] : undefined
  const next = last === undefined ? null : placeOf({ level: last.parentLane.level, index: last.index })
  return { facts, partitions, next }
}

const NO_TABLES: ReadonlySet<string> = new Set()

const placeOf = (
  partition: Pick<PartitionDetails, 'level' | 'index'> | undefined,
): PartitionPosition | null =>
  partition === undefined ? null : { part: 'begun', level: partition.level, at: partition.index }
