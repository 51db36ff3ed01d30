import { afterCommit } from './after-commit.ts'
import { CountDeltas } from './count-deltas.ts'
import { fillWaiting } from './lanes.ts'
import type { Transaction } from './transaction.ts'
import type { Transactions } from './transactions.ts'

/** So few partitions cannot empty what stands behind a tripwire before its window is filled. */
const SMALL_CLAIM = 64

/**
 * Windows that are filled after the commit that was handed their tripwire: by a hand-off in one statement, or because
 * somebody else had locked their lane. If this node dies before, the roller fills them once they are nearly empty.
 */
export class Filling {
  readonly #transactions: Transactions
  readonly #readied: (count: number) => void
  readonly #failed: (error: unknown) => void
  readonly #filling = new Set<Promise<void>>()

  constructor(
    transactions: Transactions,
    readied: (count: number) => void,
    failed: (error: unknown) => void,
  ) {
    this.#transactions = transactions
    this.#readied = readied
    this.#failed = failed
  }

  /** Waits for those that nobody waits for. */
  async idle(): Promise<void> {
    await Promise.all(this.#filling)
  }

  /**
   * After a small claim nobody waits for it: there are LOW_WATER partitions behind a tripwire, and writing the next
   * ones takes ten milliseconds.
   */
  async afterClaimOf(claimed: number, lanes: readonly number[]): Promise<number> {
    if (lanes.length === 0) return 0
    const filling = this.fill(lanes)
    if (claimed > SMALL_CLAIM) return filling
    const told = filling
      .then((readied) => this.#readied(readied), this.#failed)
      .finally(() => this.#filling.delete(told))
    this.#filling.add(told)
    return 0
  }

  /** Returns how many partitions became ready. Each lane in a transaction of its own, so that nobody waits in circles. */
  async fill(lanes: readonly number[]): Promise<number> {
    let readied = 0
    for (const lane of lanes) readied += await afterCommit(() => this.fillOne(lane), 0)
    return readied
  }

  /** Rejects when the store is away. */
  fillOne(lane: number, window?: number): Promise<number> {
    return this.#transactions.run((tx) => fillCounted(tx, lane, window))
  }
}

/** Fills a window in a transaction that does nothing else. */
export async function fillCounted(tx: Transaction, lane: number, window?: number): Promise<number> {
  const deltas = new CountDeltas()
  const readied = await fillWaiting(tx, lane, deltas, window)
  await deltas.flush(tx)
  return readied
}
