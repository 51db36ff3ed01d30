import type { PulledPartition } from '../../src/handoff/partition.ts'
import { type Driver, one } from '../store/conformance/driver.ts'
import { costOf, type FairnessEvent } from './fairness.ts'

export type SimulationStep =
  | { readonly kind: 'call-back'; readonly task: string; readonly recordCounts: readonly number[] }
  | { readonly kind: 'pull'; readonly count: number }
  | { readonly kind: 'settle'; readonly pick: number; readonly outcome: 'done' | 'failed' | 'released' }
  | { readonly kind: 'pause' | 'resume'; readonly task: string }

interface Simulated {
  readonly task: string
  readonly records: number
  leaseId: string
  /** Was not handed out yet. */
  isFirst: boolean
  /** How often in a row it was released. */
  releases: number
  place: 'waiting' | 'delayed' | 'leased' | 'done'
}

/**
 * Runs a mix of tasks on one level of a store, and records the events for the fairness check. Failed
 * partitions come back at once, so that failing tasks compete as much as possible.
 */
export class FairnessSimulation {
  readonly events: FairnessEvent[] = []
  readonly largest = new Map<string, number>()
  /** Everything handed out by task, whether for the first time or not. */
  readonly given = new Map<string, number>()
  readonly firstHandOuts: string[] = []
  readonly #driver: Driver
  readonly #partitions = new Map<string, Simulated>()
  readonly #counts = new Map<string, number>()
  readonly #paused = new Set<string>()
  readonly #working = new Set<string>()

  constructor(driver: Driver) {
    this.#driver = driver
  }

  async take(step: SimulationStep): Promise<void> {
    switch (step.kind) {
      case 'call-back':
        return this.#callBack(step.task, step.recordCounts)
      case 'pull':
        for (const handedOut of (await this.#driver.pull({ batch: step.count })).partitions)
          this.#note(handedOut)
        return
      case 'settle': {
        const leased = [...this.#partitions.values()].filter(({ place }) => place === 'leased')
        const partition = leased[step.pick % leased.length]
        return partition === undefined ? undefined : this.settle(partition, step.outcome)
      }
      default:
        return this.#setPaused(step.task, step.kind === 'pause')
    }
  }

  leasedOf(task: string): Simulated[] {
    return [...this.#partitions.values()].filter((each) => each.task === task && each.place === 'leased')
  }

  async settle(partition: Simulated, outcome: 'done' | 'failed' | 'released'): Promise<void> {
    await this.#driver.settle(partition.leaseId, { outcome, retryAfterMillis: 0 })
    await this.#driver.sweep()
    partition.releases = outcome === 'released' ? partition.releases + 1 : 0
    // From the third release in a row on, the back-off is a minimum.
    partition.place = outcome === 'done' ? 'done' : partition.releases > 2 ? 'delayed' : 'waiting'
    this.#update(partition.task)
  }

  async #callBack(task: string, recordCounts: readonly number[]): Promise<void> {
    const first = this.#counts.get(task) ?? 0
    this.#counts.set(task, first + recordCounts.length)
    await this.#driver.callBack(
      task,
      recordCounts.map((recordCount, at) => one(0, first + at, { recordCount })),
    )
    for (const [at, records] of recordCounts.entries()) {
      const partition = { task, records, leaseId: '', isFirst: true, releases: 0, place: 'waiting' as const }
      this.#partitions.set(`${task}-${first + at}`, partition)
      this.largest.set(task, Math.max(this.largest.get(task) ?? 0, costOf(records)))
    }
    this.#update(task)
  }

  #note({ taskId, index, recordCount, lease }: PulledPartition): void {
    const partition = this.#partitions.get(`${taskId}-${index}`)
    if (partition?.place !== 'waiting') throw new Error(`${taskId}-${index} was handed out, but did not wait`)
    const cost = costOf(recordCount)
    this.given.set(taskId, (this.given.get(taskId) ?? 0) + cost)
    this.events.push({ kind: 'given', task: taskId, cost })
    if (partition.isFirst) this.firstHandOuts.push(`${taskId}-${index}`)
    Object.assign(partition, { place: 'leased', isFirst: false, leaseId: lease?.id ?? '' })
    this.#update(taskId)
  }

  async #setPaused(task: string, paused: boolean): Promise<void> {
    const result = await this.#driver.control({ verb: paused ? 'pause' : 'resume', taskId: task })
    if (result.kind !== 'applied' || paused === this.#paused.has(task)) return
    if (paused) this.#paused.add(task)
    else this.#paused.delete(task)
    this.#update(task)
  }

  #update(task: string): void {
    const waits = [...this.#partitions.values()].some(
      (partition) => partition.task === task && partition.place === 'waiting',
    )
    const has = waits && !this.#paused.has(task)
    if (has === this.#working.has(task)) return
    if (has) this.#working.add(task)
    else this.#working.delete(task)
    this.events.push({ kind: 'work', task, has })
  }
}
