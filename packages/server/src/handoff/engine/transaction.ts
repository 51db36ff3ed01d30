import type { InstanceRole, InstanceTotals } from '@baton/protocol'
import type { IndexesOfLane, KnownPartition, Loaded, Needs } from '../disk.ts'
import { Prepared } from '../readied.ts'
import { advance, cost, drain, isLaneOpen } from '../rules/lane-rules.ts'
import { formatLeaseId } from '../rules/lease-id.ts'
import type { Policy } from '../rules/policy.ts'
import { isAtLimit, weightOfTask } from '../rules/task-settings.ts'
import type { GrantedLease, PulledPartition } from '../store.ts'
import type {
  IndexRangeOfLane,
  Line,
  PartitionDescriptor,
  StoredKey,
  StoredPace,
  StoredState,
} from '../stored.ts'
import { noTotals, type ParkedNotice, type TotalsAdded } from '../views/records.ts'
import { type Entry, imageOfLane, imageOfLaneTable, imageOfStatus, imageOfTask } from './entry.ts'
import { OutboxChanges } from './outbox-changes.ts'
import type { Key, Lane, LaneTable, Level, Memory, Partition, TableTime, Task } from './state/memory.ts'
import { type DoneWithin, doneWithin } from './throughput.ts'

/** What engine code asks of whoever runs it: to read something, or to let others have the event loop. */
export type StoreRequest =
  | { readonly ask: 'load'; readonly needs: Needs }
  | { readonly ask: 'known'; readonly asked: readonly IndexesOfLane[] }
  | { readonly ask: 'breathe' }

/** Engine code that stops where it needs something that is not in memory. It never waits for anything else. */
export type Steps<Result> = Generator<StoreRequest, Result, unknown>

/** What the engine is handed in instead of looking for itself. */
export interface EngineContext {
  readonly policy: Policy
  readonly now: number
  /** From 0 up to 1. */
  readonly random: () => number
  readonly secret: () => string
}

/**
 * One step of the engine: what it changes in memory, gathered for the entry that makes it durable. Memory is changed in
 * place; if the entry cannot be appended, all of memory is dropped.
 */
export class Transaction {
  readonly memory: Memory
  readonly policy: Policy
  readonly now: number
  readonly random: () => number
  readonly secret: () => string
  /** The number that its entry will have. */
  readonly number: number

  readonly newRows: PartitionDescriptor[] = []
  readonly newKeys: string[] = []
  /** Rows of this batch's call-backs, by lane and index: they are not on the disk yet. */
  readonly calledBack = new Map<number, Map<number, KnownPartition>>()
  readonly parked: Partition[] = []
  readonly outbox = new OutboxChanges()
  /** Leases that were settled as failed, and whose partitions are parked. */
  readonly parkedLeases: string[] = []
  /** Partitions that pulls can take and could not before. */
  readonly readied = new Prepared()
  earliestDueAt: number | null = null

  /** Barriers that a call-back asked for, to be placed once everything has arrived. */
  readonly barriers = new Map<Task, boolean>()

  readonly #tasks: Task[] = []
  readonly #lanes: Lane[] = []
  readonly #levels: Level[] = []
  readonly #laneTables: LaneTable[] = []
  readonly #tableTimes: TableTime[] = []
  readonly #partitions: Partition[] = []
  readonly #removed: number[] = []
  readonly #keys = new Map<string, StoredKey | null>()
  readonly #pace = new Set<StoredPace>()
  readonly #paceOver: number[] = []
  readonly #done: DoneWithin[] = []
  readonly #ranges: IndexRangeOfLane[] = []
  readonly #tables: [number, string][] = []
  readonly #produced: [number, string, number][] = []
  readonly #instances: [string, InstanceRole, number][] = []
  readonly #totals = new Map<string, TotalsAdded>()
  #hasIds = false

  constructor(memory: Memory, number: number, { policy, now, random, secret }: EngineContext) {
    this.memory = memory
    this.number = number
    this.policy = policy
    this.now = now
    this.random = random
    this.secret = secret
  }

  get touchedTasks(): readonly Task[] {
    return this.#tasks
  }

  get touchedLanes(): readonly Lane[] {
    return this.#lanes
  }

  get isEmpty(): boolean {
    return (
      this.#tasks.length === 0 &&
      this.#lanes.length === 0 &&
      this.#levels.length === 0 &&
      this.#laneTables.length === 0 &&
      this.#partitions.length === 0 &&
      this.#removed.length === 0 &&
      this.#keys.size === 0 &&
      this.#instances.length === 0 &&
      this.outbox.isEmpty &&
      this.#totals.size === 0 &&
      !this.#hasIds
    )
  }

  touchTask(task: Task): void {
    if (task.changedIn === this.number) return
    task.changedIn = this.number
    this.#tasks.push(task)
  }

  touchLane(lane: Lane): void {
    if (lane.changedIn === this.number) return
    lane.changedIn = this.number
    this.#lanes.push(lane)
  }

  touchPartition(partition: Partition): void {
    if (partition.changedIn === this.number) return
    partition.changedIn = this.number
    this.#partitions.push(partition)
  }

  #touchLevel(level: Level): void {
    if (level.changedIn === this.number) return
    level.changedIn = this.number
    this.#levels.push(level)
  }

  #touchLaneTable(table: LaneTable): void {
    if (table.changedIn === this.number) return
    table.changedIn = this.number
    this.#laneTables.push(table)
  }

  issue(kind: 'task' | 'lane' | 'partition' | 'event', count = 1): number {
    const first = this.memory.nextIds[kind]
    this.memory.nextIds[kind] += count
    this.#hasIds = true
    return first
  }

  /** Moves a partition between the states of its lane and task; null is the outside. */
  count(lane: Lane, from: StoredState | null, to: StoredState | null, recordCount: number): void {
    this.countMany(lane, from, to, 1, recordCount)
  }

  countMany(
    lane: Lane,
    from: StoredState | null,
    to: StoredState | null,
    partitions: number,
    records: number,
  ): void {
    const { owner } = lane
    const wasAtLimit = from === 'leased' && isAtLimit(owner)
    if (from !== null) {
      lane.partitions[from] -= partitions
      lane.records[from] -= records
      owner.partitions[from] -= partitions
      owner.records[from] -= records
    }
    if (to !== null) {
      lane.partitions[to] += partitions
      lane.records[to] += records
      owner.partitions[to] += partitions
      owner.records[to] += records
    }
    this.touchLane(lane)
    this.touchTask(owner)
    if (wasAtLimit && !isAtLimit(owner)) this.#freeLeases(owner, partitions)
  }

  /** A task that had as many leases as it may have can have more. */
  #freeLeases(task: Task, count: number): void {
    this.reopen(task)
    if (!task.paused && !task.cancelled)
      this.readied.add(task.taskId, null, Math.min(count, task.partitions.ready))
  }

  /** A partition begins to wait on a line. Its state, line and place are set, and it is counted as ready. */
  enqueue(partition: Partition): void {
    const { home: lane, line } = partition
    this.#startLine(lane, line, line === 'retry' ? lane.retries : firstWaiting(lane) - 1)
    if (line === 'retry') lane.retries += 1
    else if (line === 'released') lane.released += 1
    lane.lines[line].add(partition)
    this.#enqueueByTable(partition)
    this.#turn(lane)
    if (isLaneOpen(lane.owner, lane.level)) this.readied.add(lane.owner.taskId, partition.computeTable, 1)
  }

  /** Fresh partitions joined the end of a lane and are counted as ready; `waitedBefore` did so before. */
  enqueueFresh(lane: Lane, waitedBefore: number, tables: ReadonlyMap<string, number>): void {
    this.#startLine(lane, 'fresh', waitedBefore)
    this.#joinTables(lane, tables, waitedBefore)
    this.#turn(lane)
  }

  /** A partition that waited is needed elsewhere. To be called before its state, line or place change. */
  dequeue(partition: Partition): void {
    const { home: lane, line } = partition
    lane.lines[line].remove(partition)
    if (line === 'retry') lane.retries -= 1
    else if (line === 'released') lane.released -= 1
    this.#dequeueByTable(partition)
    this.touchLane(lane)
  }

  /** The turn of a lane follows from its counters and tags: to be called when those changed. */
  requeue(lane: Lane): void {
    this.#turn(lane)
  }

  /**
   * Takes a partition out of its line and charges the order from which it was chosen: that of all lanes, that of a table, or
   * none. It is the first of its line; or the first of its table in it.
   */
  serve(partition: Partition, chosenFrom: Lane | LaneTable | null): void {
    const { home: lane, line, recordCount } = partition
    if (line === 'fresh') {
      const { fresh } = lane.lines
      if (fresh.first === partition) {
        fresh.items.shift()
        lane.cursor = partition.id
      } else fresh.remove(partition)
      const table = lane.tables.size === 1 ? undefined : lane.tables.get(partition.computeTable)
      if (table !== undefined) table.cursor = partition.id
      this.#dequeueByTable(partition)
    } else this.dequeue(partition)
    // What was given back unused has been charged before.
    if (line === 'released' || chosenFrom === null) return
    const weight = weightOfTask(lane.owner)
    const start = line === 'retry' ? chosenFrom.retryTag : chosenFrom.tag
    if ('table' in chosenFrom) {
      const { time } = chosenFrom
      if (time.virtual < start) time.virtual = start
      if (time.changedIn !== this.number) {
        time.changedIn = this.number
        this.#tableTimes.push(time)
      }
      this.#touchLaneTable(chosenFrom)
    } else {
      advance(lane.time, start, recordCount, weight)
      this.#touchLevel(lane.time)
    }
    if (line === 'retry') chosenFrom.retryTag = start + cost(recordCount, weight)
    else chosenFrom.tag = start + cost(recordCount, weight)
  }

  /** The turn of a lane for one of its tables, when its tags changed. */
  requeueTable(table: LaneTable): void {
    this.#turnOfTable(table)
  }

  /** A lane that was set aside, or read from the disk, may be behind the level's time. */
  catchUp(lane: Lane): void {
    if (lane.turn !== null && lane.turn < lane.time.virtual) this.#turn(lane)
  }

  catchUpTable(table: LaneTable): void {
    if (table.turn !== null && table.turn < table.time.virtual) this.#turnOfTable(table)
  }

  /** Of a task that may serve again: its lanes return to the order at the level's time. */
  reopen(task: Task): void {
    const { order, tableOrders } = this.memory
    if (task.asideForgotten) {
      task.asideForgotten = false
      order.rewind()
      tableOrders.rewind()
    }
    for (const lane of task.aside) order.reopen(lane)
    for (const table of task.asideTables) tableOrders.reopen(table)
    // Also those that were not met while they might not serve: they kept their place, and others moved on.
    for (const lane of task.lanes.values()) {
      this.catchUp(lane)
      for (const table of lane.tables.values()) this.catchUpTable(table)
    }
  }

  reopenLane(lane: Lane): void {
    this.memory.order.reopen(lane)
    this.catchUp(lane)
    for (const table of lane.tables.values()) {
      this.memory.tableOrders.reopen(table)
      this.catchUpTable(table)
    }
  }

  /** A line that had nothing starts where the level stands. */
  #startLine(lane: Lane, line: Line, waitedBefore: number): void {
    if (waitedBefore > 0) return
    const { time } = lane
    if (time.queued === 0 && time.virtual < time.served && this.memory.order.isLoadedPast(time.level)) {
      drain(time)
      this.#touchLevel(time)
    }
    if (line === 'retry') {
      if (lane.retryTag < time.virtual) lane.retryTag = time.virtual
    } else if (lane.tag < time.virtual) lane.tag = time.virtual
  }

  #turn(lane: Lane): void {
    const { owner, level, time } = lane
    if (isLaneOpen(owner, level)) {
      // Behind the time is only one that might not serve for a while, and had not been met since.
      if (lane.tag < time.virtual) lane.tag = time.virtual
      if (lane.retryTag < time.virtual) lane.retryTag = time.virtual
    }
    const first = firstWaiting(lane) > 0 ? lane.tag : null
    const retry = lane.retries > 0 ? lane.retryTag : null
    lane.turn = earlier(first, retry)
    this.touchLane(lane)
    this.memory.order.put(lane)
    const only = onlyTable(lane)
    if (only !== undefined) this.#turnOfTable(only)
  }

  /** Fresh partitions arrive. A lane that has one table keeps no counts for it; with the second one it begins to. */
  #joinTables(lane: Lane, arrived: ReadonlyMap<string, number>, waitedBefore: number): void {
    const only = onlyTable(lane)
    for (const name of arrived.keys())
      if (!lane.tables.has(name))
        this.#touchLaneTable(this.memory.addLaneTable(lane, newLaneTable(lane, name)))
    if (lane.tables.size === 1) return
    if (only !== undefined) {
      only.ready = waitedBefore + lane.retries
      only.released = lane.released
      only.retries = lane.retries
      only.cursor = lane.cursor
    }
    for (const [name, count] of arrived) {
      const table = lane.tables.get(name) as LaneTable
      table.ready += count
      this.#touchLaneTable(table)
      // What arrived is on the disk, behind all that was read.
      if (table.lines !== null) table.lines.fresh.isComplete = false
      this.#turnOfTable(table)
    }
    if (only !== undefined) this.#touchLaneTable(only)
  }

  #enqueueByTable(partition: Partition): void {
    const { home, line, computeTable } = partition
    const table = home.tables.get(computeTable)
    if (table === undefined || home.tables.size === 1) return
    table.ready += 1
    if (line === 'retry') table.retries += 1
    else if (line === 'released') table.released += 1
    table.lines?.[line].add(partition)
    this.#touchLaneTable(table)
    this.#turnOfTable(table)
  }

  #dequeueByTable(partition: Partition): void {
    const { home, line, computeTable } = partition
    const table = home.tables.get(computeTable)
    if (table === undefined || home.tables.size === 1) return
    table.ready -= 1
    if (line === 'retry') table.retries -= 1
    else if (line === 'released') table.released -= 1
    table.lines?.[line].remove(partition)
    this.#touchLaneTable(table)
    this.#turnOfTable(table)
  }

  /** Most changes of a lane leave the turn of its table as it is: then nothing is written. */
  #turnOfTable(table: LaneTable): void {
    const { owner, level, time } = table
    const { first, retries } = waitingOf(table)
    const before = table.turn
    if (isLaneOpen(owner, level) || (before === null && first + retries > 0)) {
      if (table.tag < time.virtual) table.tag = time.virtual
      if (table.retryTag < time.virtual) table.retryTag = time.virtual
    }
    table.turn = earlier(first > 0 ? table.tag : null, retries > 0 ? table.retryTag : null)
    if (table.turn === before) return
    this.#touchLaneTable(table)
    this.memory.tableOrders.put(table)
  }

  remember(key: string, row: StoredKey | null): void {
    this.#keys.set(key, row)
    const known: Key = { row, changedIn: this.number }
    this.memory.keys.delete(key)
    this.memory.keys.set(key, known)
  }

  remove(partition: Partition): void {
    this.#removed.push(partition.id)
    this.memory.dropPartition(partition)
  }

  countFinished(lane: Lane, recordCount: number): void {
    const { owner: task } = lane
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
    task.pace = null
    this.#paceOver.push(task.id)
  }

  addRange(lane: number, first: number, last: number): void {
    this.#ranges.push({ lane, first, last })
  }

  barrierWanted(task: Task, enabled: boolean | undefined): void {
    if (enabled !== undefined && enabled !== task.levelBarrier) this.barriers.set(task, enabled)
  }

  addTable(task: Task, table: string): void {
    this.#tables.push([task.id, table])
  }

  addProducer(task: Task, instance: string): void {
    this.#produced.push([task.id, instance, this.now])
  }

  /** The disk keeps a row for everyone who was given or brought something. */
  sawInstance(instanceId: string, role: InstanceRole): void {
    if (this.memory.instances.has(instanceId)) return
    this.memory.instances.set(instanceId, role)
    this.#instances.push([instanceId, role, this.now])
  }

  /** What an instance did, to add to: it is kept together with what it did, so that neither is there without the other. */
  totalsOf(instanceId: string, role: InstanceRole): InstanceTotals {
    let added = this.#totals.get(instanceId)
    if (added === undefined) {
      added = { instanceId, role, at: this.now, totals: noTotals() }
      this.#totals.set(instanceId, added)
    }
    return added.totals
  }

  due(at: number): void {
    if (this.earliestDueAt === null || at < this.earliestDueAt) this.earliestDueAt = at
  }

  entry(): Entry {
    const removed = new Set(this.#removed)
    return {
      tasks: this.#tasks.map((task) => imageOfTask(task, task.failuresChangedIn === this.number)),
      lanes: this.#lanes.map(imageOfLane),
      levels: this.#levels.map(({ level, virtual, served }) => ({ level, virtual, served })),
      partitions: [
        ...this.#partitions
          .filter(({ id }) => !removed.has(id))
          .map((partition): Entry['partitions'][number] => [partition.id, imageOfStatus(partition)]),
        ...this.#removed.map((id): Entry['partitions'][number] => [id, null]),
      ],
      keys: [...this.#keys],
      pace: [...this.#pace].map((pace) => ({ ...pace })),
      paceOver: this.#paceOver,
      ranges: this.#ranges,
      tables: this.#tables,
      produced: this.#produced,
      instances: this.#instances,
      totals: [...this.#totals.values()],
      nextIds: this.#hasIds ? { ...this.memory.nextIds } : null,
      laneTables: this.#laneTables.map(imageOfLaneTable),
      tableTimes: this.#tableTimes.map(({ level, table, virtual }) => ({ level, table, virtual })),
      outbox: this.outbox.entry(),
      throughput: this.#done,
    }
  }

  setFailures(task: Task, failures: Task['failures']): void {
    task.failures = failures
    task.failuresChangedIn = this.number
    this.touchTask(task)
  }

  /** For those who watch: partitions that this transaction parked and did not move on. */
  parkedNotices(): ParkedNotice[] {
    return this.parked
      .filter(({ state }) => state === 'parked')
      .map(({ home, index, spelling, attempts, reason }) => ({
        taskId: home.owner.taskId,
        level: home.level,
        index,
        spelling,
        attempts,
        reason,
      }))
  }
}

/** How many wait on a lane's first line: fresh, or given back unused. */
export const firstWaiting = ({ partitions, retries }: Lane): number => partitions.ready - retries

/** The same of one of its tables, and its retries. */
export function waitingOf(table: LaneTable): { readonly first: number; readonly retries: number } {
  const { home, ready, retries } = table
  return home.tables.size === 1
    ? { first: firstWaiting(home), retries: home.retries }
    : { first: ready - retries, retries }
}

/** Undefined where a lane has several, or none. */
function onlyTable({ tables }: Lane): LaneTable | undefined {
  if (tables.size !== 1) return undefined
  const [only] = tables.values()
  return only
}

const newLaneTable = ({ id, level }: Lane, table: string) => ({
  lane: id,
  table,
  level,
  tag: 0n,
  retryTag: 0n,
  turn: null,
  cursor: 0,
  ready: 0,
  released: 0,
  retries: 0,
})

/** The smaller one, of those that there are. */
function earlier(first: bigint | null, retry: bigint | null): bigint | null {
  return first === null ? retry : retry === null || first <= retry ? first : retry
}

export function handedOut(partition: Partition, lease: GrantedLease | null): PulledPartition {
  const { home, index, spelling, computeTable, recordCount, extraFields, traceparent } = partition
  const handed = {
    taskId: home.owner.taskId,
    level: home.level,
    index,
    spelling,
    computeTableName: computeTable,
    recordCount,
    lease,
  }
  return extraFields === null && traceparent === null ? handed : { ...handed, extraFields, traceparent }
}

export function leaseOf(partition: Partition, now: number): GrantedLease {
  const { id, term, secret, attempts } = partition
  const expiresAt = partition.dueAt ?? now
  return {
    id: formatLeaseId({ partition: id, term, secret }),
    attempt: attempts + 1,
    expiresAt,
    expiresInMillis: expiresAt - now,
  }
}

export function* load(tx: Transaction, needs: Needs): Steps<Loaded> {
  const loaded = (yield { ask: 'load', needs }) as Loaded
  tx.memory.take(loaded)
  return loaded
}

/** Every so many items of a long list, others have a turn. */
const ITEMS_PER_TURN = 500

export function* yieldToEventLoop(at: number): Steps<void> {
  if (at % ITEMS_PER_TURN === ITEMS_PER_TURN - 1) yield { ask: 'breathe' }
}
