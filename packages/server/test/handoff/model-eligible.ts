import type { PullOrder } from '../../src/handoff/store.ts'
import { claim } from './model-claim.ts'
import type { ModelPartition, ModelTask } from './model-task.ts'

type Filter = Pick<PullOrder, 'tables' | 'tasks'>

/** What one pull may be handed, and in which order: levels, and arrival within a lane. */
export class Eligible {
  readonly #shown: Map<ModelPartition, string>
  readonly #perLevel = new Map<number, number>()
  /** Of each lane those never handed out, by arrival. */
  readonly #fresh = new Map<string, ModelPartition[]>()

  readonly #filter: Filter

  constructor(tasks: Iterable<ModelTask>, filter: Filter) {
    this.#filter = filter
    this.#shown = new Map([...tasks].flatMap((task) => [...task.shown()]))
    for (const [partition, state] of this.#shown) {
      if (state !== 'ready' || !this.#isFor(partition)) continue
      const { level } = partition.descriptor
      this.#perLevel.set(level, (this.#perLevel.get(level) ?? 0) + 1)
      if (partition.wasHandedOut) continue
      const lane = this.#fresh.get(this.#lineOf(partition)) ?? []
      this.#fresh.set(this.#lineOf(partition), lane)
      lane.push(partition)
    }
    for (const lane of this.#fresh.values()) lane.sort((a, b) => b.arrival - a.arrival)
  }

  get isEmpty(): boolean {
    return this.#perLevel.size === 0
  }

  take(partition: ModelPartition, name: string): void {
    const { level } = partition.descriptor
    const shown = this.#shown.get(partition)
    claim(shown === 'ready', `${name} was handed out while it was ${shown}`)
    claim(this.#isFor(partition), `${name} was handed to a pull that did not want it`)
    claim(level === Math.min(...this.#perLevel.keys()), `${name} went before a lower level`)
    if (!partition.wasHandedOut) {
      const first = this.#fresh.get(this.#lineOf(partition))?.pop()
      claim(first === partition, `${name} went before one of its lane that had come earlier`)
    }
    this.#shown.set(partition, 'leased')
    const left = (this.#perLevel.get(level) ?? 0) - 1
    if (left === 0) this.#perLevel.delete(level)
    else this.#perLevel.set(level, left)
  }

  #isFor({ task, descriptor }: ModelPartition): boolean {
    const { tables, tasks } = this.#filter
    if (tasks !== null && !tasks.includes(task.taskId)) return false
    return tables === null || tables.includes(descriptor.computeTableName)
  }

  /** Each table that is named has a line of its own in a lane. */
  #lineOf({ task, descriptor }: ModelPartition): string {
    const lane = `${descriptor.level} ${task.taskId}`
    return this.#filter.tables === null ? lane : `${lane} ${descriptor.computeTableName}`
  }
}
