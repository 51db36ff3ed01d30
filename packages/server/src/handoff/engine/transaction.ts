import type { FailureOutcome, InstanceRole, InstanceTotals } from '@baton/protocol'
import type { AuditedChange, AuditRecord } from '../audit.ts'
import type { Disk } from '../disk.ts'
import type { OutboxChanges, OutboxEntry, StoredSubscription } from '../outbox.ts'
import {
  type KnownPartition,
  newPartition,
  type PartitionDescriptor,
  type PartitionStatus,
  statusOf,
} from '../partition.ts'
import type { Filter } from '../pull-filters.ts'
import { failureReason } from '../rules/failure-reason.ts'
import { countFailure, countParked, uncountEnd } from '../rules/failures.ts'
import type { StoredState } from '../rules/life-cycle.ts'
import type { OpenWorkLimits } from '../rules/open-work-limits.ts'
import {
  changedBarrier,
  isAtLimit,
  isTableBlocked,
  NO_TABLE_SETTINGS,
  type Policy,
  type TaskSettingsChange,
} from '../rules/policy.ts'
import type { Requester } from '../rules/stamps.ts'
import type {
  IndexRangeOfLane,
  StoredKey,
  StoredLane,
  StoredLaneTable,
  StoredPace,
  StoredTableSettings,
  StoredTask,
} from '../stored.ts'
import { noTotals, type ParkedNotice, type TotalsAdded } from '../views/queries.ts'
import { copyOfLane, copyOfLaneTable, copyOfTask, type Entry } from './entry.ts'
import { NewlyReady } from './newly-ready.ts'
import type { EndedAttemptOf } from './state/ended-attempts.ts'
import type { FilterOrder } from './state/filter-order.ts'
import type { Memory, MemoryBounds } from './state/memory.ts'
import {
  type Key,
  type Lane,
  type LaneTable,
  type Level,
  type Partition,
  type Table,
  type Task,
  tableOf,
} from './state/memory-rows.ts'
import { laterOf } from './state/unflushed.ts'
import { type DoneWithin, doneWithin } from './throughput.ts'
import { UndoLog } from './undo-log.ts'
import { WaitingPartitions } from './waiting-partitions.ts'

/** Inputs of the engine, injected so that it stays deterministic. */
export interface EngineContext {
  /** What a verb may read. It awaits nothing else. */
  readonly disk: EngineDisk
  /** Lets other work use the event loop. */
  readonly nextIteration: () => Promise<void>
  readonly limits: OpenWorkLimits & Pick<MemoryBounds, 'partitions'>
  readonly policy: Policy
  readonly now: number
  /** From 0 up to 1. */
  readonly random: () => number
  readonly secret: () => string
}

export type EngineDisk = Pick<
  Disk,
  | 'tasksNamed'
  | 'tasksById'
  | 'lanesById'
  | 'lanesOf'
  | 'lanesFrom'
  | 'partitionsById'
  | 'checkpoints'
  | 'partitionsNamed'
  | 'rows'
  | 'waiting'
  | 'keys'
  | 'known'
  | 'doneRows'
>

/**
 * One transaction of the engine: collects the changes in memory for the entry that makes them durable. Memory
 * is changed in place. A verb touches a row before it changes it, and adds new rows with the transaction, not
 * with memory: so a transaction that fails can be undone.
 */
export class Transaction implements EngineContext {
  readonly memory: Memory
  readonly disk: EngineDisk
  readonly nextIteration: () => Promise<void>
  readonly limits: OpenWorkLimits & Pick<MemoryBounds, 'partitions'>
  readonly policy: Policy
  readonly now: number
  readonly random: () => number
  readonly secret: () => string
  /** The number of its entry. */
  readonly number: number

  /** What waits, and in which order. */
  readonly waiting: WaitingPartitions

  readonly newRows: PartitionDescriptor[] = []
  readonly newKeys: string[] = []
  /** Partitions of this batch's call-backs, by lane and index. They are not on disk yet. */
  readonly calledBack = new Map<number, Map<number, KnownPartition>>()
  readonly parked: Partition[] = []
  readonly outbox: OutboxChanges = { subscriptions: new Map(), deliveries: [], changes: [] }
  /** Leases that were settled as failed and whose partitions are now parked. */
  readonly parkedLeases: string[] = []
  /** Attempts that it ended, by holder. */
  readonly endedAttempts: [holder: string, attempt: EndedAttemptOf][] = []
  /** Partitions that became available for pulls. */
  readonly newlyReady = new NewlyReady()
  /** When the first of the leases and back-offs that it began ends, and the first of the back-offs. */
  earliestDueAt: number | null = null
  earliestBackoffEnd: number | null = null
  /** Ids of the rows that it read. */
  readonly loadedIds = { tasks: [] as number[], lanes: [] as number[], partitions: [] as number[] }

  /** Barrier changes requested by call-backs. They are applied after all call-backs of the batch. */
  readonly barriers = new Map<Task, boolean>()

  /** The tables of the partitions that it finished, with their records. */
  readonly finished: [Table, records: number][] = []
  /** Tasks that it cancelled. */
  readonly cancelled: Task[] = []

  readonly #before: UndoLog
  readonly #removed: number[] = []
  readonly #checkpoints = new Map<number, string | null>()
  readonly #keys = new Map<string, StoredKey | null>()
  readonly #pace = new Set<StoredPace>()
  readonly #paceOver: number[] = []
  readonly #done: DoneWithin[] = []
  readonly #ranges: IndexRangeOfLane[] = []
  readonly #tables: [number, string][] = []
  readonly #tableSettings = new Map<string, StoredTableSettings | null>()
  readonly #produced: [number, string, number][] = []
  readonly #instances: [string, InstanceRole, number, (number | null)?][] = []
  readonly #totals = new Map<string, TotalsAdded>()
  readonly #audit: AuditRecord[] = []
  #hasIds = false

  constructor(memory: Memory, number: number, context: EngineContext) {
    this.memory = memory
    this.#before = new UndoLog(memory)
    this.number = number
    this.disk = context.disk
    this.nextIteration = context.nextIteration
    this.limits = context.limits
    this.policy = context.policy
    this.now = context.now
    this.random = context.random
    this.secret = context.secret
    this.waiting = new WaitingPartitions(this)
  }

  /** In the order in which they were touched. Those touched during an iteration are included. */
  get touchedTasks(): Iterable<Task> {
    return this.#before.tasks.keys()
  }

  get touchedLanes(): Iterable<Lane> {
    return this.#before.lanes.keys()
  }

  get isEmpty(): boolean {
    const { tasks, lanes, levels, laneTables, partitions } = this.#before
    return (
      tasks.size + lanes.size + levels.size + laneTables.size + partitions.size === 0 &&
      this.#removed.length === 0 &&
      this.#keys.size === 0 &&
      this.#tableSettings.size === 0 &&
      this.#instances.length === 0 &&
      this.#outboxEntry() === null &&
      this.#totals.size === 0 &&
      !this.#hasIds
    )
  }

  touchTask(task: Task): void {
    if (task.changedIn === this.number) return
    this.#before.keepTask(task)
    task.changedIn = this.number
  }

  touchLane(lane: Lane): void {
    if (lane.changedIn === this.number) return
    this.#before.keepLane(lane)
    lane.changedIn = this.number
  }

  touchPartition(partition: Partition): void {
    if (partition.changedIn === this.number) return
    this.#before.keepPartition(partition)
    partition.changedIn = this.number
  }

  touchLevel(level: Level): void {
    if (level.changedIn === this.number) return
    this.#before.keepLevel(level)
    level.changedIn = this.number
  }

  touchLaneTable(table: LaneTable): void {
    if (table.changedIn === this.number) return
    this.#before.keepLaneTable(table)
    table.changedIn = this.number
  }

  addTask(row: StoredTask): Task {
    const task = this.memory.addTask(row)
    this.#before.newTasks.push(task)
    this.touchTask(task)
    return task
  }

  addLane(row: StoredLane): Lane {
    const lane = this.memory.addLane(row, true)
    this.#before.newLanes.push(lane)
    this.touchLane(lane)
    return lane
  }

  addLaneTable(lane: Lane, row: StoredLaneTable): LaneTable {
    const table = this.memory.addLaneTable(lane, row)
    this.#before.newLaneTables.push(table)
    this.touchLaneTable(table)
    return table
  }

  /** A partition of this transaction's call-backs. Its row is written with the entry. */
  addPartition(descriptor: PartitionDescriptor): Partition {
    const partition = this.memory.addPartition(newPartition(descriptor))
    this.#before.newPartitions.add(partition)
    return partition
  }

  filterOrderOf(names: Filter): FilterOrder {
    const filterOrder = this.memory.filterOrders.of(names)
    this.#before.usedFilterOrders.add(filterOrder)
    return filterOrder
  }

  /** Null removes it. */
  setSubscription(id: string, row: StoredSubscription | null): void {
    const { subscriptions } = this.memory
    if (!this.#before.subscriptions.has(id)) this.#before.subscriptions.set(id, subscriptions.get(id))
    if (row === null) subscriptions.delete(id)
    else subscriptions.set(id, row)
    this.outbox.subscriptions.set(id, row)
  }

  /** Makes memory what it was before. The transaction must not be used any more. */
  restore(): void {
    this.#before.restore()
  }

  issue(kind: 'task' | 'lane' | 'partition' | 'event', count = 1): number {
    const first = this.memory.nextIds[kind]
    this.memory.nextIds[kind] += count
    this.#hasIds = true
    return first
  }

  /** Counts a partition, whose state is about to change, as in its new state. */
  count({ parentLane: lane, state: from, failure, recordCount }: Partition, to: StoredState): void {
    this.countMany(lane, from, to, 1, recordCount)
    if (failure === null || (from === 'parked') === (to === 'parked')) return
    this.countParked(lane.parentTask, failure, to === 'parked' ? 1 : -1, recordCount)
  }

  /** Moves partitions between the state counters of their lane and task. Null: they are new. */
  countMany(
    lane: Lane,
    from: StoredState | null,
    to: StoredState,
    partitions: number,
    records: number,
  ): void {
    const { parentTask: task } = lane
    this.touchLane(lane)
    this.touchTask(task)
    const wasAtLimit = from === 'leased' && isAtLimit(task)
    if (from !== null) {
      lane.partitions[from] -= partitions
      lane.records[from] -= records
      task.partitions[from] -= partitions
      task.records[from] -= records
    }
    lane.partitions[to] += partitions
    lane.records[to] += records
    task.partitions[to] += partitions
    task.records[to] += records
    if (from === 'leased' && to !== 'leased') this.#freeLeases(task, partitions, wasAtLimit)
  }

  /** Below a lease limit, each lease that ended allows another: pulls may wait for every one of them. */
  #freeLeases(task: Task, count: number, wasAtLimit: boolean): void {
    if (task.settings?.maxLeases === undefined || isAtLimit(task)) return
    if (wasAtLimit) this.waiting.reopen(task)
    if (!task.paused && !task.cancelled)
      this.newlyReady.add(task.taskId, null, Math.min(count, task.partitions.ready))
  }

  remember(key: string, row: StoredKey | null): void {
    this.#keys.set(key, row)
    if (!this.#before.keys.has(key)) this.#before.keys.set(key, this.memory.keys.get(key))
    const known: Key = { row, changedIn: this.number }
    this.memory.keys.delete(key)
    this.memory.keys.set(key, known)
  }

  /** Null clears it. */
  setCheckpoint(partition: Partition, text: string | null): void {
    const { id } = partition
    const { checkpoints } = this.memory
    this.touchPartition(partition)
    partition.checkpointAt = text === null ? null : this.now
    if (!this.#before.checkpoints.has(id)) this.#before.checkpoints.set(id, checkpoints.get(id))
    checkpoints.set(id, text === null ? undefined : { text, changedIn: this.number })
    this.#checkpoints.set(id, text)
  }

  remove(partition: Partition): void {
    this.touchPartition(partition)
    if (partition.checkpointAt !== null) this.setCheckpoint(partition, null)
    this.#removed.push(partition.id)
    this.memory.leases.remove(partition)
    this.memory.dropPartition(partition)
  }

  /** If its table has a limit, another partition of it may be leased: a pull may wait for it. */
  endLease(partition: Partition): void {
    this.memory.leases.remove(partition)
    const table = tableOf(partition)
    if (table.settings.maxLeases !== null && table.waiting.partitions > 0 && !isTableBlocked(table))
      this.newlyReady.add(null, table.name, 1)
  }

  countFinished(partition: Partition): void {
    const { parentLane: lane, recordCount } = partition
    const { parentTask: task } = lane
    this.touchLane(lane)
    this.touchTask(task)
    this.finished.push([tableOf(partition), recordCount])
    const second = Math.floor(this.now / 1000)
    if (task.pace?.second !== second) task.pace = { task: task.id, second, partitions: 0, records: 0 }
    task.pace.partitions += 1
    task.pace.records += recordCount
    this.#pace.add(task.pace)
    let done = lane.done
    if (done === null || lane.doneIn !== this.number) {
      done = doneWithin(task.id, lane.level, this.now)
      lane.done = done
      lane.doneIn = this.number
      this.#done.push(done)
    }
    done.partitions += 1
    done.records += recordCount
  }

  forgetPace(task: Task): void {
    this.touchTask(task)
    task.pace = null
    this.#paceOver.push(task.id)
  }

  addRange(lane: number, first: number, last: number): void {
    this.#ranges.push({ lane, first, last })
  }

  barrierWanted(task: Task, change: TaskSettingsChange): void {
    if (change.levelBarrier === undefined) return
    this.barriers.set(task, changedBarrier(this.policy, task.levelBarrier, change))
  }

  addTable(task: Task, table: string): void {
    this.#tables.push([task.id, table])
  }

  setTable(row: StoredTableSettings): void {
    const { order } = this.memory
    if (!this.#before.tableSettings.has(row.table))
      this.#before.tableSettings.set(row.table, order.tables.get(row.table)?.settings ?? NO_TABLE_SETTINGS)
    const table = order.tables.setSettings(row)
    order.place(table)
    this.#tableSettings.set(row.table, table.settings === NO_TABLE_SETTINGS ? null : row)
    if (!isTableBlocked(table)) this.newlyReady.add(null, row.table, table.waiting.partitions)
  }

  addProducer(task: Task, instance: string): void {
    this.#produced.push([task.id, instance, this.now])
  }

  /** The disk keeps a row for every instance that pulled or sent something. */
  sawInstance(instanceId: string, role: InstanceRole): void {
    if (this.memory.instances.has(instanceId)) return
    this.memory.instances.set(instanceId, role)
    this.#before.newInstances.push(instanceId)
    this.#instances.push([instanceId, role, this.now])
  }

  /**
   * The counters of an instance, to be incremented. They are stored in the same entry as the changes they
   * count.
   */
  totalsOf(instanceId: string, role: InstanceRole): InstanceTotals {
    let added = this.#totals.get(instanceId)
    if (added === undefined) {
      added = { instanceId, role, at: this.now, totals: noTotals(), expectedAt: null }
      this.#totals.set(instanceId, added)
    }
    return added.totals
  }

  /** A lease of the instance expired. If it was not seen since then, it was silent. */
  noteExpired(instanceId: string, since: number): void {
    this.totalsOf(instanceId, 'worker').expired += 1
    const added = this.#totals.get(instanceId)
    if (added !== undefined) added.expectedAt = laterOf(added.expectedAt, since)
  }

  /** Returns since when it is paused. Pausing it again changes nothing. */
  pauseInstance(instanceId: string, role: InstanceRole, paused: boolean): number | null {
    const { pausedInstances } = this.memory
    const before = pausedInstances.get(instanceId) ?? null
    if (paused === (before !== null)) return before
    if (!this.#before.pausedInstances.has(instanceId))
      this.#before.pausedInstances.set(instanceId, before ?? undefined)
    const pausedAt = paused ? this.now : null
    if (pausedAt === null) pausedInstances.delete(instanceId)
    else pausedInstances.set(instanceId, pausedAt)
    this.#instances.push([instanceId, role, this.now, pausedAt])
    return pausedAt
  }

  /** Records a change for the audit. Without a requester it is not the first step of its request. */
  audit(by: Requester | undefined, { action, taskId = null, target = null, changed }: AuditedChange): void {
    if (by === undefined) return
    const { name, address, body: request } = by
    // Ids only have to grow: the counter of tasks will do.
    const id = this.issue('task')
    this.#audit.push({ id, at: this.now, changed, action, taskId, target, name, address, request })
  }

  leaseEndsAt(at: number): void {
    if (this.earliestDueAt === null || at < this.earliestDueAt) this.earliestDueAt = at
  }

  backoffEndsAt(at: number): void {
    this.leaseEndsAt(at)
    if (this.earliestBackoffEnd === null || at < this.earliestBackoffEnd) this.earliestBackoffEnd = at
  }

  entry(): Entry {
    const { tasks, lanes, levels, laneTables } = this.#before
    return {
      tasks: Array.from(tasks.keys(), (task) => copyOfTask(task, task.failuresChangedIn === this.number)),
      lanes: Array.from(lanes.keys(), copyOfLane),
      levels: Array.from(levels.keys(), ({ level, virtual, served }) => ({ level, virtual, served })),
      partitions: this.#changedPartitions(),
      checkpoints: [...this.#checkpoints],
      keys: [...this.#keys],
      pace: [...this.#pace].map((pace) => ({ ...pace })),
      paceOver: this.#paceOver,
      ranges: this.#ranges,
      tables: this.#tables,
      produced: this.#produced,
      instances: this.#instances,
      totals: [...this.#totals.values()],
      nextIds: this.#hasIds ? { ...this.memory.nextIds } : null,
      laneTables: Array.from(laneTables.keys(), copyOfLaneTable),
      outbox: this.#outboxEntry(),
      throughput: this.#done,
      audit: this.#audit,
      tableSettings: [...this.#tableSettings],
      at: this.now,
    }
  }

  #changedPartitions(): Entry['partitions'] {
    const rowChanges: [number, PartitionStatus | null][] = []
    for (const partition of this.#before.partitions.keys())
      rowChanges.push([partition.id, statusOf(partition)])
    if (this.#removed.length === 0) return rowChanges
    const removed = new Set(this.#removed)
    const left = rowChanges.filter(([id]) => !removed.has(id))
    for (const id of removed) left.push([id, null])
    return left
  }

  #outboxEntry(): OutboxEntry | null {
    const { subscriptions, deliveries, changes } = this.outbox
    if (subscriptions.size === 0 && deliveries.length === 0 && changes.length === 0) return null
    return { subscriptions: [...subscriptions], deliveries, changes }
  }

  /** Returns the key of the group. */
  countFailure(task: Task, outcome: FailureOutcome, reason: string | null): string {
    const { groups, key } = countFailure(
      task.failures ?? [],
      outcome,
      failureReason(outcome, reason),
      this.now,
    )
    this.#setFailures(task, groups)
    return key
  }

  uncountEnd(task: Task, ended: 'expired' | 'revoked'): void {
    this.#setFailures(task, uncountEnd(task.failures ?? [], ended))
  }

  countParked(task: Task, failure: string, partitions: 1 | -1, records: number): void {
    this.#setFailures(task, countParked(task.failures ?? [], failure, partitions, records))
  }

  #setFailures(task: Task, failures: Task['failures']): void {
    this.touchTask(task)
    task.failures = failures
    task.failuresChangedIn = this.number
  }

  /** For watchers: partitions that this transaction parked and that are still parked. */
  parkedNotices(): ParkedNotice[] {
    return this.parked
      .filter(({ state }) => state === 'parked')
      .map(({ parentLane: lane, index, spelling, attempts, reason }) => ({
        taskId: lane.parentTask.taskId,
        level: lane.level,
        index,
        spelling,
        attempts,
        reason,
      }))
  }
}

/** Long lists leave the event loop to other work after every n items. */
const ITEMS_PER_ITERATION = 500

export const isEndOfSlice = (at: number): boolean => at % ITEMS_PER_ITERATION === ITEMS_PER_ITERATION - 1
