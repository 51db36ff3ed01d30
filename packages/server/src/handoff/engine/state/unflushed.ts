import type { RowChanges } from '../../disk.ts'
import { addToOutboxRowChanges, noOutboxRowChanges, outboxRowsOf } from '../../outbox.ts'
import type { StoredTask } from '../../stored.ts'
import { addTotals } from '../../views/queries.ts'
import type { Entry } from '../entry.ts'
import { addThroughput } from '../throughput.ts'

export const noRowChanges = (): RowChanges => ({
  tasks: new Map(),
  lanes: new Map(),
  levels: new Map(),
  laneTables: new Map(),
  partitions: new Map(),
  checkpoints: new Map(),
  keys: new Map(),
  ranges: [],
  tableSettings: new Map(),
  tables: new Map(),
  produced: new Map(),
  instances: new Map(),
  outbox: noOutboxRowChanges(),
  totals: new Map(),
  throughput: new Map(),
  audit: [],
  nextIds: null,
})

/** Adds an entry. The last change of a row replaces earlier ones. */
export function addEntry(rowChanges: RowChanges, entry: Entry): void {
  for (const task of entry.tasks)
    rowChanges.tasks.set(task.id, withFailures(task, rowChanges.tasks.get(task.id)?.failures ?? null))
  for (const lane of entry.lanes) rowChanges.lanes.set(lane.id, lane)
  for (const level of entry.levels) rowChanges.levels.set(level.level, level)
  for (const row of entry.laneTables) rowChanges.laneTables.set(`${row.lane}:${row.table}`, row)
  for (const [id, status] of entry.partitions) rowChanges.partitions.set(id, status)
  for (const [partition, text] of entry.checkpoints) rowChanges.checkpoints.set(partition, text)
  for (const [key, row] of entry.keys) rowChanges.keys.set(key, row)
  for (const range of entry.ranges) rowChanges.ranges.push(range)
  for (const [table, row] of entry.tableSettings) rowChanges.tableSettings.set(table, row)
  for (const [task, table] of entry.tables) addTable(rowChanges, task, table)
  for (const [task, instance, at] of entry.produced)
    rowChanges.produced.set(`${task}:${instance}`, { task, instance, at })
  for (const [
    instanceId,
    role,
    at,
    pausedAt = rowChanges.instances.get(instanceId)?.pausedAt,
  ] of entry.instances)
    rowChanges.instances.set(instanceId, { instanceId, role, at, pausedAt })
  if (entry.outbox !== null) addToOutboxRowChanges(rowChanges.outbox, entry.outbox)
  for (const added of entry.totals) {
    const before = rowChanges.totals.get(added.instanceId)
    if (before === undefined)
      rowChanges.totals.set(added.instanceId, { ...added, totals: { ...added.totals } })
    else {
      addTotals(before.totals, added.totals)
      before.lostUnlessSeenSince = laterOf(before.lostUnlessSeenSince, added.lostUnlessSeenSince)
    }
  }
  addThroughput(rowChanges.throughput, entry.throughput)
  rowChanges.audit.push(...entry.audit)
  if (entry.nextIds !== null) rowChanges.nextIds = entry.nextIds
}

/** Null is the earliest. */
export const laterOf = (a: number | null, b: number | null): number | null =>
  a === null || (b !== null && b > a) ? b : a

/** A change without failures leaves them unchanged. */
function withFailures(task: StoredTask, failures: StoredTask['failures']): StoredTask {
  return task.failures !== null || failures === null ? task : { ...task, failures }
}

/** The approximate number of rows in an entry. */
function rowsOf({
  tasks,
  lanes,
  laneTables,
  partitions,
  checkpoints,
  keys,
  ranges,
  tables,
  outbox,
}: Entry): number {
  const ofLanes = lanes.length + laneTables.length
  const changed = tasks.length + ofLanes + partitions.length + checkpoints.length
  const rows = 1 + changed + keys.length + ranges.length + tables.length
  return outbox === null ? rows : rows + outboxRowsOf(outbox)
}

interface EntryGroup {
  readonly entries: Entry[]
  rows: number
  /** The number of its last entry. */
  upTo: number
}

const noEntries = (): EntryGroup => ({ entries: [], rows: 0, upTo: 0 })

/** Input of a flush. */
export interface Flushable {
  readonly rowChanges: RowChanges
  readonly upTo: number
}

/**
 * Entries that are durable but not flushed, in two groups. The older group is flushed first, without the rows
 * that the newer one changed again. So a partition that is finished soon after it was leased is written once
 * and never enters the lease indexes, and a lane that changes constantly is rarely written.
 */
export class Unflushed {
  #older = noEntries()
  #newer = noEntries()

  /** The approximate number of rows of the newer group. */
  get newerRows(): number {
    return this.#newer.rows
  }

  get entries(): number {
    return this.#newer.entries.length
  }

  /** The approximate number of unflushed rows. */
  get rows(): number {
    return this.#older.rows + this.#newer.rows
  }

  add(entry: Entry, number: number): void {
    this.#newer.entries.push(entry)
    this.#newer.rows += rowsOf(entry)
    this.#newer.upTo = number
  }

  /** Takes the older group. The newer one replaces it. */
  takeOlder(): Flushable | null {
    const { entries, upTo } = this.#older
    const newer = this.#newer
    this.#older = newer
    this.#newer = noEntries()
    if (entries.length === 0) return null
    const rowChanges = rowChangesOf(entries)
    for (const entry of newer.entries) removeEntry(rowChanges, entry)
    return { rowChanges, upTo }
  }

  takeAll(): Flushable | null {
    const entries = [...this.#older.entries, ...this.#newer.entries]
    const upTo = Math.max(this.#older.upTo, this.#newer.upTo)
    this.#older = noEntries()
    this.#newer = noEntries()
    return entries.length === 0 ? null : { rowChanges: rowChangesOf(entries), upTo }
  }
}

export function rowChangesOf(entries: readonly Entry[]): RowChanges {
  const rowChanges = noRowChanges()
  for (const entry of entries) addEntry(rowChanges, entry)
  return rowChanges
}

/** A lane has many columns and indexes, so writing it counts as this many partitions. */
const ROWS_PER_LANE = 4

/**
 * Splits changes into pieces of about this many rows, so that no write blocks others for long. Changes are
 * absolute and may be written twice, except for increments of totals: those, and everything small, go into
 * the last piece.
 */
export function inPieces(changes: RowChanges, rows: number): RowChanges[] {
  const pieces: RowChanges[] = []
  let piece = noRowChanges()
  let filled = 0
  const add = (put: (piece: RowChanges) => void, size = 1) => {
    if (filled >= rows) {
      pieces.push(piece)
      piece = noRowChanges()
      filled = 0
    }
    put(piece)
    filled += size
  }
  for (const [id, task] of changes.tasks) add(({ tasks }) => tasks.set(id, task))
  for (const [id, lane] of changes.lanes) add(({ lanes }) => lanes.set(id, lane), ROWS_PER_LANE)
  for (const [name, row] of changes.laneTables) add(({ laneTables }) => laneTables.set(name, row))
  for (const [id, status] of changes.partitions) add(({ partitions }) => partitions.set(id, status))
  for (const [id, text] of changes.checkpoints) add(({ checkpoints }) => checkpoints.set(id, text))
  for (const range of changes.ranges) add(({ ranges }) => ranges.push(range))
  for (const [task, names] of changes.tables) for (const name of names) add((to) => addTable(to, task, name))
  const { tasks, lanes, laneTables, partitions, checkpoints, ranges, tables } = piece
  return [...pieces, { ...changes, tasks, lanes, laneTables, partitions, checkpoints, ranges, tables }]
}

function addTable({ tables }: RowChanges, task: number, name: string): void {
  const names = tables.get(task)
  if (names === undefined) tables.set(task, new Set([name]))
  else names.add(name)
}

function removeEntry(rowChanges: RowChanges, entry: Entry): void {
  // Failures are only in the entry that changed them, and that entry is deleted with this flush. Totals and
  // throughput are increments and are never replaced.
  for (const { id } of entry.tasks)
    if (rowChanges.tasks.get(id)?.failures === null) rowChanges.tasks.delete(id)
  for (const { id } of entry.lanes) rowChanges.lanes.delete(id)
  for (const { level } of entry.levels) rowChanges.levels.delete(level)
  for (const [id] of entry.partitions) rowChanges.partitions.delete(id)
  for (const [partition] of entry.checkpoints) rowChanges.checkpoints.delete(partition)
  for (const [key] of entry.keys) rowChanges.keys.delete(key)
}
