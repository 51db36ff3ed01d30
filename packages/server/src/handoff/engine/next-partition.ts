import type { WaitingOfLane } from '../disk.ts'
import type { StoredPartition } from '../partition.ts'
import { isTableBlocked } from '../rules/policy.ts'
import { LeaderUnavailable } from '../store.ts'
import type { DuePosition } from '../views/queries.ts'
import { addPartitions } from './read-rows.ts'
import {
  type Buffers,
  buffersOf,
  isLaneTable,
  type Lane,
  type LaneTable,
  laneOf,
  type Partition,
  readyOf,
  type Source,
  tableOf,
} from './state/memory-rows.ts'
import { comparePositions, positionOf } from './state/waiting-buffer.ts'
import type { Transaction } from './transaction.ts'

// The next partition of a lane. What memory lacks of the waiting partitions is read for several lanes at once.

/** The number of partitions that are read ahead for a lane: more if few lanes are next, fewer if there are very many. */
const ROWS_AT_A_TIME = 32
const ROWS_OF_FEW_LANES = 4096
const ROWS_AT_MOST = 1000
/** The maximum number of lanes, or of tables of a lane, whose partitions are read together. */
export const LANES_READ_TOGETHER = 64
type Kind = keyof Buffers

/** The next partition of a lane or table in which some wait: first what came back, then what arrived first. */
export function firstInMemory(source: Source): Partition | undefined {
  return buffersOf(source)[kindOf(source)].first
}

const kindOf = (source: Source): Kind => (source.returned > 0 ? 'returned' : 'fresh')

/** The next partition of a lane. `tables` are those of a filter; `ahead` returns the lanes that come next. */
export async function firstOf(
  tx: Transaction,
  lane: Lane,
  tables: ReadonlySet<string> | null,
  ahead: () => readonly Lane[],
  demand: number,
): Promise<Partition> {
  const sameLevel = () => ahead().filter(({ level }) => level === lane.level)
  const first = (sources: readonly Source[]) => firstOfSources(tx, sources, sameLevel, demand)
  if (lane.mixed === null) return first([lane])
  if (tables !== null) return first(tablesWaiting(lane, tables))
  const earliest = await first([lane])
  if (!isTableBlocked(tableOf(earliest))) return earliest
  const table = tx.memory.order.servableTable(lane)
  if (table === undefined) throw disagreement(lane)
  return first([table])
}

async function firstOfSources(
  tx: Transaction,
  sources: readonly Source[],
  ahead: () => readonly Lane[],
  demand: number,
): Promise<Partition> {
  const lane = laneOf(sources[0] as Source)
  const kind = sources.some(({ returned }) => returned > 0) ? 'returned' : 'fresh'
  const waiting = sources.filter((source) => (kind === 'returned' ? source.returned : readyOf(source)) > 0)
  while (true) {
    const missing = waiting.filter((source) => buffersOf(source)[kind].first === undefined)
    if (missing.length === 0) return earliestOf(waiting, kind, lane)
    // Another node leads and has written rows. Reading the disk again resolves this.
    if (missing.some((source) => buffersOf(source)[kind].isComplete)) throw disagreement(lane)
    const next = missing[0] === lane ? ahead() : []
    await loadWaiting(tx, missing.slice(0, LANES_READ_TOGETHER), kind, next, demand)
  }
}

function earliestOf(sources: readonly Source[], kind: Kind, lane: Lane): Partition {
  let earliest: Partition | undefined
  for (const source of sources) {
    const { first } = buffersOf(source)[kind]
    if (first === undefined) continue
    if (earliest === undefined || comparePositions(positionOf(first), positionOf(earliest)) < 0)
      earliest = first
  }
  if (earliest === undefined) throw disagreement(lane)
  return earliest
}

const disagreement = ({ id }: Lane) =>
  new LeaderUnavailable(`lane ${id} counts partitions that have no rows; another node may be the leader now`)

/** Those of these tables that may be served. */
function tablesWaiting({ mixed }: Lane, names: ReadonlySet<string>): LaneTable[] {
  const waiting: LaneTable[] = []
  for (const name of names) {
    const table = mixed?.tables.get(name)
    if (table !== undefined && table.ready > 0 && !isTableBlocked(table.entry.table)) waiting.push(table)
  }
  return waiting
}

interface Wanted {
  readonly source: Source
  readonly kind: Kind
  readonly query: WaitingOfLane
}

/** Also fills those of lanes that come next. Lanes take turns, so none may push out what others read. */
async function loadWaiting(
  tx: Transaction,
  sources: readonly Source[],
  kind: Kind,
  next: readonly Lane[],
  demand: number,
): Promise<void> {
  const kept = Math.floor(tx.limits.partitions / 2 / tx.memory.tasks.size)
  const atATime = Math.max(1, Math.min(ROWS_AT_A_TIME, kept))
  const share = Math.floor(Math.max(demand, ROWS_OF_FEW_LANES) / Math.max(1, next.length))
  const most = next.length < LANES_READ_TOGETHER ? Math.max(atATime, Math.min(share, ROWS_AT_MOST)) : atATime
  const others = next.filter((lane) => !sources.includes(lane) && firstInMemory(lane) === undefined)
  const wanted = [
    ...sources.map((source) => wantedOf(source, kind, isLaneTable(source) ? atATime : most)),
    ...others.slice(0, Math.max(0, demand - 1)).map((lane) => wantedOf(lane, kindOf(lane), atATime)),
  ]
  const found = await tx.disk.waiting(wanted.map(({ query }) => query))
  for (const [index, one] of wanted.entries()) {
    const rows = found[index] ?? []
    await addPartitions(tx, rows)
    fill(tx, one, rows)
    tx.memory.buffered(laneOf(one.source))
  }
}

function wantedOf(source: Source, kind: Kind, limit: number): Wanted {
  const lane = laneOf(source)
  const { loadedTo } = buffersOf(source)[kind]
  const named = isLaneTable(source) ? { table: source.table } : {}
  if (kind === 'returned') {
    const query = { lane: lane.id, ...named, returned: true, after: loadedTo ?? BEGINNING, upTo: 0, limit }
    return { source, kind, query }
  }
  const id = Math.max(loadedTo?.id ?? 0, lane.cursor, source.cursor)
  const { mixedAfter, table, tail } = lane
  // The partitions of the first table that arrived before the second table came are found by arrival.
  const isBeforeMixed = isLaneTable(source) && source.table === table && id < (mixedAfter ?? 0)
  const query = {
    lane: lane.id,
    ...(isBeforeMixed ? {} : named),
    returned: false,
    after: { dueAt: 0, id },
    upTo: isBeforeMixed ? (mixedAfter ?? tail) : tail,
    limit,
  }
  return { source, kind, query }
}

const BEGINNING: DuePosition = { dueAt: -1, id: -1 }

function fill(tx: Transaction, { source, kind, query }: Wanted, rows: readonly StoredPartition[]): void {
  const buffer = buffersOf(source)[kind]
  const there = new Set(buffer.items)
  // Memory may be newer than a row: the partition may not wait any more, or be in the buffer already.
  const found: Partition[] = []
  for (const { id } of rows) {
    const partition = tx.memory.partitions.get(id)
    if (partition?.state !== 'ready' || there.has(partition)) continue
    if ((partition.dueAt === null) === (kind === 'fresh')) found.push(partition)
  }
  const isAll = rows.length < query.limit
  const isEnd = isAll && (kind === 'returned' || query.upTo >= laneOf(source).tail)
  if (isEnd && kind === 'fresh') {
    for (const partition of found) there.add(partition)
    for (const partition of unwritten(tx, source)) if (!there.has(partition)) found.push(partition)
  }
  const last = rows.at(-1)
  const read = last === undefined ? null : positionOf(last)
  buffer.fill(found, isAll && kind === 'fresh' ? { dueAt: 0, id: query.upTo } : read, isEnd)
}

/** Call-backs of the same batch: their rows are not on disk yet, and no read finds them later. */
function unwritten(tx: Transaction, source: Source): Partition[] {
  const { id } = laneOf(source)
  if (!tx.calledBack.has(id)) return []
  const { partitions } = tx.memory
  return tx.newRows
    .filter((row) => row.lane === id && (!isLaneTable(source) || row.computeTable === source.table))
    .map((row) => partitions.get(row.id) ?? tx.addPartition(row))
    .filter(({ state, dueAt }) => state === 'ready' && dueAt === null)
}
