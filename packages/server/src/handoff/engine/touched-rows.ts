import { copierOf, namesOf } from '../fields.ts'
import type { StoredSubscription } from '../outbox.ts'
import { type PartitionStatus, statusFields } from '../partition.ts'
import type { TableSettings } from '../rules/policy.ts'
import type { NextIds } from '../stored.ts'
import type { UnflushedCheckpoint } from './state/checkpoints.ts'
import type { FilterOrder } from './state/filter-order.ts'
import type { Memory } from './state/memory.ts'
import type { Buffers, Key, Lane, LaneTable, Level, Partition, Task } from './state/memory-rows.ts'

type ReadTo = readonly Pick<Buffers['fresh'], 'loadedTo' | 'isComplete'>[] | null

interface Touched<Row, Before = Row> {
  readonly row: Row
  readonly before: Before
}

interface TouchedSource<Row> extends Touched<Row> {
  readonly readTo: ReadTo
}

/**
 * The rows that a transaction has touched, with copies from before its first change: for its entry, and to undo it.
 * `restore` makes memory what it was before the transaction; what was read from disk in the meantime stays. Where lanes, leases and waiting
 * partitions stand is not copied: they are put there again.
 */
export class TouchedRows {
  readonly tasks: Touched<Task>[] = []
  readonly lanes: TouchedSource<Lane>[] = []
  readonly levels: Touched<Level>[] = []
  readonly laneTables: TouchedSource<LaneTable>[] = []
  readonly partitions: Touched<Partition, ReturnType<typeof changingOf>>[] = []
  /** By partition. */
  readonly checkpoints = new Map<number, UnflushedCheckpoint | undefined>()
  readonly keys = new Map<string, Key | undefined>()
  readonly subscriptions = new Map<string, StoredSubscription | undefined>()
  readonly pausedInstances = new Map<string, number | undefined>()
  readonly tableSettings = new Map<string, TableSettings>()
  /** Added by the transaction. */
  readonly newTasks: Task[] = []
  readonly newLanes: Lane[] = []
  readonly newLaneTables: LaneTable[] = []
  readonly newPartitions = new Set<Partition>()
  readonly newInstances: string[] = []
  /** Too large to be copied: they start afresh. */
  readonly usedFilterOrders = new Set<FilterOrder>()
  readonly #nextIds: NextIds
  readonly #memory: Memory

  constructor(memory: Memory) {
    this.#memory = memory
    this.#nextIds = { ...memory.nextIds }
  }

  keepTask(task: Task): void {
    const { durations, partitions, records } = task
    const before = {
      ...task,
      durations: durations.slice(),
      partitions: { ...partitions },
      records: { ...records },
    }
    this.tasks.push({ row: task, before })
  }

  keepLane(lane: Lane): void {
    const { partitions, records, buffers } = lane
    const before = { ...lane, partitions: { ...partitions }, records: { ...records } }
    this.lanes.push({ row: lane, before, readTo: readToOf(buffers) })
  }

  keepLevel(level: Level): void {
    this.levels.push({ row: level, before: { ...level } })
  }

  keepLaneTable(table: LaneTable): void {
    this.laneTables.push({ row: table, before: { ...table }, readTo: readToOf(table.buffers) })
  }

  keepPartition(partition: Partition): void {
    this.partitions.push({ row: partition, before: changingOf(partition) })
  }

  restore(): void {
    const memory = this.#memory
    // Positions depend on the fields that are restored.
    for (const { row } of this.partitions) withdraw(memory, row)
    for (const partition of this.newPartitions) withdraw(memory, partition)
    for (const { row, before } of this.tasks) Object.assign(row, before)
    for (const { row, before } of this.levels) {
      const { virtual, maxFinishTag, changedIn } = before
      Object.assign(row, { virtual, maxFinishTag, changedIn })
    }
    for (const { row: table, before, readTo } of this.laneTables) {
      if (readTo === null) clear(table.buffers)
      Object.assign(table, before)
      setReadTo(table.buffers, readTo)
      memory.order.updateTable(table)
    }
    for (const table of this.newLaneTables) {
      clear(table.buffers)
      memory.removeLaneTable(table)
    }
    for (const { row: lane, before, readTo } of this.lanes) {
      const { queueEntry, heapIndex, pins, mixed } = lane
      Object.assign(lane, before, { queueEntry, heapIndex, pins, mixed })
      setReadTo(lane.buffers, readTo)
      memory.order.update(lane)
    }
    for (const { row: partition, before } of this.partitions) {
      Object.assign(partition, before)
      if (!this.newPartitions.has(partition)) putBack(memory, partition)
    }
    for (const partition of this.newPartitions) memory.dropPartition(partition)
    for (const lane of this.newLanes) memory.removeLane(lane)
    for (const task of this.newTasks) memory.removeTask(task)
    // A task that could not be served any more has left the order.
    for (const { row } of this.tasks) memory.order.reopen(row)
    for (const [partition, before] of this.checkpoints) memory.checkpoints.set(partition, before)
    for (const [name, key] of this.keys) setOrDelete(memory.keys, name, key)
    for (const [id, row] of this.subscriptions) setOrDelete(memory.subscriptions, id, row)
    for (const [table, settings] of this.tableSettings)
      memory.order.reorder(memory.order.tables.setSettings({ table, ...settings }))
    for (const [id, at] of this.pausedInstances) setOrDelete(memory.pausedInstances, id, at)
    for (const instance of this.newInstances) memory.instances.delete(instance)
    for (const filterOrder of this.usedFilterOrders) memory.filterOrders.drop(filterOrder)
    Object.assign(memory.nextIds, this.#nextIds)
  }
}

/** What changes of a partition, apart from its places in memory. */
const changingOf = copierOf<Partition, keyof PartitionStatus | 'progress' | 'changedIn'>([
  ...namesOf(statusFields),
  'progress',
  'changedIn',
])

const readToOf = (buffers: Buffers | null): ReadTo =>
  buffers === null
    ? null
    : [buffers.fresh, buffers.returned].map(({ loadedTo, isComplete }) => ({ loadedTo, isComplete }))

function setReadTo(buffers: Buffers | null, readTo: ReadTo): void {
  if (buffers === null || readTo === null) return
  Object.assign(buffers.fresh, readTo[0])
  Object.assign(buffers.returned, readTo[1])
}

function clear(buffers: Buffers | null): void {
  buffers?.fresh.clear(() => true)
  buffers?.returned.clear(() => true)
}

const buffersWith = ({ parentLane: lane, computeTable }: Partition): (Buffers | null | undefined)[] => [
  lane.buffers,
  lane.mixed?.tables.get(computeTable)?.buffers,
]

function withdraw(memory: Memory, partition: Partition): void {
  memory.leases.remove(partition)
  const kind = partition.dueAt === null ? 'fresh' : 'returned'
  for (const buffers of buffersWith(partition)) buffers?.[kind].remove(partition)
}

function putBack(memory: Memory, partition: Partition): void {
  memory.keepPartition(partition)
  if (partition.state === 'leased') memory.leases.put(partition)
  if (partition.state !== 'ready' || partition.parentLane.parentTask.cancelled) return
  const kind = partition.dueAt === null ? 'fresh' : 'returned'
  for (const buffers of buffersWith(partition)) buffers?.[kind].add(partition)
  memory.buffered(partition.parentLane)
}

function setOrDelete<Row>(rows: Map<string, Row>, name: string, row: Row | undefined): void {
  if (row === undefined) rows.delete(name)
  else rows.set(name, row)
}
