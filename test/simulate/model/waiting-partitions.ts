import { disagree } from './disagreement.ts'
import { type ModelLane, type ModelPartition, nameOf } from './model-task.ts'
import type { Filter } from './partition.ts'
import { isBlocked, type ModelTable, type ModelTables } from './tables.ts'

/** The lanes with waiting partitions, and which of these goes first. */
export class WaitingPartitions {
  readonly lanes = new Set<ModelLane>()
  private readonly tables: ModelTables

  constructor(tables: ModelTables) {
    this.tables = tables
  }

  /** A partition that was never handed out. */
  arrive(partition: ModelPartition): void {
    partition.lane.fresh.push(partition)
    this.lanes.add(partition.lane)
  }

  comeBack(partition: ModelPartition): void {
    const { lane } = partition
    lane.returned.add(partition)
    this.lanes.add(lane)
  }

  /** To be called when the lane no longer counts the partition as waiting. */
  leave(partition: ModelPartition): void {
    const { lane, line } = partition
    if (line === 'returned') lane.returned.delete(partition)
    else {
      // A partition that was taken by a pull with a table may be further back.
      if (lane.fresh[lane.freshFrom] === partition) lane.freshFrom += 1
      else lane.fresh.splice(lane.fresh.indexOf(partition), 1)
    }
    if (lane.counts.waiting > 0) return
    lane.epoch += 1
    this.lanes.delete(lane)
  }

  /** The lane, or one of the lanes, of the lowest level with something to hand out to this pull. */
  lowestOpen(filter: Filter): ModelLane | null {
    const { isAnyBlocked } = this.tables
    let lowest: ModelLane | null = null
    for (const lane of this.lanes) {
      if (lowest !== null && lane.level >= lowest.level) continue
      if (lane.task.isOpen(lane.level) && hasWanted(lane, filter, isAnyBlocked)) lowest = lane
    }
    return lowest
  }

  /** The lanes that may serve a pull without a filter. */
  servable(): Set<ModelLane> {
    const { isAnyBlocked } = this.tables
    const any = { tables: null, tasks: null }
    const isServable = (lane: ModelLane) => lane.task.isOpen(lane.level) && hasWanted(lane, any, isAnyBlocked)
    return new Set([...this.lanes].filter(isServable))
  }

  /** Whether a partition of such a table waits in the lane and may be handed out. */
  hasOf(lane: ModelLane, table: string | null): boolean {
    return hasWanted(lane, { tables: table === null ? null : [table], tasks: null }, true)
  }

  /**
   * What came back goes first, the longest ago first, then the others by arrival. While a table of the lane is
   * blocked, this holds for each table of it.
   */
  checkIsNext(partition: ModelPartition, { tables }: Filter): void {
    const { lane, line, table } = partition
    const isByTable = tables !== null || (this.tables.isAnyBlocked && waits(lane, isBlocked))
    const isPeer = (other: ModelPartition) => !isByTable || other.table === table
    for (const other of lane.returned)
      if (isPeer(other) && (line === 'fresh' || isDueBefore(other, partition)))
        disagree(`${nameOf(partition)} went before ${nameOf(other)}, which had come back`)
    if (line === 'returned') return
    let first = lane.freshFrom
    while (first < lane.fresh.length && !isPeer(lane.fresh[first] as ModelPartition)) first += 1
    const due = lane.fresh[first]
    if (due !== partition)
      disagree(`${nameOf(partition)} went before ${due && nameOf(due)}, which came earlier`)
  }
}

const isDueBefore = (a: ModelPartition, b: ModelPartition): boolean =>
  a.dueAt < b.dueAt || (a.dueAt === b.dueAt && a.id < b.id)

function hasWanted(lane: ModelLane, { tables, tasks }: Filter, isAnyBlocked: boolean): boolean {
  if (tasks !== null && !tasks.includes(lane.task.taskId)) return false
  if (tables === null && !isAnyBlocked) return true
  return waits(lane, (table) => (tables === null || tables.includes(table.name)) && !isBlocked(table))
}

/** Whether a partition of such a table waits in the lane. */
function waits({ fresh, freshFrom, returned }: ModelLane, isSuch: (table: ModelTable) => boolean): boolean {
  for (const { table } of returned) if (isSuch(table)) return true
  for (let at = freshFrom; at < fresh.length; at += 1)
    if (isSuch((fresh[at] as ModelPartition).table)) return true
  return false
}
