import { CountDeltas } from '../counters/count-deltas.ts'
import { afterCommit } from '../session/after-commit.ts'
import type { Transaction } from '../session/transaction.ts'
import type { Transactions } from '../session/transactions.ts'
import { fillAtHand, fillWaiting, LOW_WATER } from './lanes.ts'
import { lanesWithoutTripwire } from './tripwire.ts'

/** What came of a claim. */
export interface Claimed {
  /** How many partitions it took. */
  readonly claimed: number
  /** Lanes whose windows have to be filled: their tripwire is among what it took. */
  readonly tripped: readonly number[]
}

/** A claim, or the filling of a window behind one: until it is over, others may take from what stands behind a tripwire. */
interface UnderWay {
  /**
   * How many partitions all claims had taken when it began. A claim that may not see what a filling adds, because it was
   * under way before the end of that, counts from where the filling does.
   */
  since: number
  readonly over: Promise<void>
}

/**
 * Windows that are filled after the commit that was handed their tripwire: by a hand-off in one statement, or because
 * somebody else had locked their lane. If this node dies before, the next one to start or to be alone does, or the roller
 * once they are nearly empty.
 *
 * Behind the end of a window the order cannot be told, and LOW_WATER partitions stand behind each tripwire. So claims go on
 * while windows are filled, but never take more than that from the beginning of one that may be handed a tripwire until
 * its window is filled. Filling takes 5 to 20 ms; when everyone who had claimed many waited for it, batches of 50 made
 * 0.70 of the loop by hand instead of 0.82.
 */
export class Filling {
  readonly #transactions: Transactions
  readonly #readied: (count: number) => void
  readonly #failed: (error: unknown) => void
  readonly #claims = new Set<UnderWay>()
  readonly #fillings = new Set<UnderWay>()
  /** What the claims that are under way take at most. */
  #claiming = 0
  /** What all claims so far have taken. */
  #taken = 0
  /** In turn: one that needs much room must not wait for ever. */
  #admission: Promise<void> = Promise.resolve()

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
    await Promise.all([...this.#fillings].map(({ over }) => over))
  }

  /** Runs what takes at most so many partitions, as soon as it cannot come to the end of a window. */
  async claim<Outcome extends Claimed>(most: number, run: () => Promise<Outcome>): Promise<Outcome> {
    if (most === 0) return run()
    const room = Math.min(most, LOW_WATER)
    this.#admission = this.#admission.then(() => this.#admit(room))
    await this.#admission
    // Nothing may be waited for from here to where it is entered: who comes next is admitted after that.
    const began = this.#taken
    const claim = run()
    const over = claim
      .then(
        ({ claimed, tripped }) => {
          this.#taken += claimed
          for (const lane of tripped) this.#fillBehind(lane, began)
        },
        () => {},
      )
      .finally(() => {
        this.#claiming -= room
        this.#claims.delete(underWay)
      })
    const underWay = { since: Math.min(began, ...sinceOf(this.#fillings)), over }
    this.#claims.add(underWay)
    return claim
  }

  async #admit(room: number): Promise<void> {
    while (true) {
      const underWay = [...this.#claims, ...this.#fillings]
      const taken = this.#taken - Math.min(this.#taken, ...sinceOf(underWay))
      if (taken + this.#claiming + room <= LOW_WATER) break
      await Promise.race(underWay.map(({ over }) => over))
    }
    this.#claiming += room
  }

  #fillBehind(lane: number, since: number): void {
    const over = this.fill([lane])
      .then((readied) => this.#readied(readied), this.#failed)
      .finally(() => {
        this.#fillings.delete(underWay)
      })
    const underWay = { since, over }
    this.#fillings.add(underWay)
    for (const claim of this.#claims) claim.since = Math.min(claim.since, since)
  }

  /**
   * Fills the windows that another node was to fill and did not: how many still stand in them nobody knows. Looking for them
   * takes half a millisecond for each lane with a backlog. What cannot be done now is left to the roller.
   */
  fillAbandoned(): Promise<void> {
    return afterCommit(async () => {
      for (const lane of await lanesWithoutTripwire(this.#transactions)) await this.#fillAtHand(lane)
    }, undefined)
  }

  async #fillAtHand(lane: number): Promise<void> {
    const { readied, stillLocked } = await this.#transactions.run(async (tx) => {
      const deltas = new CountDeltas()
      const filled = await fillAtHand(tx, [lane], deltas)
      await deltas.flush(tx)
      return filled
    })
    this.#readied(readied)
    if (stillLocked.length > 0) this.#fillBehind(lane, this.#taken)
  }

  /** Returns how many partitions became ready. Each lane in a transaction of its own, so that none waits for another's. */
  async fill(lanes: readonly number[]): Promise<number> {
    let readied = 0
    for (const lane of lanes) readied += await afterCommit(() => this.fillOne(lane), 0)
    return readied
  }

  /** Rejects when the store is away. */
  fillOne(lane: number): Promise<number> {
    return this.#transactions.run((tx) => fillCounted(tx, lane))
  }
}

const sinceOf = (underWay: Iterable<UnderWay>) => Array.from(underWay, ({ since }) => since)

/** Fills a window in a transaction that does nothing else. */
export async function fillCounted(tx: Transaction, lane: number): Promise<number> {
  const deltas = new CountDeltas()
  const readied = await fillWaiting(tx, lane, deltas)
  await deltas.flush(tx)
  return readied
}
