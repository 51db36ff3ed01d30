import type { AuditedChange, AuditRecord } from '../audit.ts'
import type { OutboxChanges, OutboxEntry, StoredSubscription } from '../outbox.ts'
import {
  type KnownPartition,
  newPartition,
  type PartitionDescriptor,
  type PartitionStatus,
  statusOf,
} from '../partition.ts'
import type { Filter } from '../pull-filters.ts'
import { countParked } from '../rules/failures.ts'
import type { StoredState } from '../rules/life-cycle.ts'
import {
  changedBarrier,
  isAtLimit,
  isTableBlocked,
  NO_TABLE_SETTINGS,
  type TaskSettingsChange,
} from '../rules/policy.ts'
import type { Requester } from '../rules/stamps.ts'
import type {
  IndexRangeOfLane,
  StoredKey,
  StoredLane,
  StoredLaneTable,
  StoredTableSettings,
  StoredTask,
} from '../stored.ts'
import type { EngineContext, EngineDisk } from './engine-context.ts'
import { copyOfLane, copyOfLaneTable, copyOfTask, type Entry } from './entry.ts'
import { FinishedWork } from './finished-work.ts'
import { InstanceChanges } from './instance-changes.ts'
import { NewlyReady } from './newly-ready.ts'
import type { EndedAttemptOf } from './state/ended-attempts.ts'
import type { FilterOrder } from './state/filter-order.ts'
import type { Memory } from './state/memory.ts'
import {
  type Key,
  type Lane,
  type LaneTable,
  type Level,
  type Partition,
  type Task,
  tableOf,
} from './state/memory-rows.ts'
import { TouchedRows } from './touched-rows.ts'
import { WaitingPartitions } from './waiting-partitions.ts'

/**
 * One transaction of the engine: collects the changes in memory for the entry that makes them durable. Memory
 * is changed in place. A verb touches a row before it changes it, and adds new rows with the transaction, not
 * with memory: so a transaction that fails can be undone.
 */
export class Transaction implements EngineContext {
  readonly memory: Memory
  readonly disk: EngineDisk
  readonly nextIteration: () => Promise<void>
  readonly limits: EngineContext['limits']
  readonly policy: EngineContext['policy']
  readonly now: number
  readonly random: () => number
  readonly secret: () => string
  /** The number of its entry. */
  readonly number: number

  /** What waits, and in which order. */
  readonly waiting: WaitingPartitions
  readonly finished: FinishedWork
  readonly instances: InstanceChanges

  readonly newRows: PartitionDescriptor[] = []
  readonly newKeys: string[] = []
  /** Partitions of this batch's call-backs, by lane and index. They are not on disk yet. */
  readonly calledBack = new Map<number, Map<number, KnownPartition>>()
  readonly parked: Partition[] = []
  readonly outbox: OutboxChanges = { subscriptions: new Map(), deliveries: [], changes: [] }
  /** Leases that were settled as failed and whose partitions are now parked. */
  readonly parkedLeases: string[] = []
  /** Attempts that it ended. */
  readonly endedAttempts: EndedAttemptOf[] = []
  /** Partitions that became available for pulls. */
  readonly newlyReady = new NewlyReady()
  /** When the first of the leases and back-offs that it began ends, and the first of the back-offs. */
  earliestDueAt: number | null = null
  earliestBackoffEnd: number | null = null
  /** Ids of the rows that it read. */
  readonly loadedIds = { tasks: [] as number[], lanes: [] as number[], partitions: [] as number[] }

  /** Barrier changes requested by call-backs. They are applied after all call-backs of the batch. */
  readonly barriers = new Map<Task, boolean>()

  /** Tasks that it cancelled. */
  readonly cancelled: Task[] = []

  readonly #touched: TouchedRows
  readonly #removed: number[] = []
  readonly #checkpoints = new Map<number, string | null>()
  readonly #keys = new Map<string, StoredKey | null>()
  readonly #ranges: IndexRangeOfLane[] = []
  readonly #tables: [number, string][] = []
  readonly #tableSettings = new Map<string, StoredTableSettings | null>()
  readonly #produced: [number, string, number][] = []
  readonly #audit: AuditRecord[] = []
  #hasIds = false

  constructor(memory: Memory, number: number, context: EngineContext) {
    this.memory = memory
    this.#touched = new TouchedRows(memory)
    this.number = number
    this.disk = context.disk
    this.nextIteration = context.nextIteration
    this.limits = context.limits
    this.policy = context.policy
    this.now = context.now
    this.random = context.random
    this.secret = context.secret
    this.waiting = new WaitingPartitions(this)
    this.finished = new FinishedWork(this)
    this.instances = new InstanceChanges(memory, this.#touched, this.now)
  }

  /** In the order in which they were touched. Those touched during an iteration are included. */
  get touchedTasks(): readonly { readonly row: Task }[] {
    return this.#touched.tasks
  }

  get touchedLanes(): readonly { readonly row: Lane }[] {
    return this.#touched.lanes
  }

  get isEmpty(): boolean {
    const { tasks, lanes, levels, laneTables, partitions } = this.#touched
    return (
      tasks.length + lanes.length + levels.length + laneTables.length + partitions.length === 0 &&
      this.#removed.length === 0 &&
      this.#keys.size === 0 &&
      this.#tableSettings.size === 0 &&
      this.instances.isEmpty &&
      this.#outboxEntry() === null &&
      !this.#hasIds
    )
  }

  touchTask(task: Task): void {
    if (task.changedIn === this.number) return
    this.#touched.keepTask(task)
    task.changedIn = this.number
  }

  touchLane(lane: Lane): void {
    if (lane.changedIn === this.number) return
    this.#touched.keepLane(lane)
    lane.changedIn = this.number
  }

  touchPartition(partition: Partition): void {
    if (partition.changedIn === this.number) return
    this.#touched.keepPartition(partition)
    partition.changedIn = this.number
  }

  touchLevel(level: Level): void {
    if (level.changedIn === this.number) return
    this.#touched.keepLevel(level)
    level.changedIn = this.number
  }

  touchLaneTable(table: LaneTable): void {
    if (table.changedIn === this.number) return
    this.#touched.keepLaneTable(table)
    table.changedIn = this.number
  }

  addTask(row: StoredTask): Task {
    const task = this.memory.addTask(row)
    this.#touched.newTasks.push(task)
    this.touchTask(task)
    return task
  }

  addLane(row: StoredLane): Lane {
    const lane = this.memory.addLane(row, true)
    this.#touched.newLanes.push(lane)
    this.touchLane(lane)
    return lane
  }

  addLaneTable(lane: Lane, row: StoredLaneTable): LaneTable {
    const table = this.memory.addLaneTable(lane, row)
    this.#touched.newLaneTables.push(table)
    this.touchLaneTable(table)
    return table
  }

  /** A partition of this transaction's call-backs. Its row is written with the entry. */
  addPartition(descriptor: PartitionDescriptor): Partition {
    const partition = this.memory.addPartition(newPartition(descriptor))
    this.#touched.newPartitions.add(partition)
    return partition
  }

  filterOrderOf(names: Filter): FilterOrder {
    const filterOrder = this.memory.filterOrders.of(names)
    this.#touched.usedFilterOrders.add(filterOrder)
    return filterOrder
  }

  /** Null removes it. */
  setSubscription(id: string, row: StoredSubscription | null): void {
    const { subscriptions } = this.memory
    if (!this.#touched.subscriptions.has(id)) this.#touched.subscriptions.set(id, subscriptions.get(id))
    if (row === null) subscriptions.delete(id)
    else subscriptions.set(id, row)
    this.outbox.subscriptions.set(id, row)
  }

  /** Makes memory what it was before. The transaction must not be used any more. */
  restore(): void {
    this.#touched.restore()
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
    const { parentTask: task } = lane
    this.setFailures(task, countParked(task.failures ?? [], failure, to === 'parked' ? 1 : -1, recordCount))
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
    if (!this.#touched.keys.has(key)) this.#touched.keys.set(key, this.memory.keys.get(key))
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
    if (!this.#touched.checkpoints.has(id)) this.#touched.checkpoints.set(id, checkpoints.get(id))
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
    if (!this.#touched.tableSettings.has(row.table))
      this.#touched.tableSettings.set(row.table, order.tables.get(row.table)?.settings ?? NO_TABLE_SETTINGS)
    const table = order.tables.setSettings(row)
    order.reorder(table)
    this.#tableSettings.set(row.table, table.settings === NO_TABLE_SETTINGS ? null : row)
    if (!isTableBlocked(table)) this.newlyReady.add(null, row.table, table.waiting.partitions)
  }

  addProducer(task: Task, instance: string): void {
    this.#produced.push([task.id, instance, this.now])
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
    const { tasks, lanes, levels, laneTables } = this.#touched
    return {
      tasks: tasks.map(({ row }) => copyOfTask(row, row.failuresChangedIn === this.number)),
      lanes: lanes.map(({ row }) => copyOfLane(row)),
      levels: levels.map(({ row: { level, virtual, maxFinishTag } }) => ({ level, virtual, maxFinishTag })),
      partitions: this.#changedPartitions(),
      checkpoints: [...this.#checkpoints],
      keys: [...this.#keys],
      ranges: this.#ranges,
      tables: this.#tables,
      produced: this.#produced,
      instances: this.instances.rows,
      totals: this.instances.totals,
      nextIds: this.#hasIds ? { ...this.memory.nextIds } : null,
      laneTables: laneTables.map(({ row }) => copyOfLaneTable(row)),
      outbox: this.#outboxEntry(),
      throughput: this.finished.throughput,
      audit: this.#audit,
      tableSettings: [...this.#tableSettings],
      at: this.now,
    }
  }

  #changedPartitions(): Entry['partitions'] {
    const rowChanges = this.#touched.partitions.map(({ row }): [number, PartitionStatus | null] => [
      row.id,
      statusOf(row),
    ])
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

  setFailures(task: Task, failures: Task['failures']): void {
    this.touchTask(task)
    task.failures = failures
    task.failuresChangedIn = this.number
  }
}

/** Long lists leave the event loop to other work after every n items. */
const ITEMS_PER_ITERATION = 500

export const isEndOfSlice = (index: number): boolean =>
  index % ITEMS_PER_ITERATION === ITEMS_PER_ITERATION - 1
