import { isDeepStrictEqual } from 'node:util'
import type { CalledBackPartition } from '@baton/protocol'
import type { PauseAfterFailures } from '../../../packages/server/src/handoff/rules/failure-window.ts'
import type { TaskSettings } from '../../../packages/server/src/handoff/rules/policy.ts'
import type { Attempted } from './history.ts'
import type { LeaseOutcome, Place } from './partition.ts'
import type { ModelTable } from './tables.ts'

/** Whether a waiting partition was never handed out, or came back. */
export type WaitingLine = 'fresh' | 'returned'

export interface ModelPartition extends Attempted {
  readonly lane: ModelLane
  readonly descriptor: CalledBackPartition
  readonly table: ModelTable
  /** Known from its first lease on. */
  id: number
  place: Place
  line: WaitingLine
  releases: number
  leaseNumber: number
  /** Of the newest lease; null before the first one. */
  fencingToken: number | null
  /** The newest lease; null before the first one, and again after a rerun. */
  leaseId: string | null
  outcome: LeaseOutcome | null
  /** The last one that a worker gave. */
  checkpoint: string | null
  /** When the lease or the back-off ends, or when it came back. */
  dueAt: number
  purged: boolean
}

export interface ModelLane {
  readonly task: ModelTask
  readonly level: number
  /** The store's id of the lane, once it is known. */
  id: number
  readonly partitions: Map<number, ModelPartition>
  readonly counts: Record<Place, number>
  /** Partitions that were never handed out, in the order of arrival, from `freshFrom` on. */
  readonly fresh: ModelPartition[]
  freshFrom: number
  readonly returned: Set<ModelPartition>
  parkedSkipped: boolean
  /** Everything that was ever done here, counted again after each rerun. */
  readonly everDone: { partitions: number; records: number }
  /** Changes whenever it can or cannot be served: fairness holds within an epoch. */
  epoch: number
  largestCost: number
}

/** A task as the design describes it: flags, partitions, and what follows from both. */
export class ModelTask {
  readonly taskId: string
  readonly lanes = new Map<number, ModelLane>()
  readonly counts = noCounts()
  barrier: boolean
  paused = false
  cancelled = false
  sealed = false
  purged = false
  /** Finished partitions are being rerun, step by step. */
  rerunning = false
  finishedAt: number | null = null
  openLevel: number | null = null
  /** The maximum number of leases at a time, and its weight against other tasks. */
  maxLeases = Number.POSITIVE_INFINITY
  weight = 1
  /** The smallest that it ever had: what was handed out before a change is charged as it was then. */
  leastWeight = 1
  /** Null: as many attempts as the service allows. */
  maxAttempts: number | null = null
  /** When it pauses itself; null: never. */
  pauseAfterFailures: PauseAfterFailures | null = null
  /** Whether each of its last attempts failed, oldest first, while it may pause itself. */
  lastFailed: boolean[] = []

  constructor(taskId: string, barrier: boolean) {
    this.taskId = taskId
    this.barrier = barrier
  }

  lane(level: number): ModelLane {
    let lane = this.lanes.get(level)
    if (lane === undefined) {
      lane = {
        task: this,
        level,
        id: 0,
        partitions: new Map(),
        counts: noCounts(),
        fresh: [],
        freshFrom: 0,
        returned: new Set(),
        parkedSkipped: false,
        everDone: { partitions: 0, records: 0 },
        epoch: 0,
        largestCost: 1,
      }
      this.lanes.set(level, lane)
    }
    return lane
  }

  find(level: number, index: number): ModelPartition | undefined {
    return this.lanes.get(level)?.partitions.get(index)
  }

  *all(): Generator<ModelPartition> {
    for (const lane of this.lanes.values()) yield* lane.partitions.values()
  }

  get isKnown(): boolean {
    return this.lanes.size > 0
  }

  get isDone(): boolean {
    return !this.cancelled && unfinished(this.counts) === 0
  }

  /** An attempt ended for the first time: done, or failed or expired. */
  attemptEnded(hasFailed: boolean): void {
    const rule = this.pauseAfterFailures
    if (rule === null) return
    this.lastFailed = [...this.lastFailed, hasFailed].slice(-rule.of)
    const failed = this.lastFailed.filter((one) => one).length
    if (hasFailed && this.lastFailed.length === rule.of && failed >= rule.share * rule.of) this.paused = true
  }

  /** An expired lease goes on. */
  attemptRevived(): void {
    const at = this.lastFailed.lastIndexOf(true)
    if (at !== -1) this.lastFailed.splice(at, 1)
  }

  /** As it is stored. */
  get failureWindow(): string {
    return this.lastFailed.map((failed) => (failed ? '1' : '0')).join('')
  }

  isSetTo({ maxLeases, weight, maxAttempts, pauseAfterFailures }: TaskSettings): boolean {
    return (
      isDeepStrictEqual(this.pauseAfterFailures, pauseAfterFailures ?? null) &&
      this.maxLeases === (maxLeases ?? Number.POSITIVE_INFINITY) &&
      this.weight === (weight ?? 1) &&
      this.maxAttempts === (maxAttempts ?? null)
    )
  }

  isOpen(level: number): boolean {
    if (this.paused || this.cancelled || this.counts.leased >= this.maxLeases) return false
    return !this.barrier || (this.openLevel !== null && level <= this.openLevel)
  }

  /** The lowest level that is not finished; a barrier closes all levels above it. */
  lowestUnfinishedLevel(): number | null {
    let lowest: number | null = null
    for (const { level, counts, parkedSkipped } of this.lanes.values()) {
      const holds = unfinished(counts) > (parkedSkipped ? counts.parked : 0)
      if (holds && (lowest === null || level < lowest)) lowest = level
    }
    return lowest
  }
}

const noCounts = (): Record<Place, number> => ({
  waiting: 0,
  leased: 0,
  delayed: 0,
  parked: 0,
  done: 0,
  cancelled: 0,
})

const unfinished = ({ waiting, leased, delayed, parked }: Record<Place, number>): number =>
  waiting + leased + delayed + parked

export const nameOf = ({ lane, descriptor }: ModelPartition): string =>
  `${lane.task.taskId}-${lane.level}-${descriptor.index}`
