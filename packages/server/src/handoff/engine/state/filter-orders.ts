import type { Filter } from '../../pull-filters.ts'
import type { FilterOrder } from './filter-order.ts'
import type { Task } from './memory-rows.ts'
import type { Order } from './order.ts'
import { TableFilterOrder } from './table-filter-order.ts'
import { TaskFilterOrder } from './task-filter-order.ts'

/** The maximum number of tags and candidates of all orders. Those used longest ago are dropped. */
const MOST_TAGS = 1_000_000

export class FilterOrders {
  readonly #order: Order
  readonly #tasksByName: ReadonlyMap<string, Task>
  /** The most recently used is last. */
  readonly #orders = new Map<string, FilterOrder>()
  readonly #sizes = new Map<FilterOrder, number>()
  #total = 0

  constructor(order: Order, tasksByName: ReadonlyMap<string, Task>) {
    this.#order = order
    this.#tasksByName = tasksByName
  }

  /** Whether any open work has one of the names. If not, a pull leaves nothing in memory. */
  haveWork({ tables, tasks }: Filter): boolean {
    const hasWork = (name: string) => (this.#order.tables.get(name)?.lanesOf.size ?? 0) > 0
    return (
      (tables === null || tables.some(hasWork)) &&
      (tasks === null || tasks.some((name) => this.#tasksByName.has(name)))
    )
  }

  of({ tables, tasks }: Filter): FilterOrder {
    const sorted = { tables: sortedNames(tables), tasks: sortedNames(tasks) }
    const name = JSON.stringify([sorted.tables, sorted.tasks])
    let order = this.#orders.get(name)
    if (order === undefined)
      order =
        sorted.tasks === null
          ? new TableFilterOrder(this.#order, sorted.tables ?? [])
          : new TaskFilterOrder(this.#order, this.#tasksByName, sorted.tasks, sorted.tables)
    else this.#orders.delete(name)
    this.#orders.set(name, order)
    return order
  }

  /** Call it after an order was used. */
  used(order: FilterOrder): void {
    const { size } = order
    this.#total += size - (this.#sizes.get(order) ?? 0)
    this.#sizes.set(order, size)
    for (const [name, oldest] of this.#orders) {
      if ((this.#total <= MOST_TAGS && this.#orders.size <= MOST_ORDERS) || oldest === order) return
      this.#remove(name, oldest)
    }
  }

  /** It starts afresh when it is used again. */
  drop(order: FilterOrder): void {
    for (const [name, one] of this.#orders) if (one === order) this.#remove(name, one)
  }

  #remove(name: string, order: FilterOrder): void {
    this.#orders.delete(name)
    this.#total -= this.#sizes.get(order) ?? 0
    this.#sizes.delete(order)
  }
}

const MOST_ORDERS = 10_000

const sortedNames = (names: readonly string[] | null): string[] | null =>
  names === null ? null : [...new Set(names)].toSorted()
