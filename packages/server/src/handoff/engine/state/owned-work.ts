import type { OwnerLimited, OwnerLimits } from '../../rules/open-work-limits.ts'
import type { Task } from './memory-rows.ts'

/** A count is used for this long; what was called back since is added to it. */
const COUNT_AGE_MILLIS = 1000
/** A count that would refuse is used for this long, so that refused call-backs do not count every time. */
const REFUSING_AGE_MILLIS = 100

interface Counted {
  tasks: number
  waiting: number
}

/** What a call-back adds. */
export interface Addition {
  /** The owner of the task, or of the new task. */
  readonly owner: string
  readonly opensTask: boolean
  readonly partitions: number
}

/** By producer. Counted when needed, not with every settle, because only call-backs are limited. */
export class OwnedWork {
  readonly #tasks: ReadonlyMap<number, Task>
  #byOwner = new Map<string, Counted>()
  #countedAt = Number.NEGATIVE_INFINITY

  constructor(tasks: ReadonlyMap<number, Task>) {
    this.#tasks = tasks
  }

  /** Returns why the addition is refused, or undefined if it is within the limits. */
  refusal(addition: Addition, limits: OwnerLimits, now: number): OwnerLimited | undefined {
    if (this.#age(now) > COUNT_AGE_MILLIS) this.#count(now)
    const refusal = refusalOf(addition, this.#of(addition.owner), limits)
    if (refusal === undefined || this.#age(now) <= REFUSING_AGE_MILLIS) return refusal
    this.#count(now)
    return refusalOf(addition, this.#of(addition.owner), limits)
  }

  add({ owner, opensTask, partitions }: Addition): void {
    const counted = this.#of(owner)
    if (opensTask) counted.tasks += 1
    counted.waiting += partitions
  }

  /** The clock may be set back. */
  #age(now: number): number {
    return Math.abs(now - this.#countedAt)
  }

  #of(owner: string): Counted {
    let counted = this.#byOwner.get(owner)
    if (counted === undefined) {
      counted = { tasks: 0, waiting: 0 }
      this.#byOwner.set(owner, counted)
    }
    return counted
  }

  #count(now: number): void {
    this.#byOwner = new Map()
    this.#countedAt = now
    for (const { owners, finishedAt, partitions } of this.#tasks.values()) {
      const [owner] = owners
      if (owner === undefined || finishedAt !== null) continue
      const counted = this.#of(owner)
      counted.tasks += 1
      counted.waiting += partitions.ready + partitions.held + partitions.delayed
    }
  }
}

function refusalOf(
  { opensTask, partitions }: Addition,
  counted: Counted,
  { openTasks, waitingPartitions }: OwnerLimits,
): OwnerLimited | undefined {
  if (opensTask && counted.tasks >= openTasks)
    return { kind: 'owner_limited', limit: 'openTasks', most: openTasks, used: counted.tasks }
  if (counted.waiting + partitions > waitingPartitions)
    return {
      kind: 'owner_limited',
      limit: 'waitingPartitions',
      most: waitingPartitions,
      used: counted.waiting,
    }
  return undefined
}
