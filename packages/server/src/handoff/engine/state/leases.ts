import { SetsByKey } from '../../sets-by-key.ts'
import { Heap } from './heap.ts'
import type { Partition } from './memory-rows.ts'
import type { Order } from './order.ts'

const byEnd = (a: Partition, b: Partition): number => (a.dueAt ?? 0) - (b.dueAt ?? 0) || a.id - b.id

/** All leases, by their end and by their holder. Tells the order, which counts them by table. */
export class Leases {
  readonly #order: Order
  readonly #byEnd = new Heap<Partition>(byEnd)
  readonly #byHolder = new SetsByKey<string, Partition>()

  constructor(order: Order) {
    this.#order = order
  }

  get size(): number {
    return this.#byEnd.size
  }

  /** When the next lease ends. */
  get nextEnd(): number | null {
    return this.#byEnd.first?.dueAt ?? null
  }

  /** Adds a lease, or moves it after it was renewed. */
  put(partition: Partition): void {
    const isNew = partition.heapIndex < 0
    this.#byEnd.put(partition)
    if (!isNew) return
    this.#order.leaseBegan(partition)
    const { holder } = partition
    if (holder !== null) this.#byHolder.add(holder, partition)
  }

  /** Call it before the holder changes. */
  remove(partition: Partition): void {
    if (partition.heapIndex < 0) return
    this.#byEnd.remove(partition)
    this.#order.leaseEnded(partition)
    if (partition.holder !== null) this.#byHolder.remove(partition.holder, partition)
  }

  /** At most `limit`, the first to end first. */
  firstToEnd(limit: number): Partition[] {
    return this.#byEnd.inOrder(limit)
  }

  /** Those that have ended and are not removed yet. */
  ended(now: number, limit: number): Partition[] {
    return this.firstToEnd(limit).filter(({ dueAt }) => (dueAt ?? 0) <= now)
  }

  /** The instances that hold leases. */
  get holders(): { readonly name: string; readonly leases: number }[] {
    return [...this.#byHolder].map(([name, { size }]) => ({ name, leases: size }))
  }

  countOf(holder: string): number {
    return this.#byHolder.get(holder)?.size ?? 0
  }

  /** Leases of an instance, in any order. */
  of(holder: string): Iterable<Partition> {
    return this.#byHolder.get(holder) ?? []
  }

  /** Leases of an instance, at most `limit`, the first to end first. */
  heldBy(holder: string, limit: number): Partition[] {
    const held = [...(this.#byHolder.get(holder) ?? [])]
    return held.toSorted(byEnd).slice(0, limit)
  }
}
