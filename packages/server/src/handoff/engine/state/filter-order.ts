import type { Filter } from '../../pull-filters.ts'
import { cost } from '../../rules/fair-order.ts'
import { weightOfTask } from '../../rules/policy.ts'
import type { Lane } from './memory-rows.ts'
import type { Order } from './order.ts'

/** A name counts as this many tags, and as one more for each of these characters: about 100 bytes each. */
const TAGS_PER_NAME = 10
const CHARACTERS_PER_TAG = 10

/** The virtual time of one level, and the tags of the lanes that were served on it. */
interface Shares {
  virtual: bigint
  readonly tags: Map<number, bigint>
  /** Tags that are not above the virtual time are dropped when there are this many. */
  mostTags: number
}

const FEWEST_TAGS = 64

/** Fair queuing among the pulls with the same filter. In memory only: it starts afresh with the leader. */
export abstract class FilterOrder {
  readonly tables: ReadonlySet<string> | null
  protected readonly order: Order
  readonly #sizeOfNames: number
  readonly #levels = new Map<number, Shares>()

  constructor(order: Order, { tables, tasks }: Filter) {
    this.order = order
    this.tables = tables === null ? null : new Set(tables)
    this.#sizeOfNames = sizeOf(tables ?? []) + sizeOf(tasks ?? [])
  }

  abstract next(): Lane | undefined
  /** The likely sources of the next partitions. */
  abstract ahead(count: number): Lane[]

  get size(): number {
    let size = this.#sizeOfNames
    for (const { tags } of this.#levels.values()) size += tags.size
    return size
  }

  /** Charges a partition of a lane that is handed out. */
  charge(lane: Lane, recordCount: number): void {
    const shares = this.#sharesOf(lane.level)
    const tag = this.startOf(lane)
    if (tag > shares.virtual) shares.virtual = tag
    shares.tags.set(lane.id, shares.virtual + cost(recordCount, weightOfTask(lane.parentTask)))
    if (shares.tags.size <= shares.mostTags) return
    for (const [id, one] of shares.tags) if (one <= shares.virtual) shares.tags.delete(id)
    shares.mostTags = Math.max(FEWEST_TAGS, 2 * shares.tags.size)
  }

  /** Undefined if the lane was not served lately. */
  protected tagOf({ level, id }: Lane): bigint | undefined {
    return this.#levels.get(level)?.tags.get(id)
  }

  protected startOf(lane: Lane): bigint {
    return this.tagOf(lane) ?? this.virtualOf(lane.level)
  }

  protected virtualOf(level: number): bigint {
    return this.#levels.get(level)?.virtual ?? 0n
  }

  /** Nothing waits, servable or not: unequal shares are forgotten. */
  protected drain(): void {
    this.#levels.clear()
  }

  #sharesOf(level: number): Shares {
    let shares = this.#levels.get(level)
    if (shares === undefined) {
      shares = { virtual: 0n, tags: new Map(), mostTags: FEWEST_TAGS }
      this.#levels.set(level, shares)
    }
    return shares
  }
}

const sizeOf = (names: readonly string[]): number =>
  names.reduce((size, { length }) => size + TAGS_PER_NAME + Math.ceil(length / CHARACTERS_PER_TAG), 0)
