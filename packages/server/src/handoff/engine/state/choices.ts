import type { Choice, Names } from './choice.ts'
import type { Task } from './memory-rows.ts'
import type { Order } from './order.ts'
import { TableChoice } from './table-choice.ts'
import { TaskChoice } from './task-choice.ts'

/** The maximum number of tags and candidates of all choices. The choices used longest ago are dropped. */
const MOST_TAGS = 1_000_000

/** The choices used lately, by their names. */
export class Choices {
  readonly #order: Order
  readonly #tasksByName: ReadonlyMap<string, Task>
  /** The most recently used is last. */
  readonly #choices = new Map<string, Choice>()
  /** The sizes as of their last use. */
  readonly #sizes = new Map<Choice, number>()
  #total = 0

  constructor(order: Order, tasksByName: ReadonlyMap<string, Task>) {
    this.#order = order
    this.#tasksByName = tasksByName
  }

  /** Whether any open work has one of the names. If not, a pull leaves nothing in memory. */
  haveWork({ tables, tasks }: Names): boolean {
    const hasWork = (name: string) => (this.#order.tables.get(name)?.lanesOf.size ?? 0) > 0
    return (
      (tables === null || tables.some(hasWork)) &&
      (tasks === null || tasks.some((name) => this.#tasksByName.has(name)))
    )
  }

  of({ tables, tasks }: Names): Choice {
    const sorted = { tables: sortedNames(tables), tasks: sortedNames(tasks) }
    const name = JSON.stringify([sorted.tables, sorted.tasks])
    let choice = this.#choices.get(name)
    if (choice === undefined)
      choice =
        sorted.tasks === null
          ? new TableChoice(this.#order, sorted.tables ?? [])
          : new TaskChoice(this.#order, this.#tasksByName, sorted.tasks, sorted.tables)
    else this.#choices.delete(name)
    this.#choices.set(name, choice)
    return choice
  }

  /** Call it after a choice was used. */
  used(choice: Choice): void {
    const { size } = choice
    this.#total += size - (this.#sizes.get(choice) ?? 0)
    this.#sizes.set(choice, size)
    for (const [name, oldest] of this.#choices) {
      if ((this.#total <= MOST_TAGS && this.#choices.size <= MOST_CHOICES) || oldest === choice) return
      this.#remove(name, oldest)
    }
  }

  /** It starts afresh when it is used again. */
  drop(choice: Choice): void {
    for (const [name, one] of this.#choices) if (one === choice) this.#remove(name, one)
  }

  #remove(name: string, choice: Choice): void {
    this.#choices.delete(name)
    this.#total -= this.#sizes.get(choice) ?? 0
    this.#sizes.delete(choice)
  }
}

const MOST_CHOICES = 10_000

const sortedNames = (names: readonly string[] | null): string[] | null =>
  names === null ? null : [...new Set(names)].toSorted()
