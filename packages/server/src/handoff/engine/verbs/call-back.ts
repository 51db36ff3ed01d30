import {
  type CallBack,
  type CalledBackPartition,
  MAX_LISTED_VIOLATIONS,
  optionalFields,
} from '@baton/protocol'
import type { IndexesOfLane, KnownOfLane } from '../../disk.ts'
import { emptyRowOf } from '../../fields.ts'
import type { KnownPartition, PartitionDescriptor } from '../../partition.ts'
import {
  isOfAnother,
  isSamePartition,
  refusalOfChange,
  refusalOfNew,
  withOwner,
} from '../../rules/call-back-rules.ts'
import { type IndexRun, runsOf } from '../../rules/index-runs.ts'
import { isLaneOpen, noTallies, reopen, totalOf } from '../../rules/task.ts'
import type { BatchedCallBack, CallBackResult, KnownConflict } from '../../store.ts'
import { laneFields } from '../../stored.ts'
import type { EngineContext, EngineDisk } from '../engine-context.ts'
import { loadLanes, taskNamed } from '../read-rows.ts'
import type { Lane, Task } from '../state/memory-rows.ts'
import type { Addition } from '../state/owned-work.ts'
import { applySettings, noteControl } from '../task-updates.ts'
import { newTask, tooManyLanes } from '../tasks.ts'
import type { Transaction } from '../transaction.ts'
import type { ArrivedOfTable } from '../waiting-partitions.ts'

/** A lane as it was when it was compared with a call-back. Rows beyond its tail do not count. */
export type ComparedLane = Pick<Lane, 'id' | 'tail' | 'lastIndex' | 'table' | 'mixedAfter'>

/** The result of comparing a call-back with the known partitions of its task. */
export interface Comparison {
  /** New partitions, by level, in the order in which they were sent. */
  readonly fresh: ReadonlyMap<number, readonly CalledBackPartition[]>
  readonly accepted: number
  readonly records: number
  readonly duplicates: number
  readonly conflicts: readonly KnownConflict[]
  readonly conflictTotal: number
}

export interface NewLevelRows {
  readonly level: number
  /** The id of an existing lane or of a lane to be created. */
  readonly lane: number
  readonly count: number
  readonly records: number
  readonly lastId: number
  readonly firstRows: readonly PartitionDescriptor[]
  readonly runs: readonly IndexRun[]
  readonly tables: ReadonlyMap<string, ArrivedOfTable>
}

/** The number of new partitions per lane that stay in memory. The others are read when they are next. */
const KEPT_PER_LANE = 32
const COMPARED_AT_A_TIME = 1000

/** Stores a call-back whose rows are written together with its entry. */
export async function callBack(tx: Transaction, batched: BatchedCallBack): Promise<CallBackResult> {
  const { lanes } = await locate(tx, batched.callBack)
  const comparison = await compare(tx, batched.callBack, lanes, (lane) => tx.calledBack.get(lane))
  const refusal = refusalOfCallBack(tx, comparison, batched)
  if (refusal !== undefined) return refusal
  const { fresh, accepted } = comparison
  let nextId = accepted === 0 ? 0 : tx.issue('partition', accepted)
  const arrivals: NewLevelRows[] = []
  for (const [level, partitions] of fresh) {
    const known = tx.memory.tasksByName.get(batched.callBack.taskId)?.lanes.get(level)
    const lane = known?.id ?? tx.issue('lane')
    const inMixedLane = isMixedWith(known, partitions)
    const rows = descriptorsOf({ lane, inMixedLane, firstId: nextId, now: tx.now }, partitions, batched)
    nextId += rows.length
    arrivals.push(newLevelRowsOf(level, rows))
    keepForThisBatch(tx, lane, rows)
    for (const row of rows) tx.newRows.push(row)
  }
  accept(tx, batched, arrivals)
  countCallBack(tx, batched.producer, accepted)
  return { kind: 'stored', accepted, duplicates: comparison.duplicates }
}

/** Finds the task, and the lanes that the call-back names. */
export async function locate(
  tx: Transaction,
  { taskId, partitions }: CallBack,
): Promise<{ task: Task | undefined; lanes: ReadonlyMap<number, ComparedLane> }> {
  const task = await taskNamed(tx, taskId)
  const levels = levelsOf(partitions)
  const lanes = new Map<number, ComparedLane>()
  if (task !== undefined) await loadLanes(tx, task, levels)
  for (const level of levels) {
    const lane = task?.lanes.get(level)
    if (lane === undefined) continue
    const { id, tail, lastIndex, table, mixedAfter } = lane
    lanes.set(level, { id, tail, lastIndex, table, mixedAfter })
  }
  return { task, lanes }
}

/** It may have a hundred thousand partitions, sorted by level. */
function levelsOf(partitions: readonly CalledBackPartition[]): number[] {
  const levels: number[] = []
  for (const { level } of partitions) if (level !== levels.at(-1)) levels.push(level)
  return levels
}

/** Runs before anything is changed, so that a refused call-back has no effect. */
export async function compare(
  { disk, nextIteration }: Pick<EngineContext, 'disk' | 'nextIteration'>,
  { partitions }: CallBack,
  lanes: ReadonlyMap<number, ComparedLane>,
  ofThisBatch: (lane: number) => ReadonlyMap<number, KnownPartition> | undefined,
): Promise<Comparison> {
  const fresh = new Map<number, CalledBackPartition[]>()
  const conflicts: KnownConflict[] = []
  let [accepted, records, duplicates, conflictTotal] = [0, 0, 0, 0]
  for (let from = 0; from < partitions.length; from += COMPARED_AT_A_TIME) {
    const piece = partitions.slice(from, from + COMPARED_AT_A_TIME)
    const there = await loadKnown(disk, lanes, piece)
    for (const [i, partition] of piece.entries()) {
      const { level, index } = partition
      const lane = lanes.get(level)
      const here = lane === undefined ? undefined : ofThisBatch(lane.id)
      const before = here?.get(index) ?? there.get(level)?.get(index)
      if (before === undefined) {
        const news = fresh.get(level)
        if (news === undefined) fresh.set(level, [partition])
        else news.push(partition)
        accepted += 1
        records += partition.recordCount
      } else if (before === null || isSamePartition(asCalledBack(partition, before), partition))
        duplicates += 1
      else if (++conflictTotal <= MAX_LISTED_VIOLATIONS)
        conflicts.push({ position: from + i, known: asCalledBack(partition, before) })
    }
    if (partitions.length > COMPARED_AT_A_TIME) await nextIteration()
  }
  return { fresh, accepted, records, duplicates, conflicts, conflictTotal }
}

/** Returns why the whole call-back is refused, or undefined if it is stored. */
export function refusalOfCallBack(
  tx: Transaction,
  comparison: Comparison,
  batched: BatchedCallBack,
): CallBackResult | undefined {
  const { callBack, seal = null, settings = null, owner = null, sharesTask = false } = batched
  const task = tx.memory.tasksByName.get(callBack.taskId)
  const { accepted, records, conflicts, conflictTotal: total } = comparison
  if (task !== undefined && owner !== null && !sharesTask && isOfAnother(task.owners, owner))
    return { kind: 'not_own' }
  if (total > 0) return { kind: 'conflict', conflicts, total }
  const refusal = accepted > 0 && task !== undefined ? refusalOfNew(task, records) : undefined
  if (refusal !== undefined) return refusal
  const change =
    seal === null && settings === null
      ? undefined
      : refusalOfChange(task, { declared: seal?.partitions ?? null, accepted, settings })
  return change ?? refusalOfLanes(tx, task, comparison) ?? refusalOfOwner(tx, task, accepted, batched)
}

/** What a token adds to the task of another counts for the owner of the task. Duplicates are never refused. */
function refusalOfOwner(
  { memory, now }: Transaction,
  task: Task | undefined,
  accepted: number,
  { owner: sender = null, ownerLimits = null }: BatchedCallBack,
): CallBackResult | undefined {
  if (accepted === 0 || sender === null || ownerLimits === null) return undefined
  return memory.ownedWork.refusal(additionOf(task, sender, accepted), ownerLimits, now)
}

/** A task that has only settings, or staged rows of this call-back, is opened by its first partitions. */
function additionOf(task: Task | undefined, sender: string, partitions: number): Addition {
  const [owner = sender] = task?.owners ?? []
  const opensTask = task === undefined || task.finishedAt !== null || totalOf(task.partitions) === 0
  return { owner, opensTask, partitions }
}

/** Work is refused before the lanes in memory are more than allowed. Duplicates are never refused. */
function refusalOfLanes(
  { memory, limits }: Transaction,
  task: Task | undefined,
  { fresh, accepted }: Comparison,
): CallBackResult | undefined {
  const lanesOfTask = task?.lanes.size ?? 0
  const isNearLimit =
    memory.lanesUsed + fresh.size + accepted / 10 > limits.lanes ||
    lanesOfTask + fresh.size > limits.lanesOfTask
  if (accepted === 0 || !isNearLimit) return undefined
  let [lanes, furtherTables] = [0, 0]
  for (const [level, partitions] of fresh) {
    const lane = task?.lanes.get(level)
    if (lane === undefined) lanes += 1
    const tables = new Set(partitions.map(({ computeTableName }) => computeTableName))
    const known = lane === undefined ? null : (lane.mixed?.tables.keys() ?? [lane.table])
    for (const table of known ?? []) tables.delete(table)
    furtherTables += known === null ? tables.size - 1 : tables.size
  }
  if (lanes > 0 && lanesOfTask + lanes > limits.lanesOfTask)
    return { kind: 'too_many_levels', most: limits.lanesOfTask }
  const used = lanes + furtherTables / 10
  return used > 0 && memory.lanesUsed + used > limits.lanes ? tooManyLanes(memory, limits) : undefined
}

/** Makes new partitions count. Their rows are written with this transaction, or have been staged. */
export function accept(
  tx: Transaction,
  { callBack: { taskId }, producer, owner = null, seal = null, settings = null, by }: BatchedCallBack,
  arrivals: readonly NewLevelRows[],
): void {
  const task = tx.memory.tasksByName.get(taskId) ?? newTask(tx, taskId)
  tx.touchTask(task)
  // Settings may have been stored before the first call-back.
  if (totalOf(task.partitions) === 0) task.firstCallBackAt = tx.now
  if (settings !== null) {
    if (applySettings(tx, task, settings)) noteControl(tx, task, { verb: 'settings', by }, 1)
    tx.barrierWanted(task, settings)
  }
  if (arrivals.length > 0 && owner !== null) {
    const accepted = arrivals.reduce((sum, { count }) => sum + count, 0)
    tx.memory.ownedWork.add(additionOf(task, owner, accepted))
  }
  // Not if only a settle of this batch finished the task: it was never seen as done, as if this came first.
  if (arrivals.length > 0 && totalOf(task.partitions) > 0 && task.state === 'done') reopen(task)
  const tables = new Set<string>()
  for (const arrival of arrivals) {
    addToLane(tx, task.lanes.get(arrival.level) ?? newLane(tx, task, arrival), arrival)
    for (const table of arrival.tables.keys()) tables.add(table)
  }
  for (const table of tables) tx.addTable(task, table)
  task.lastCallBackAt = tx.now
  if (arrivals.length > 0) task.owners = withOwner(task.owners, owner)
  if (seal !== null) {
    if (!task.sealed) noteControl(tx, task, { verb: 'seal', by }, 1)
    task.sealed = true
    task.expectedPartitions = seal.partitions ?? task.expectedPartitions
  }
  if (producer === null) return
  tx.instances.saw(producer, 'producer')
  tx.addProducer(task, producer)
}

export function countCallBack(tx: Transaction, producer: string | null, accepted: number): void {
  if (producer === null) return
  const totals = tx.instances.totalsOf(producer, 'producer')
  totals.callBacks += 1
  totals.calledBack += accepted
}

type NewRows = Pick<PartitionDescriptor, 'lane' | 'inMixedLane'> & { firstId: number; now: number }

export const descriptorsOf = (
  { lane, inMixedLane, firstId, now }: NewRows,
  partitions: readonly CalledBackPartition[],
  { traceparent = null }: BatchedCallBack,
): PartitionDescriptor[] =>
  partitions.map(({ index, recordCount, computeTableName, spelling, extraFields = null }, i) => ({
    id: firstId + i,
    lane,
    index,
    recordCount,
    computeTable: computeTableName,
    spelling,
    calledBackAt: now,
    extraFields,
    traceparent,
    inMixedLane,
  }))

/** Whether a lane has several compute tables once these partitions have arrived. */
export function isMixedWith(
  lane: Pick<Lane, 'table' | 'mixedAfter'> | undefined,
  partitions: readonly CalledBackPartition[],
): boolean {
  if (lane !== undefined && lane.mixedAfter !== null) return true
  const table = lane?.table ?? partitions[0]?.computeTableName
  return partitions.some(({ computeTableName }) => computeTableName !== table)
}

/** `rows` must not be empty. */
export function newLevelRowsOf(level: number, rows: readonly PartitionDescriptor[]): NewLevelRows {
  let records = 0
  const tables = new Map<string, ArrivedOfTable>()
  for (const { id, recordCount, computeTable } of rows) {
    records += recordCount
    let arrived = tables.get(computeTable)
    if (arrived === undefined) {
      arrived = { firstId: id, partitions: 0, records: 0 }
      tables.set(computeTable, arrived)
    }
    arrived.partitions += 1
    arrived.records += recordCount
  }
  const last = rows.at(-1) as PartitionDescriptor
  return {
    level,
    lane: last.lane,
    count: rows.length,
    records,
    lastId: last.id,
    firstRows: rows.slice(0, KEPT_PER_LANE),
    runs: runsOf(rows.map(({ index }) => index)),
    tables,
  }
}

/** Appends to the lane. Only the first rows stay in memory, and none if earlier rows are only on disk. */
function addToLane(tx: Transaction, lane: Lane, arrival: NewLevelRows): void {
  const { count, records, lastId, firstRows, runs, tables } = arrival
  const tailBefore = lane.tail
  tx.countMany(lane, null, 'ready', count, records)
  lane.tail = lastId
  const { fresh } = lane.buffers
  if (fresh.isComplete) {
    const kept = firstRows.slice(0, Math.max(0, KEPT_PER_LANE - fresh.items.length))
    for (const descriptor of kept) fresh.add(tx.addPartition(descriptor))
    fresh.isComplete = kept.length === count
    const last = fresh.items.at(-1)
    if (last !== undefined) fresh.loadedTo = { dueAt: 0, id: last.id }
    tx.memory.buffered(lane)
  }
  for (const { first, last } of runs) {
    tx.addRange(lane.id, first, last)
    if (lane.lastIndex !== null && last > lane.lastIndex) lane.lastIndex = last
  }
  tx.waiting.addArrivals(lane, tables, tailBefore)
  if (isLaneOpen(lane.parentTask, lane.level))
    for (const [table, { partitions }] of tables) tx.newlyReady.add(lane.parentTask.taskId, table, partitions)
}

function keepForThisBatch(tx: Transaction, lane: number, rows: readonly PartitionDescriptor[]): void {
  const indexes = tx.calledBack.get(lane) ?? new Map<number, KnownPartition>()
  tx.calledBack.set(lane, indexes)
  for (const row of rows) indexes.set(row.index, row)
}

const emptyLane = emptyRowOf(laneFields)

function newLane(tx: Transaction, task: Task, { lane: id, level, tables }: NewLevelRows): Lane {
  const [table = ''] = tables.keys()
  return tx.addLane({ ...emptyLane(), id, task: task.id, level, table, ...noTallies() })
}

/** Known partitions by level. Looks up all lanes at once: there may be as many as partitions. */
async function loadKnown(
  disk: EngineDisk,
  lanes: ReadonlyMap<number, ComparedLane>,
  partitions: readonly CalledBackPartition[],
): Promise<ReadonlyMap<number, KnownOfLane>> {
  const indexes = new Map<number, number[]>()
  for (const { level, index } of partitions) {
    const wanted = indexes.get(level)
    if (wanted !== undefined) wanted.push(index)
    else if (lanes.has(level)) indexes.set(level, [index])
  }
  const levels: number[] = []
  const asked: IndexesOfLane[] = []
  for (const [level, wanted] of indexes) {
    const { id, tail, lastIndex } = lanes.get(level) as ComparedLane
    // Most arrays continue where the last one ended, so nothing needs to be looked up.
    if (lastIndex !== null && wanted.every((index) => index > lastIndex)) continue
    levels.push(level)
    asked.push({ lane: id, tail, indexes: wanted })
  }
  if (asked.length === 0) return new Map()
  const found = await disk.known(asked)
  return new Map(levels.map((level, i) => [level, found[i] as KnownOfLane]))
}

function asCalledBack({ level, index }: CalledBackPartition, before: KnownPartition): CalledBackPartition {
  const { recordCount, computeTable: computeTableName, spelling } = before
  const partition: CalledBackPartition = { level, index, recordCount, computeTableName, spelling }
  for (const field of optionalFields) if (before[field] !== null) partition[field] = before[field]
  return partition
}
