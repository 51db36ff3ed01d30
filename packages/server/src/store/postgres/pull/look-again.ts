import { setTimeout as sleep } from 'node:timers/promises'
import { earlier } from '../../../handoff/rules/earlier.ts'
import { type PullOrder, type PullResult, StoreUnavailable } from '../../../handoff/store.ts'
import { NOTHING } from '../../../handoff/waiting-pulls.ts'
import { CountDeltas } from '../counters/count-deltas.ts'
import { dropStraysInFront } from '../queues/strays.ts'
import type { Roller } from '../roll/roller.ts'
import { statement } from '../session/statement.ts'
import type { Transactions } from '../session/transactions.ts'
import type { Filling } from '../windows/filling.ts'
import { front } from './claim.ts'
import type { PassedOver } from './passed-over.ts'
import { appetiteOf, claimedBy, type Pull, type Pulled } from './pull.ts'

/** How long a pull that met only rows locked by others waits before it looks again. */
const LOOK_AGAIN_MILLIS = 3

/** Why a pull may have come out empty although there is work. */
const reasons = statement(
  'reasons-for-nothing',
  `SELECT EXISTS (SELECT FROM baton.count_delta) AS unfolded, (${front('r.id')} LIMIT 1) IS NOT NULL AS ready`,
)

interface Found {
  readonly results: PullResult[]
  readonly dueAt: number | null
  readonly readied: number
}

export class LookAgain {
  readonly #transactions: Transactions
  readonly #roller: Roller
  readonly #pull: Pull
  readonly #filling: Filling
  readonly #passedOver: PassedOver

  constructor(parts: {
    readonly transactions: Transactions
    readonly roller: Roller
    readonly pull: Pull
    readonly filling: Filling
    readonly passedOver: PassedOver
  }) {
    this.#transactions = parts.transactions
    this.#roller = parts.roller
    this.#pull = parts.pull
    this.#filling = parts.filling
    this.#passedOver = parts.passedOver
  }

  /**
   * An empty answer has to be true. Before it is given: levels that are due are opened and windows
   * filled, a twin that is under way elsewhere is waited for, and who met only locked rows looks again. The batch is
   * committed: if the store is away now, these pulls alone are told so.
   */
  async run(orders: readonly PullOrder[], pulled: Pulled): Promise<Found> {
    const { results, earliestDueAt } = pulled
    const isEmpty = (result: PullResult | undefined) =>
      result === undefined || (result.partitions.length === 0 && !result.repeated)
    const settled = results.map((result) => result ?? NOTHING)
    const again = orders.flatMap((order, position) =>
      isEmpty(results[position]) ? [{ order, position }] : [],
    )
    const found = { results: settled, dueAt: earliestDueAt, readied: 0 }
    if (again.length === 0) return found
    try {
      return await this.#look(again, pulled, settled)
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error
      for (const { position } of again) settled[position] = { ...NOTHING, undecided: error }
      return found
    }
  }

  async #look(
    again: readonly { readonly order: PullOrder; readonly position: number }[],
    { results, earliestDueAt }: Pulled,
    settled: PullResult[],
  ): Promise<Found> {
    const [reason] = await this.#transactions.runOne(reasons)
    const isUnfolded = reason?.['unfolded'] === true
    const isContended = reason?.['ready'] === true
    if (!isUnfolded && !isContended && !results.includes(undefined)) {
      return { results: settled, dueAt: earliestDueAt, readied: 0 }
    }
    // Whatever comes of it, another roller may have filled or opened something just before.
    const readied = isUnfolded ? await this.#roller.settleUp() : 0
    if (isContended) await sleep(Math.random() * LOOK_AGAIN_MILLIS)
    const orders = again.map(({ order }) => order)
    const { second } = await this.#filling.claim(appetiteOf(orders), async () => {
      const second = await this.#transactions.run(async (tx) => {
        const deltas = new CountDeltas()
        const pulled = await this.#pull.run(tx, orders, deltas, true)
        await deltas.flush(tx)
        return pulled
      })
      return { second, ...claimedBy(second) }
    })
    if (isContended && second.results.every((result) => result?.partitions.length === 0))
      await this.#giveUp(again.length)
    this.#roller.kick()
    for (const [at, { position }] of again.entries()) settled[position] = second.results[at] ?? NOTHING
    const dueAt = earlier(earliestDueAt, second.earliestDueAt)
    return { results: settled, dueAt, readied: readied + second.movedUp }
  }
  /** Nothing was there the second time either: perhaps what looks ready is nobody's place any more, or still locked. */
  async #giveUp(pulls: number): Promise<void> {
    await this.#transactions.runOne(dropStraysInFront)
    const [reason] = await this.#transactions.runOne(reasons)
    if (reason?.['ready'] === true) this.#passedOver.note(pulls)
  }
}
