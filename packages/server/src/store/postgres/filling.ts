import { afterCommit } from './after-commit.ts'
import { CountDeltas } from './count-deltas.ts'
import { fillTripped } from './lanes.ts'
import type { Transactions } from './transactions.ts'

/** So few partitions cannot empty what stands behind a tripwire before its window is filled. */
const SMALL_CLAIM = 64

/** Windows that a hand-off in one statement has to fill after it is committed. */
export class Filling {
  readonly #transactions: Transactions
  readonly #readied: (count: number) => void
  readonly #filling = new Set<Promise<void>>()

  constructor(transactions: Transactions, readied: (count: number) => void) {
    this.#transactions = transactions
    this.#readied = readied
  }

  /** Waits for those that nobody waits for. */
  async idle(): Promise<void> {
    await Promise.all(this.#filling)
  }

  /**
   * Fills the windows whose tripwire was handed out. After a small claim nobody waits for it: there
   * are LOW_WATER partitions behind a tripwire, and writing the next ones takes ten milliseconds. If
   * this node dies before, the roller fills them: what was claimed is counted for their lanes.
   */
  async fill(lanes: readonly number[], claimed: number): Promise<{ readied: number; skipped: boolean }> {
    const nothing = { readied: 0, skipped: false }
    if (lanes.length === 0) return nothing
    const filling = afterCommit(
      () =>
        this.#transactions.run(async (tx) => {
          const deltas = new CountDeltas()
          const filled = await fillTripped(tx, lanes, deltas)
          await deltas.flush(tx)
          return filled
        }),
      nothing,
    )
    if (claimed > SMALL_CLAIM) return filling
    const told = filling
      .then(({ readied }) => this.#readied(readied))
      .finally(() => this.#filling.delete(told))
    this.#filling.add(told)
    return nothing
  }
}
