import { disagree } from './disagreement.ts'
import { type ModelLane, type ModelPartition, nameOf } from './model-task.ts'
import type { Filter } from './partition.ts'

/** The lanes with waiting partitions, and which of these goes first. */
export class WaitingPartitions {
  readonly lanes = new Set<ModelLane>()

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
    let lowest: ModelLane | null = null
    for (const lane of this.lanes) {
      if (lowest !== null && lane.level >= lowest.level) continue
      if (lane.task.isOpen(lane.level) && hasWanted(lane, filter)) lowest = lane
    }
    return lowest
  }

  /** What came back goes first, the longest ago first, then the others by arrival. */
  checkIsNext(partition: ModelPartition, { tables }: Filter): void {
    const { lane, line, descriptor } = partition
    const isPeer = (other: ModelPartition) =>
      tables === null || other.descriptor.computeTableName === descriptor.computeTableName
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

function hasWanted({ task, fresh, freshFrom, returned }: ModelLane, { tables, tasks }: Filter): boolean {
  if (tasks !== null && !tasks.includes(task.taskId)) return false
  if (tables === null) return true
  for (let at = freshFrom; at < fresh.length; at += 1)
    if (tables.includes((fresh[at] as ModelPartition).descriptor.computeTableName)) return true
  for (const { descriptor } of returned) if (tables.includes(descriptor.computeTableName)) return true
  return false
}
