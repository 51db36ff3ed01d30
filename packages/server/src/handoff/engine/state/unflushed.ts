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
    if (before === undefined) rowChanges.totals.set(added.instanceId, added)
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

/** What the entries of a group changed. */
class EntryGroup {
  readonly rowChanges = noRowChanges()
  entries = 0
  /** The number of its last entry. */
  upTo = 0
  #tableNames = 0

  add(entry: Entry, number: number): void {
    addEntry(this.rowChanges, entry)
    this.entries += 1
    this.upTo = number
    this.#tableNames += entry.tables.length
  }

  /** The approximate number of rows. */
  get rows(): number {
    const { tasks, lanes, laneTables, partitions, checkpoints, keys, ranges, outbox } = this.rowChanges
    const ofTasks = tasks.size + this.#tableNames + lanes.size + laneTables.size + ranges.length
    return ofTasks + partitions.size + checkpoints.size + keys.size + outboxRowsOf(outbox)
  }
}

/** Input of a flush. */
export type Flushable = Pick<EntryGroup, 'rowChanges' | 'upTo'>

/**
 * Entries that are durable but not flushed, in two groups. The older group is flushed first, without the rows
 * that the newer one changed again. So a partition that is finished soon after it was leased is written once
 * and never enters the lease indexes, and a lane that changes constantly is rarely written.
 */
export class Unflushed {
  #older = new EntryGroup()
  #newer = new EntryGroup()

  /** The approximate number of rows of the newer group. */
  get newerRows(): number {
    return this.#newer.rows
  }

  get entries(): number {
    return this.#newer.entries
  }

  /** The approximate number of unflushed rows. */
  get rows(): number {
    return this.#older.rows + this.#newer.rows
  }

  add(entry: Entry, number: number): void {
    this.#newer.add(entry, number)
  }

  /** Takes the older group, or nothing. The newer one replaces it. */
  takeOlder(): Flushable[] {
    const older = this.#older
    const newer = this.#newer
    this.#older = newer
    this.#newer = new EntryGroup()
    if (older.entries === 0) return []
    removeNewer(older.rowChanges, newer.rowChanges)
    return [older]
  }

  /** Takes both groups, the older one first. */
  takeAll(): Flushable[] {
    return [...this.takeOlder(), ...this.takeOlder()]
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

function removeNewer(older: RowChanges, newer: RowChanges): void {
  // Failures are only in the entry that changed them, and that entry is deleted with this flush. Totals and
  // throughput are increments and are never replaced.
  for (const id of newer.tasks.keys()) if (older.tasks.get(id)?.failures === null) older.tasks.delete(id)
  for (const id of newer.lanes.keys()) older.lanes.delete(id)
  for (const level of newer.levels.keys()) older.levels.delete(level)
  for (const id of newer.partitions.keys()) older.partitions.delete(id)
  for (const partition of newer.checkpoints.keys()) older.checkpoints.delete(partition)
  for (const key of newer.keys.keys()) older.keys.delete(key)
}
