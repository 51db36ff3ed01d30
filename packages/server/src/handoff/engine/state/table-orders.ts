import { Order, type OrderedLane } from './order.ts'

/** One table of a lane. */
interface OrderedTable<Table> extends OrderedLane<Table> {
  readonly table: string
}

interface LaneWithTables<Table> {
  readonly tables: ReadonlyMap<string, Table>
}

/** Tables whose order is in memory at a time. */
const MOST_ORDERS = 64
/** Lanes that stay in memory for each of them, at least. */
const FEWEST_KEPT = 32

/**
 * Whose turn it is among the lanes that have a table: one order per table that pulls have named lately. One that is not in
 * memory is read from the disk again; no order of a table affects another, or that of all lanes.
 */
export class TableOrders<Table extends OrderedTable<Table>> {
  readonly #lanes: ReadonlyMap<number, LaneWithTables<Table>>
  /** The one used last is the last. */
  readonly #orders = new Map<string, Order<Table>>()

  constructor(lanes: ReadonlyMap<number, LaneWithTables<Table>>) {
    this.#lanes = lanes
  }

  /** For a pull. */
  of(table: string): Order<Table> {
    let order = this.#orders.get(table)
    if (order === undefined) {
      order = this.#begin(table)
      this.#dropOldest()
    } else this.#orders.delete(table)
    this.#orders.set(table, order)
    return order
  }

  /** Its turn changed. */
  put(table: Table): void {
    this.#orders.get(table.table)?.put(table)
  }

  reopen(table: Table): void {
    table.aside.delete(table)
    this.put(table)
  }

  rewind(): void {
    for (const order of this.#orders.values()) order.rewind()
  }

  /** Its lane leaves memory. It may be anywhere in the order, so what is on the disk is read again from the beginning. */
  forget(table: Table): void {
    if (table.heapIndex < 0) return
    const order = this.#orders.get(table.table)
    order?.remove(table)
    order?.rewind()
  }

  /** Leaves at most about so many lanes in all of them together. What is not on the disk as it is here stays. */
  cut(keep: number, isClean: (table: Table) => boolean): void {
    const each = Math.max(FEWEST_KEPT, Math.floor(keep / Math.max(1, this.#orders.size)))
    for (const order of this.#orders.values())
      for (const table of order.cut(each)) if (!isClean(table)) order.put(table)
  }

  /** With what memory knows of it: the disk may be behind. */
  #begin(table: string): Order<Table> {
    const order = new Order<Table>()
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
