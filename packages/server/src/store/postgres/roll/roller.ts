import { anyUnfolded } from '../counters/unfolded.ts'
import { dropStraysInFront } from '../queues/strays.ts'
import { asUnavailable } from '../session/failures.ts'
import { statement } from '../session/statement.ts'
import type { Transactions } from '../session/transactions.ts'
import { Roll } from './roll.ts'
import { settleLanes } from './settle-lanes.ts'
import { cancelLate } from './task-steps.ts'

/**
 * How long counters may stand unfolded. Nobody waits for it: who needs them exact folds them first. A turn costs some
 * milliseconds, however little there is to fold, so nodes that share a database take turns: with a turn of each node
 * every 100 ms two nodes made 5,135 instead of 5,504 pairs a second and three 3,793 instead of 4,062 (medians of four).
 */
const FOLD_MILLIS = 250

/** Rounds of one turn: filling and holding lanes counts too, but never leads to much more of it. */
const ROUNDS = 10

/**
 * Dead rows of the small tables are swept up after so many turns, 3 seconds of steady work, and their index entries
 * with them. count_delta is written with every commit and read whole; every claim begins at the front of `ready`,
 * where what was handed out lies. The server's own vacuum comes once a minute at most.
 */
const TURNS_BETWEEN_VACUUMS = 12
const vacuum = statement(
  'vacuum-small-tables',
  'VACUUM (SKIP_LOCKED, INDEX_CLEANUP ON) baton.count_delta, baton.ready, baton.due, baton.note',
)

/**
 * Folds counters in and draws the conclusions: levels open, windows fill, tasks are done. Every node
 * has one; whoever holds the lock rolls for all.
 */
export class Roller {
  readonly #transactions: Transactions
  readonly #readied: (count: number) => void
  readonly #failed: (error: unknown) => void
  #timer: NodeJS.Timeout | undefined
  #turn: Promise<unknown> = Promise.resolve()
  #turns = 0
  #stopped = false

  constructor(
    transactions: Transactions,
    readied: (count: number) => void,
    failed: (error: unknown) => void,
  ) {
    this.#transactions = transactions
    this.#readied = readied
    this.#failed = failed
  }

  /** Something was counted. */
  kick(): void {
    if (this.#stopped) return
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      this.#turn = this.#rollNow(false).then(
        (readied = 0) => {
          if (readied > 0) this.#readied(readied)
        },
        (error: unknown) => {
          if (asUnavailable(error) === undefined) this.#failed(error)
          // Counters stay as they are and keep until later.
          this.kick()
        },
      )
    }, FOLD_MILLIS)
  }

  /** Returns how many partitions became ready, for the caller to pass on; counters of all that was committed before are folded in. */
  async settleUp(): Promise<number> {
    const [row] = await this.#transactions.runOne(anyUnfolded)
    if (row?.['unfolded'] !== true) return 0
    const readied = await this.#rollNow(true)
    return readied ?? 0
  }

  async stop(): Promise<void> {
    this.#stopped = true
    clearTimeout(this.#timer)
    await this.#turn
  }

  /** Undefined when it is somebody else's turn. */
  async #rollNow(wait: boolean): Promise<number | undefined> {
    const readied = await this.#transactions.run(
      async (tx) => {
        const roll = wait ? await Roll.begin(tx) : await Roll.beginTurn(tx, FOLD_MILLIS)
        if (roll === undefined) return undefined
        let sum = 0
        const lanes = await roll.foldAll(wait)
        if (lanes.length > 0) sum += await settleLanes(roll, lanes)
        for (
          let round = 0, before = lanes.length;
          round < ROUNDS && roll.touchedLanes.length > before;
          round += 1
        ) {
          const more = roll.touchedLanes.slice(before)
          before = roll.touchedLanes.length
          sum += await settleLanes(roll, more)
        }
        await cancelLate(roll)
        await roll.flush()
        return sum
      },
      { kind: 'relaxed' },
    )
    if (readied === undefined) this.kick()
    else await this.#sweepUp()
    return readied
  }

  async #sweepUp(): Promise<void> {
    this.#turns += 1
    if (this.#turns < TURNS_BETWEEN_VACUUMS) return
    this.#turns = 0
    for (const work of [dropStraysInFront, vacuum]) {
      try {
        await this.#transactions.runOne(work)
      } catch (error) {
        // What is folded is folded; this is done again after some more turns.
        if (asUnavailable(error) === undefined) this.#failed(error)
      }
    }
  }
}
