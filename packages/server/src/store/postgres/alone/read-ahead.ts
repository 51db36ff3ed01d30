import type { Names } from '../rows/names.ts'
import type { Transactions } from '../session/transactions.ts'
import type { Filling } from '../windows/filling.ts'
import { type FrontPartition, KnownFront } from './known-front.ts'

export interface ReadAheadParts {
  readonly transactions: Transactions
  readonly names: Names
  readonly filling: Filling
  /** Told how many partitions became ready. */
  readonly readied: (count: number) => void
}

/** One takes 5 to 20 ms, and whoever ends a stint waits for all. */
const FILLED_AT_ONCE = 4

/** So many are kept at hand: while the next ones are read and windows filled, they have to last. */
const AT_HAND = 1500

/**
 * Keeps the known front supplied. A window is filled when its tripwire was handed out, and before that when its end is in the
 * way of reading: batches of 50 come there sooner than a window is filled. What is filled early is what will be handed out
 * soon, so windows do not grow by that, however often stints begin and end.
 */
export class ReadAhead {
  readonly #parts: ReadAheadParts
  readonly #front: KnownFront
  /** Lanes whose tripwire was handed out. */
  readonly #tripped = new Set<number>()
  #reading: Promise<void> | undefined
  #isOver = false

  constructor(parts: ReadAheadParts) {
    this.#parts = parts
    this.#front = new KnownFront(parts.transactions, parts.names)
  }

  get length(): number {
    return this.#front.length
  }

  get isDue(): boolean {
    return this.#front.length < AT_HAND || this.#tripped.size > 0
  }

  async begin(): Promise<void> {
    // Behind a window that is about to be filled the order cannot be told.
    await this.#parts.filling.idle()
    await this.#front.readOn()
  }

  take(count: number): FrontPartition[] {
    const taken = this.#front.take(count)
    for (const { row } of taken) if (row['refill'] === true) this.#tripped.add(row['lane'] as number)
    return taken
  }

  /** Fills windows and reads on; who comes while that is under way waits for its end. */
  readOn(): Promise<void> {
    this.#reading ??= this.#fillAndRead().finally(() => {
      this.#reading = undefined
    })
    return this.#reading
  }

  /** Windows whose tripwire was handed out are filled when it resolves, and nothing more is read. */
  async end(): Promise<void> {
    this.#isOver = true
    await this.#reading
    await this.readOn()
  }

  async #fillAndRead(): Promise<void> {
    let isMore = true
    while (isMore) {
      while (this.#tripped.size > 0)
        await Promise.all([...this.#tripped].slice(0, FILLED_AT_ONCE).map((lane) => this.#fill(lane)))
      isMore = !this.#isOver && this.#front.length < AT_HAND && (await this.#readSome())
    }
  }

  /** False when there is nothing more. */
  async #readSome(): Promise<boolean> {
    const isMore = await this.#front.readOn()
    const { laneInTheWay } = this.#front
    if (laneInTheWay === undefined) return isMore
    await this.#fill(laneInTheWay)
    return true
  }

  async #fill(lane: number): Promise<void> {
    this.#tripped.delete(lane)
    this.#parts.readied(await this.#parts.filling.fillOne(lane))
    this.#front.wasFilled(lane)
  }
}
