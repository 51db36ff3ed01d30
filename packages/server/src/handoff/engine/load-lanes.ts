import type { Needs } from '../disk.ts'
import { type Line, untouched } from '../partition.ts'
import type { StoredState } from '../rules/life-cycle.ts'
import { isLaneOpen } from '../rules/task.ts'
import { StoreUnavailable } from '../store.ts'
import type { Lane, Partition, Task } from './state/memory-rows.ts'
import { laneOf, linesOf, lineToServe, onlyTableOf, type Source } from './state/memory-rows.ts'
import { load, type Transaction } from './transaction.ts'

/** The number of partitions that are read ahead for a lane: more if few lanes have work. */
const ROWS_AT_A_TIME = 32
const ROWS_OF_ALL_LANES = 4096
const ROWS_AT_MOST = 1000
/** The maximum number of lines filled with one load. */
export const LINES_AT_A_TIME = 64
/** The number of lanes of the order per load: doubled while none may be served, up to the maximum. */
export const ORDER_LANES_AT_FIRST = 256
export const ORDER_LANES_AT_MOST = 4096
/**
 * The number of lanes of one task per load. A task may have thousands of lanes with one row each, so lanes
 * are read in pages even for work done lane by lane.
 */
export const TASK_LANES_AT_A_TIME = 256
/**
 * If a lane has several tables, a load scans this many ids for partitions of one table. The range doubles
 * each time none was found, up to the maximum, so every load is bounded.
 */
const IDS_AT_A_TIME = 20_000
const IDS_AT_MOST = 320_000

/**
 * Returns the next partition of a source, which must have some. `ahead` returns the sources that come next.
 */
export async function firstOf(
  tx: Transaction,
  source: Source,
  ahead: () => readonly Source[],
  demand: number,
): Promise<Partition> {
  let ids = IDS_AT_A_TIME
  while (true) {
    const line = linesOf(source)[lineToServe(source)]
    if (line.first !== undefined) return line.first
    // Memory and rows disagree, so another node has become leader and written rows. Reading the disk again
    // resolves this.
    if (line.isComplete)
      throw new StoreUnavailable(
        'store_unavailable',
        `lane ${source.id} counts partitions that have no rows; another node may be the leader now`,
      )
    await loadLines(tx, source, ahead(), demand, ids)
    ids = Math.min(ids * 2, IDS_AT_MOST)
  }
}

interface Wanted {
  readonly source: Source
  readonly lane: Lane
  readonly line: Line
  readonly table: string | undefined
  readonly limit: number
  readonly after: number
  /** For fresh partitions: the last id to scan. */
  readonly upTo: number
}

/** Fills the line to serve, and those of other sources that come next. */
async function loadLines(
  tx: Transaction,
  front: Source,
  ahead: readonly Source[],
  demand: number,
  ids: number,
): Promise<void> {
  const others = ahead.filter(
    (source) => source !== front && linesOf(source)[lineToServe(source)].first === undefined,
  )
  const sources = [front, ...others.slice(0, Math.max(0, demand - 1))]
  const share = Math.floor(ROWS_OF_ALL_LANES / tx.memory.order.size)
  const most = Math.min(Math.max(ROWS_AT_A_TIME, demand, share), ROWS_AT_MOST)
  const wanted = sources.map((source): Wanted => {
    const lane = laneOf(source)
    const line = lineToServe(source)
    const table = onlyTableOf(source)
    const cursor = table === undefined ? lane.cursor : Math.max(lane.cursor, source.cursor)
    const after = Math.max(linesOf(source).fresh.loadedTo?.id ?? 0, cursor)
    const upTo = table === undefined ? lane.tail : Math.min(lane.tail, after + ids)
    return { source, lane, line, table, limit: source === front ? most : ROWS_AT_A_TIME, after, upTo }
  })
  const fresh = wanted.filter(({ line }) => line === 'fresh')
  const returned = wanted.filter(({ line }) => line !== 'fresh')
  const loaded = await load(tx, {
    ...(fresh.length === 0
      ? {}
      : {
          fresh: fresh.map(({ lane, table, after, upTo, limit }) => ({
            lane: lane.id,
            ...(table === undefined ? {} : { table }),
            after,
            tail: upTo,
            limit,
          })),
        }),
    ...(returned.length === 0
      ? {}
      : {
          returned: returned.map(({ source, lane, line, table, limit }) => ({
            lane: lane.id,
            ...(table === undefined ? {} : { table }),
            line: line as Exclude<Line, 'fresh'>,
            after: linesOf(source)[line].loadedTo,
            limit,
          })),
        }),
  })
  for (const [at, one] of fresh.entries()) fillFresh(tx, one, loaded.fresh[at] ?? [])
  if (returned.length === 0) return
  const rows = new Map(loaded.partitions.map((row) => [row.id, row]))
  for (const [at, { source, line, limit }] of returned.entries()) {
    const found = loaded.returned[at] ?? []
    const last = rows.get(found.at(-1) ?? -1)
    const place = last === undefined ? null : { dueAt: line === 'retry' ? (last.dueAt ?? 0) : 0, id: last.id }
    linesOf(source)[line].fill(waitingAmong(tx, source, line, found), place, found.length < limit)
  }
}

function fillFresh(tx: Transaction, wanted: Wanted, ids: readonly number[]): void {
  const { source, lane, table, limit, upTo } = wanted
  const buffer = linesOf(source).fresh
  const found = waitingAmong(tx, source, 'fresh', ids)
  const isAllScanned = ids.length < limit
  const isEnd = isAllScanned && upTo >= lane.tail
  if (isEnd) {
    const there = new Set([...buffer.items, ...found])
    for (const partition of unwritten(tx, lane, table)) if (!there.has(partition)) found.push(partition)
  }
  const last = isAllScanned && table !== undefined ? upTo : ids.at(-1)
  buffer.fill(found, last === undefined ? null : { dueAt: 0, id: last }, isEnd)
}

/**
 * Filters loaded rows. Memory may be newer than a row: the partition may have left the line, or be in it
 * already.
 */
function waitingAmong(tx: Transaction, source: Source, line: Line, ids: readonly number[]): Partition[] {
  const there = new Set(linesOf(source)[line].items)
  const found: Partition[] = []
  for (const id of ids) {
    const partition = tx.memory.partitions.get(id)
    if (partition?.state === 'ready' && partition.line === line && !there.has(partition))
      found.push(partition)
  }
  return found
}

/**
 * Partitions of call-backs in the same batch. Their rows are not on disk yet, and no load finds them later.
 */
function unwritten(tx: Transaction, lane: Lane, table: string | undefined): Partition[] {
  if (!tx.calledBack.has(lane.id)) return []
  const { partitions } = tx.memory
  return tx.newRows
    .filter((row) => row.lane === lane.id && (table === undefined || row.computeTable === table))
    .map((row) => partitions.get(row.id) ?? tx.memory.addPartition({ ...row, ...untouched() }))
    .filter(({ state, line }) => state === 'ready' && line === 'fresh')
}

/** Loads the next lanes in the order, after those that were loaded before. */
export async function loadOrder(tx: Transaction, limit: number): Promise<void> {
  const { memory } = tx
  const { order: found, lanes: rows } = await load(tx, { order: { after: memory.order.loadedTo, limit } })
  const position = new Map(rows.map((row) => [row.id, row]))
  for (const id of found) {
    const lane = memory.lanes.get(id)
    if (lane === undefined || lane.turn === null || lane.heapIndex >= 0) continue
    memory.order.put(lane)
    if (isLaneOpen(lane.parentTask, lane.level)) tx.lines.catchUp(lane)
  }
  const last = found.at(-1)
  const row = last === undefined ? undefined : position.get(last)
  if (row !== undefined && row.turn !== null)
    memory.order.loadedTo = { level: row.level, turn: row.turn, lane: row.id }
  memory.order.isComplete = found.length < limit
}

type Having = NonNullable<Needs['nextLanes']>[number]['having']

/**
 * Returns the next lanes of a task, starting at a level. Rows must be flushed, so that the disk knows all of
 * them.
 */
export async function lanesFrom(tx: Transaction, task: Task, from: number, having: Having): Promise<Lane[]> {
  if (from > Number.MAX_SAFE_INTEGER) return []
  const { nextLanes } = await load(tx, {
    nextLanes: [{ task: task.id, from, having, limit: TASK_LANES_AT_A_TIME }],
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
export async function firstRows(
  tx: Transaction,
  lanes: readonly Lane[],
  { state, countOf, afterIndex = -1, most }: WantedRows,
): Promise<{ lane: Lane; rows: Partition[] }[]> {
  const chosen: Lane[] = []
  let expected = 0
  for (const lane of lanes) {
    if (expected >= most) break
    chosen.push(lane)
    expected += countOf(lane)
  }
  const { rows } = await load(tx, {
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
