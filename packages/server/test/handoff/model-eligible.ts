import { claim } from './model-disagreement.ts'
import { type Filter, isWanted } from './model-partition.ts'
import type { ModelPartition, ModelTask } from './model-task.ts'

/** What one pull may be handed, and in which order: levels, and arrival within a lane. */
export class Eligible {
  readonly #shown: Map<ModelPartition, string>
  /** The number of ready partitions of each level and task. */
  readonly #perLevel = new Map<number, Map<ModelTask, number>>()
  /** The number of further leases that each task may have. */
  readonly #slots = new Map<ModelTask, number>()
  /** The partitions of each lane that were never handed out, by arrival. */
  readonly #fresh = new Map<string, ModelPartition[]>()

  readonly #filter: Filter

  constructor(tasks: Iterable<ModelTask>, filter: Filter) {
    this.#filter = filter
    this.#shown = new Map([...tasks].flatMap((task) => [...task.shown()]))
    for (const [{ task }, state] of this.#shown)
      this.#slots.set(
        task,
        (this.#slots.get(task) ?? task.settings.maxLeases ?? Infinity) - (state === 'leased' ? 1 : 0),
      )
    for (const [partition, state] of this.#shown) {
      if (state !== 'ready' || !this.#isFor(partition)) continue
      const { level } = partition.descriptor
      const ready = this.#perLevel.get(level) ?? new Map<ModelTask, number>()
      this.#perLevel.set(level, ready.set(partition.task, (ready.get(partition.task) ?? 0) + 1))
      if (partition.wasHandedOut) continue
      const lane = this.#fresh.get(this.#lineOf(partition)) ?? []
      this.#fresh.set(this.#lineOf(partition), lane)
      lane.push(partition)
    }
    for (const lane of this.#fresh.values()) lane.sort((a, b) => b.arrival - a.arrival)
  }

  get isEmpty(): boolean {
    return this.#lowest === null
  }

  take(partition: ModelPartition, name: string): void {
    const { level } = partition.descriptor
    const shown = this.#shown.get(partition)
    claim(shown === 'ready', `${name} was handed out while it was ${shown}`)
    claim(this.#isFor(partition), `${name} was handed to a pull that did not want it`)
    claim(level === this.#lowest, `${name} went before a lower level`)
    claim((this.#slots.get(partition.task) ?? 0) > 0, `${name} is one lease more than its task may have`)
    if (!partition.wasHandedOut) {
      const first = this.#fresh.get(this.#lineOf(partition))?.pop()
      claim(first === partition, `${name} went before one of its lane that had come earlier`)
    }
    this.#shown.set(partition, 'leased')
    const ready = this.#perLevel.get(level)
    ready?.set(partition.task, (ready.get(partition.task) ?? 0) - 1)
    this.#slots.set(partition.task, (this.#slots.get(partition.task) ?? 0) - 1)
  }

  /** The lowest level with something to hand out. */
  get #lowest(): number | null {
    const levels = [...this.#perLevel].filter(([, ready]) =>
      [...ready].some(([task, count]) => count > 0 && (this.#slots.get(task) ?? 0) > 0),
    )
    return levels.length === 0 ? null : Math.min(...levels.map(([level]) => level))
  }

  #isFor({ task, descriptor }: ModelPartition): boolean {
    return isWanted(task.taskId, descriptor.computeTableName, this.#filter)
  }

  /** Each named table has its own queue in a lane. */
  #lineOf({ task, descriptor }: ModelPartition): string {
    const lane = `${descriptor.level} ${task.taskId}`
    return this.#filter.tables === null ? lane : `${lane} ${descriptor.computeTableName}`
  }
}
