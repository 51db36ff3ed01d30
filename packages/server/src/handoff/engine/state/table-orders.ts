import { costOf } from '../../rules/fair-order.ts'
import { type HeapLane, LaneHeap } from './lane-heap.ts'

/** One table of a lane. */
interface OrderedTable<Table> extends HeapLane<Table> {
  readonly table: string
}

interface LaneWithTables<Table> {
  readonly tables: ReadonlyMap<string, Table>
}

/** The maximum number of table orders in memory. */
const MOST_ORDERS = 64
/** The minimum number of lanes kept in memory for each of them. */
const FEWEST_KEPT = 32

/**
 * Determines which lane is next among those that have a table, with one order per table that pulls named
 * recently. An order that is not in memory is read from the disk. Table orders do not affect each other or
 * the order of all lanes.
 */
export class TableOrders<Table extends OrderedTable<Table>> {
  readonly #lanes: ReadonlyMap<number, LaneWithTables<Table>>
  /** The most recently used order is last. */
  readonly #orders = new Map<string, LaneHeap<Table>>()

  constructor(lanes: ReadonlyMap<number, LaneWithTables<Table>>) {
    this.#lanes = lanes
  }

  /** Returns the order of a table for a pull. */
  of(table: string): LaneHeap<Table> {
    let order = this.#orders.get(table)
    if (order === undefined) {
      order = this.#begin(table)
      this.#dropOldest()
    } else this.#orders.delete(table)
    this.#orders.set(table, order)
    return order
  }

  /** Updates a table whose turn changed. */
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

  /**
   * Removes a table whose lane is evicted. It may be anywhere in the order, so the disk is read again from
   * the start.
   */
  forget(table: Table): void {
    if (table.heapIndex < 0) return
    const order = this.#orders.get(table.table)
    order?.remove(table)
    order?.rewind()
  }

  /** Keeps about this many lanes in all orders together, plus all unflushed lanes. */
  cut(keep: number, isClean: (table: Table) => boolean): void {
    const each = Math.max(FEWEST_KEPT, Math.floor(keep / Math.max(1, this.#orders.size)))
    for (const order of this.#orders.values())
      for (const table of order.cut(each)) if (!isClean(table)) order.put(table)
  }

  /** Starts with the lanes in memory, because the disk may be behind. */
  #begin(table: string): LaneHeap<Table> {
    const order = new LaneHeap<Table>()
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

/** The maximum number of filters whose rotation is kept. A dropped rotation starts over with equal shares. */
const MOST_ROTATIONS = 1000

/**
 * Start-time fair queuing between the tables or tasks that a pull names: of those with work on the level, the
 * next is the table or task that got the fewest records from pulls with the same filter. In memory only: a
 * restart resets all shares.
 */
export class Rotation {
  readonly #tags = new Map<string, number>()
  #virtual = 0

  /** Returns the next member: the first named if several got equally few records. */
  next<Member extends { readonly name: string }>(members: readonly Member[]): Member | undefined {
    let first: Member | undefined
    for (const member of members)
      if (first === undefined || this.#start(member.name) < this.#start(first.name)) first = member
    return first
  }

  charge(name: string, recordCount: number, weight: number): void {
    const start = this.#start(name)
    this.#virtual = start
    this.#tags.set(name, start + costOf(recordCount, weight))
  }

  #start(name: string): number {
    return Math.max(this.#tags.get(name) ?? 0, this.#virtual)
  }
}

export class Rotations {
  readonly #rotations = new Map<string, Rotation>()

  of(filter: string): Rotation {
    const rotation = this.#rotations.get(filter) ?? new Rotation()
    this.#rotations.delete(filter)
    this.#rotations.set(filter, rotation)
    if (this.#rotations.size > MOST_ROTATIONS) {
      const [oldest] = this.#rotations.keys()
      if (oldest !== undefined) this.#rotations.delete(oldest)
    }
    return rotation
  }
}
