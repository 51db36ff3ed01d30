import { disagree } from '../../../packages/server/test/handoff/model-disagreement.ts'
import type { Filter } from '../../../packages/server/test/handoff/model-partition.ts'
import { freshWaiting, type ModelLane, type ModelPartition, nameOf } from './model-task.ts'

/** The lanes with waiting partitions, and which of these goes first. */
export class WaitingLines {
  readonly lanes = new Set<ModelLane>()

  /** A partition that was never handed out. */
  arrive(partition: ModelPartition): void {
    partition.lane.fresh.push(partition)
    this.lanes.add(partition.lane)
  }

  comeBack(partition: ModelPartition): void {
    const { lane, line } = partition
    if (line !== 'fresh') lane.returned[line].add(partition)
    this.lanes.add(lane)
  }

  /** To be called when the lane no longer counts the partition as waiting. */
  leave(partition: ModelPartition): void {
    const { lane, line } = partition
    if (line !== 'fresh') lane.returned[line].delete(partition)
    else {
      // A partition that was taken by a pull with a table may be further back.
      if (lane.fresh[lane.freshFrom] === partition) lane.freshFrom += 1
      else lane.fresh.splice(lane.fresh.indexOf(partition), 1)
      if (freshWaiting(lane) === 0) lane.epoch += 1
    }
    if (lane.counts.waiting === 0) this.lanes.delete(lane)
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

  /** Released partitions go first, by id, then fresh ones by arrival. Retries go by their due time. */
  checkIsNext(partition: ModelPartition, { tables }: Filter): void {
    const { lane, line, descriptor } = partition
    // Each named table has its own queues.
    const isPeer = (other: ModelPartition) =>
      tables === null || other.descriptor.computeTableName === descriptor.computeTableName
    const { released, retry } = lane.returned
    switch (line) {
      case 'fresh': {
        for (const other of released)
          if (isPeer(other)) disagree(`${nameOf(partition)} went before one that was released`)
        let first = lane.freshFrom
        while (first < lane.fresh.length && !isPeer(lane.fresh[first] as ModelPartition)) first += 1
        const due = lane.fresh[first]
        if (due !== partition)
          disagree(`${nameOf(partition)} went before ${due && nameOf(due)}, which came earlier`)
        break
      }
      case 'released':
        for (const other of released)
          if (other.id < partition.id && isPeer(other))
            disagree(`${nameOf(partition)} went before ${nameOf(other)}, which was released, too`)
        break
      case 'retry':
        for (const other of retry)
          if (isDueBefore(other, partition) && isPeer(other))
            disagree(`${nameOf(partition)} went before ${nameOf(other)}, which was due earlier`)
    }
  }
}

const isDueBefore = (a: ModelPartition, b: ModelPartition): boolean =>
  a.dueAt < b.dueAt || (a.dueAt === b.dueAt && a.id < b.id)

function hasWanted({ task, fresh, freshFrom, returned }: ModelLane, { tables, tasks }: Filter): boolean {
  if (tasks !== null && !tasks.includes(task.taskId)) return false
  if (tables === null) return true
  for (let at = freshFrom; at < fresh.length; at += 1)
    if (tables.includes((fresh[at] as ModelPartition).descriptor.computeTableName)) return true
  for (const line of [returned.released, returned.retry])
    for (const { descriptor } of line) if (tables.includes(descriptor.computeTableName)) return true
  return false
}
