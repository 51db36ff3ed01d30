import type { ControlOrder, ControlResult, FlagOrder } from './control.ts'
import { totalOf, unfinishedOf } from './tally.ts'
import { isDone } from './task-course.ts'
import type { LaneEntry, TaskEntry } from './task-entry.ts'

/** What a step of an order came to. */
export interface Applied {
  readonly changed: number
  readonly readied?: number
  readonly more?: boolean
}

/** Why an order to a task is refused; undefined for one that is carried out. */
export function refusalOf(task: TaskEntry, order: ControlOrder): ControlResult | undefined {
  if (task.cancelled && order.verb !== 'cancel') return { kind: 'task_cancelled' }
  switch (order.verb) {
    case 'pause':
    case 'cancel':
    case 'skip-parked':
      return isDone(task) ? { kind: 'task_finished' } : undefined
    case 'seal': {
      const known = totalOf(task.partitions)
      return (order.expectedPartitions ?? known) < known ? { kind: 'more_are_known', known } : undefined
    }
    case 'retry':
      if (order.done && task.sealed && isDone(task)) return { kind: 'task_sealed' }
      return order.done && task.purgedAt !== null ? { kind: 'task_purged' } : undefined
    case 'resume':
    case 'level-barrier':
      return undefined
  }
}

/** Work on a whole task that is done in bounded transactions and survives a restart in between. */
export type Step = 'fill' | 'cancel' | 'rerun'

/** What an order comes to. A store carries it out in the sequence in which it stands here. */
export interface Effect {
  readonly changed: number
  /** What of closed lanes is not held yet is held first. While some is left, nothing of the rest happens. */
  readonly holdsFirst?: boolean
  readonly flags?: Partial<Omit<TaskEntry, 'id' | 'taskId'>>
  /** Left over from orders that this one overtakes. */
  readonly drops?: readonly Step[]
  readonly begins?: Step
  readonly placesBarrier?: boolean
  /** A step of what this order, or the same one before, has begun. */
  readonly advances?: Step
  /** A step of taking closed lanes out of the reach of pulls. */
  readonly holds?: boolean
}

/** Whoever repeats an order changes nothing and has what it began go on. */
export function effectOf(task: TaskEntry, order: FlagOrder): Effect {
  switch (order.verb) {
    case 'pause':
      return { changed: task.paused ? 0 : 1, flags: { paused: true }, drops: ['fill'], holds: true }
    case 'resume':
      if (!task.paused) return { changed: 0, advances: 'fill' }
      // A lane comes back as a whole, in its own order.
      return { changed: 1, holdsFirst: true, flags: { paused: false }, begins: 'fill', advances: 'fill' }
    case 'cancel': {
      if (task.cancelled) return { changed: 0, advances: 'cancel' }
      const changed = unfinishedOf(task.partitions)
      const flags = { cancelled: true }
      return { changed, flags, drops: ['fill', 'rerun'], begins: 'cancel', advances: 'cancel' }
    }
    case 'level-barrier':
      return barrierEffect(task.levelBarrier !== order.enabled, order.enabled)
    case 'seal': {
      const expectedPartitions = order.expectedPartitions ?? task.expectedPartitions
      const isSaid = task.sealed && task.expectedPartitions === expectedPartitions
      return { changed: isSaid ? 0 : 1, flags: { sealed: true, expectedPartitions } }
    }
  }
}

function barrierEffect(isNew: boolean, enabled: boolean): Effect {
  const changes = isNew ? { changed: 1, flags: { levelBarrier: enabled, openLevel: null } } : { changed: 0 }
  if (enabled) return { ...changes, placesBarrier: true, holds: true }
  return isNew ? { ...changes, begins: 'fill', advances: 'fill' } : { ...changes, advances: 'fill' }
}

/** Whether the barrier waits for what is parked there, and nobody has said yet that it need not. */
export function mayPass(lane: LaneEntry | undefined): lane is LaneEntry {
  return lane !== undefined && !lane.parkedSkipped && lane.partitions.parked > 0
}
