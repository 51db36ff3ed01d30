import type { CalledBackPartition } from '@baton/protocol'
import type { TaskSettings } from '../../src/handoff/rules/policy.ts'
import type { Attempted } from './model-history.ts'
import type { LeaseOutcome, Place } from './model-partition.ts'

export interface ModelLease {
  readonly id: string
  outcome: LeaseOutcome | null
}

export interface ModelPartition extends Attempted {
  readonly task: ModelTask
  readonly descriptor: CalledBackPartition
  readonly arrival: number
  place: Place
  releases: number
  /** The newest lease; null before the first one, and again after a rerun. */
  lease: ModelLease | null
  /** When the lease or the back-off ends. */
  dueAt: number
  /** Set while only the range of a randomized back-off is known. */
  dueBetween: { readonly first: number; readonly last: number } | null
  wasHandedOut: boolean
  purged: boolean
}

const isUnfinished = ({ place }: ModelPartition) => place !== 'done' && place !== 'cancelled'

export type ModelTaskState = 'open' | 'paused' | 'done' | 'stalled' | 'cancelled'

/** A task as the design describes it: flags, partitions, and what follows from both. */
export class ModelTask {
  readonly taskId: string
  readonly partitions = new Map<string, ModelPartition>()
  readonly skippedLevels = new Set<number>()
  barrier: boolean
  paused = false
  cancelled = false
  sealed = false
  purged = false
  generation = 1
  wasted = 0
  finishedAt: number | null = null
  settings: Pick<TaskSettings, 'maxLeases' | 'maxAttempts'> = {}

  constructor(taskId: string, barrier: boolean) {
    this.taskId = taskId
    this.barrier = barrier
  }

  get state(): ModelTaskState {
    if (this.cancelled) return 'cancelled'
    const unfinished = this.all().filter(isUnfinished)
    if (unfinished.length === 0) return 'done'
    if (this.paused) return 'paused'
    const shown = this.shown()
    const canMove = unfinished.some((one) => !['parked', 'held'].includes(shown.get(one) ?? ''))
    return canMove ? 'open' : 'stalled'
  }

  all(): ModelPartition[] {
    return [...this.partitions.values()]
  }

  find(level: number, index: number): ModelPartition | undefined {
    return this.partitions.get(`${level}-${index}`)
  }

  /** The lowest level that is not finished; a barrier closes all levels above it. */
  lowestUnfinishedLevel(): number | null {
    const levels = this.all()
      .filter((partition) => isUnfinished(partition) && !this.#isPassed(partition))
      .map(({ descriptor }) => descriptor.level)
    return levels.length === 0 ? null : levels.reduce((a, b) => Math.min(a, b))
  }

  /** The visible state of each partition. */
  shown(): Map<ModelPartition, string> {
    const lowest = this.barrier ? this.lowestUnfinishedLevel() : null
    const isOpen = (level: number) => !this.paused && (lowest === null || level <= lowest)
    return new Map(
      this.all().map((partition) => {
        const { place, descriptor } = partition
        if (place === 'done') return [partition, 'done']
        if (this.cancelled) return [partition, 'cancelled']
        if (place !== 'waiting') return [partition, place]
        return [partition, isOpen(descriptor.level) ? 'ready' : 'held']
      }),
    )
  }

  /** At the end of each transaction. */
  commit(now: number): void {
    const isFinished = this.state === 'done' || this.state === 'cancelled'
    this.finishedAt = isFinished ? (this.finishedAt ?? now) : null
  }

  #isPassed({ place, descriptor }: ModelPartition): boolean {
    return place === 'parked' && this.skippedLevels.has(descriptor.level)
  }
}
