import type { Lane, LaneTable } from './memory.ts'
import { Order } from './order.ts'

/** Tables whose order is in memory at a time. */
const MOST_ORDERS = 64
/** Lanes that stay in memory for each of them, at least. */
const FEWEST_KEPT = 32

/**
 * Whose turn it is among the lanes that have a table: one order per table that pulls have named lately. One that is not in
 * memory is read from the disk again; no order of a table affects another, or that of all lanes.
 */
export class TableOrders {
  readonly #lanes: ReadonlyMap<number, Lane>
  /** The one used last is the last. */
  readonly #orders = new Map<string, Order<LaneTable>>()

  constructor(lanes: ReadonlyMap<number, Lane>) {
    this.#lanes = lanes
  }

  /** For a pull. */
  of(table: string): Order<LaneTable> {
    let order = this.#orders.get(table)
    if (order === undefined) {
      order = this.#begin(table)
      this.#dropOldest()
    } else this.#orders.delete(table)
    this.#orders.set(table, order)
    return order
  }

  /** Its turn changed. */
  put(table: LaneTable): void {
    this.#orders.get(table.table)?.put(table)
  }

  reopen(table: LaneTable): void {
    table.aside.delete(table)
    this.put(table)
  }

  rewind(): void {
    for (const order of this.#orders.values()) order.rewind()
  }

  /** Its lane leaves memory. It may be anywhere in the order, so what is on the disk is read again from the beginning. */
  forget(table: LaneTable): void {
    if (table.heapIndex < 0) return
    const order = this.#orders.get(table.table)
    order?.remove(table)
    order?.rewind()
  }

  /** Leaves at most about so many lanes in all of them together. */
  cut(keep: number): void {
    const each = Math.max(FEWEST_KEPT, Math.floor(keep / Math.max(1, this.#orders.size)))
    for (const order of this.#orders.values()) order.cut(each)
  }

  /** With what memory knows of it: the disk may be behind. */
  #begin(table: string): Order<LaneTable> {
    const order = new Order<LaneTable>()
    for (const { tables } of this.#lanes.values()) {
      const one = tables.get(table)
      if (one !== undefined && one.turn !== null) order.put(one)
    }
    return order
  }

  #dropOldest(): void {
    if (this.#orders.size < MOST_ORDERS) return
    const [oldest] = this.#orders.keys()
    if (oldest === undefined) return
    this.#orders.get(oldest)?.clear()
    this.#orders.delete(oldest)
  }
}
