import type { ArchiveSource, PerSection, RowBatch } from '../handoff/archived.ts'
import type { RowChanges } from '../handoff/disk.ts'
import { decodeEntry } from '../handoff/engine/entry.ts'
import { lowerBound } from '../handoff/engine/state/lower-bound.ts'
import { addEntry, noRowChanges } from '../handoff/engine/state/unflushed.ts'
import { ALL_TASKS } from '../handoff/engine/throughput.ts'
import type { StoredPartition } from '../handoff/partition.ts'
import { type IndexRange, unitedRuns } from '../handoff/rules/index-runs.ts'
import { noTallies, totalOf } from '../handoff/rules/task.ts'
import type { IndexRangeOfLane, NextIds, StoredLane, StoredLaneTable, StoredTask } from '../handoff/stored.ts'
import type { Section } from '../handoff/table-fields.ts'
import { checkRecount, laneName, type Recount, type RecountedTable } from './recount.ts'

const MOST_FINDINGS = 1000

export interface Checked {
  /** Contradictions in the data, one sentence each. Empty if there are none. */
  readonly findings: readonly string[]
  /** Row counts of the store, including changes that are not flushed yet. */
  readonly counts: PerSection<number>
}

/** Reads everything once. Unflushed entries are applied to the rows before they are checked. */
export async function check(source: ArchiveSource): Promise<Checked> {
  const { rowChanges, faults } = readEntries(source.unflushed)
  const rows = new CheckedRows(source.nextIds, rowChanges)
  for await (const batch of source.batches()) rows.add(batch)
  const findings = [...faults, ...rows.findings()].slice(0, MOST_FINDINGS)
  return { findings, counts: { ...source.counts, ...rows.counts } }
}

function readEntries(bodies: readonly string[]): { rowChanges: RowChanges; faults: string[] } {
  const faults: string[] = []
  const rowChanges = noRowChanges()
  for (const [at, body] of bodies.entries()) {
    try {
      addEntry(rowChanges, decodeEntry(body))
    } catch (error) {
      const { message } = error as Error
      faults.push(`entry ${at + 1} of ${bodies.length} that are not flushed yet cannot be read: ${message}`)
    }
  }
  return { rowChanges, faults }
}

interface CheckedLane extends Recount {
  readonly tables: RecountedTable[]
  ranges: IndexRange[]
}

/** Its memory use grows with lanes, ranges and checkpoints, not with partitions. */
class CheckedRows {
  readonly #nextIds: NextIds
  readonly #rowChanges: RowChanges
  readonly #tasks = new Map<number, StoredTask>()
  readonly #lanes = new Map<number, CheckedLane>()
  readonly #findings: string[] = []
  /** Ids of partitions whose rows say that they have a checkpoint, and that were not found to have one yet. */
  readonly #withCheckpoint = new Set<number>()
  #partitions = 0
  #section: Section | undefined

  constructor(nextIds: NextIds, rowChanges: RowChanges) {
    this.#nextIds = rowChanges.nextIds ?? nextIds
    this.#rowChanges = rowChanges
  }

  get counts(): { readonly tasks: number; readonly partitions: number } {
    return { tasks: this.#tasks.size, partitions: this.#partitions }
  }

  add(batch: RowBatch): void {
    const { tasks, lanes, laneTables, partitions, checkpoints } = this.#rowChanges
    if (batch.section !== this.#section) this.#begin(batch.section)
    switch (batch.section) {
      case 'tasks':
        for (const task of batch.rows) {
          const changed = tasks.get(task.id)
          if (changed === undefined) this.#addTask(task)
          // A changed row without failures leaves them unchanged.
          else this.#tasks.set(task.id, { ...changed, failures: changed.failures ?? task.failures })
        }
        break
      case 'lanes':
        for (const lane of batch.rows) if (!lanes.has(lane.id)) this.#addLane(lane)
        break
      case 'laneTables':
        for (const row of batch.rows) if (!laneTables.has(`${row.lane}:${row.table}`)) this.#addTable(row)
        break
      case 'ranges':
        for (const range of batch.rows) this.#addRange(range)
        break
      case 'partitions':
        for (const row of batch.rows) {
          const status = partitions.get(row.id)
          if (status !== null) this.#addPartition(status === undefined ? row : { ...row, ...status })
        }
        break
      case 'checkpoints':
        for (const { partition } of batch.rows)
          if (!checkpoints.has(partition)) this.#addCheckpoint(partition)
        break
      case 'throughput':
        for (const { task, step, at } of batch.rows)
          if (task !== ALL_TASKS && !this.#tasks.has(task))
            this.#findings.push(
              `the throughput of the ${step} from ${new Date(at).toISOString()} belongs to task ${task}, which does not exist`,
            )
        break
      default:
    }
  }

  /** Adds what the entries change in a section, before its stored rows. */
  #begin(section: Section): void {
    this.#section = section
    const { tasks, lanes, laneTables, ranges, checkpoints } = this.#rowChanges
    if (section === 'tasks') for (const task of tasks.values()) this.#addTask(task)
    if (section === 'lanes') for (const lane of lanes.values()) this.#addLane(lane)
    if (section === 'laneTables') for (const row of laneTables.values()) this.#addTable(row)
    if (section === 'ranges') for (const range of ranges) this.#addRange(range)
    if (section === 'partitions')
      for (const lane of this.#lanes.values()) lane.ranges = unitedRuns(lane.ranges)
    if (section === 'checkpoints')
      for (const [partition, text] of checkpoints) if (text !== null) this.#addCheckpoint(partition)
  }

  findings(): string[] {
    for (const id of this.#withCheckpoint)
      this.#findings.push(`partition row ${id} has a checkpoint according to its row, but there is none`)
    const lanes = [...this.#lanes.values()]
    return [...this.#findings, ...lanes.flatMap(checkRanges), ...checkRecount(lanes)]
  }

  #addTask(task: StoredTask): void {
    if (task.id >= this.#nextIds.task)
      this.#findings.push(`task ${task.taskId} has id ${task.id}, which would also be assigned to a new task`)
    this.#tasks.set(task.id, task)
  }

  #addRange(range: IndexRangeOfLane): void {
    this.#lanes.get(range.lane)?.ranges.push(range)
  }

  #addTable(row: StoredLaneTable): void {
    this.#lanes.get(row.lane)?.tables.push({ row, waiting: { fresh: 0, returned: 0 } })
  }

  #addLane(lane: StoredLane): void {
    const task = this.#tasks.get(lane.task)
    if (task === undefined) {
      this.#findings.push(
        `lane ${lane.id} (level ${lane.level}) belongs to task ${lane.task}, which does not exist`,
      )
      return
    }
    if (lane.id >= this.#nextIds.lane)
      this.#findings.push(
        `${laneName(task, lane.level)} has id ${lane.id}, which would also be assigned to a new lane`,
      )
    const waiting = { fresh: 0, returned: 0 }
    this.#lanes.set(lane.id, {
      lane,
      task,
      ...noTallies(),
      waiting,
      parked: new Map(),
      ranges: [],
      tables: [],
    })
  }

  #addPartition(row: StoredPartition): void {
    if (row.checkpointAt !== null) this.#withCheckpoint.add(row.id)
    const found = this.#lanes.get(row.lane)
    if (found === undefined) {
      // The rows of a running call-back are written before those of its lanes.
      if (row.id < this.#nextIds.partition && !this.#isStaged(row.id))
        this.#findings.push(`partition row ${row.id} belongs to lane ${row.lane}, which does not exist`)
      return
    }
    if (row.id > found.lane.tail) return
    this.#partitions += 1
    found.partitions[row.state] += 1
    found.records[row.state] += row.recordCount
    if (row.state === 'ready') {
      const kind = row.dueAt === null ? 'fresh' : 'returned'
      found.waiting[kind] += 1
      const table = found.tables.find((one) => one.row.table === row.computeTable)
      if (table !== undefined) table.waiting[kind] += 1
    }
    if (row.state === 'parked') {
      const parked = found.parked.get(row.failure) ?? { partitions: 0, records: 0 }
      parked.partitions += 1
      parked.records += row.recordCount
      found.parked.set(row.failure, parked)
    }
    const faults = [...faultsOf(row, found), ...(row.id >= this.#nextIds.partition ? [ISSUED_AGAIN] : [])]
    if (faults.length === 0 || this.#findings.length >= MOST_FINDINGS) return
    const name = row.spelling ?? `${found.task.taskId}-${found.lane.level}-${row.index}`
    this.#findings.push(...faults.map((fault) => `partition ${name} ${fault}`))
  }

  #addCheckpoint(partition: number): void {
    if (this.#withCheckpoint.delete(partition)) return
    this.#findings.push(
      `there is a checkpoint of partition row ${partition}, which has none according to its row`,
    )
  }

  #isStaged(id: number): boolean {
    for (const { staging } of this.#tasks.values())
      if (staging !== null && id >= staging.first && id <= staging.last) return true
    return false
  }
}

const ISSUED_AGAIN = 'has an id that would also be assigned to a new partition'

function faultsOf(row: StoredPartition, { lane, ranges }: CheckedLane): string[] {
  const faults: string[] = []
  if (row.state === 'ready' && row.dueAt === null && row.id <= lane.cursor)
    faults.push('is ready for its first hand-out at a position where no pull finds it')
  if (row.state === 'leased' && hasIncompleteLease(row))
    faults.push('is leased, but its lease has no expiry, no id or no fencing token')
  if (row.state === 'delayed' && row.dueAt === null) faults.push('is delayed, but its back-off has no end')
  if (!isWithin(ranges, row.index))
    faults.push('is not among the indexes that were called back: a repeated call-back would store it twice')
  return faults
}

const hasIncompleteLease = ({ dueAt, secret, leaseNumber, fencingToken }: StoredPartition): boolean =>
  dueAt === null || secret === '' || leaseNumber < 1 || fencingToken === null

/** Whether one of these sorted ranges contains the index. */
function isWithin(ranges: readonly IndexRange[], index: number): boolean {
  const range = ranges[lowerBound(ranges, index, ({ last }) => last - index)]
  return range !== undefined && range.first <= index
}

/** Indexes are kept even after their partitions were purged, so the counts must agree. */
function checkRanges({ lane, task, ranges }: CheckedLane): string[] {
  const indexes = ranges.reduce((sum, { first, last }) => sum + last - first + 1, 0)
  const counted = totalOf(lane.partitions)
  if (indexes === counted) return []
  return [
    `${laneName(task, lane.level)} counts ${counted} partitions, but ${indexes} indexes were called back`,
  ]
}
