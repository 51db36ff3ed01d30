import { earlier } from '../../handoff/rules/earlier.ts'
import type { Policy } from '../../handoff/rules/policy.ts'
import type { HandOffAnswers, HandOffBatch, PullOrder } from '../../handoff/store.ts'
import type { Alone } from './alone/alone.ts'
import { NoteInDoubt } from './alone/notes.ts'
import type { CallBacks, CalledBack } from './call-back/call-back.ts'
import { CountDeltas } from './counters/count-deltas.ts'
import { answerLeases, type LeaseAnswers } from './leases/settle.ts'
import { LookAgain } from './pull/look-again.ts'
import { PassedOver } from './pull/passed-over.ts'
import { type PlainBatch, type PlainHandOffs, plainBatch } from './pull/plain-hand-off.ts'
import { appetiteOf, claimedBy, type Pull, type Pulled } from './pull/pull.ts'
import type { Shrinking } from './queues/shrinking.ts'
import type { Roller } from './roll/roller.ts'
import { NameForgotten, type Names } from './rows/names.ts'
import { writeNamesOf } from './rows/names-of-batch.ts'
import { afterCommit } from './session/after-commit.ts'
import type { Transactions } from './session/transactions.ts'
import type { Filling } from './windows/filling.ts'

/** What a batch came to when it was committed. */
interface Committed {
  readonly leases: LeaseAnswers
  readonly calledBack: CalledBack
  readonly pulled: Pulled
  /** A task with a level barrier is concerned. */
  readonly mayOpenLevels: boolean
  readonly counted: boolean
  readonly now: number
}

/** How often names are written for a batch: each time they were forgotten, some connections were opened or lost. */
const TRIES = 20

/** How a batch is handed out: from memory, in one statement, or in a transaction. */
export class Batches {
  readonly #transactions: Transactions
  readonly #roller: Roller
  readonly #names: Names
  readonly #policy: Policy
  readonly #callBacks: CallBacks
  readonly #pull: Pull
  readonly #plain: PlainHandOffs
  readonly #filling: Filling
  readonly #passedOver: PassedOver
  readonly #lookAgain: LookAgain
  readonly #shrinking: Shrinking
  readonly #alone: Alone

  constructor(parts: {
    transactions: Transactions
    roller: Roller
    names: Names
    policy: Policy
    callBacks: CallBacks
    pull: Pull
    plain: PlainHandOffs
    filling: Filling
    shrinking: Shrinking
    alone: Alone
    /** Has so many of the pulls that wait look again. */
    wake: (pulls: number) => void
  }) {
    this.#transactions = parts.transactions
    this.#roller = parts.roller
    this.#names = parts.names
    this.#policy = parts.policy
    this.#callBacks = parts.callBacks
    this.#pull = parts.pull
    this.#plain = parts.plain
    this.#filling = parts.filling
    this.#shrinking = parts.shrinking
    this.#alone = parts.alone
    this.#passedOver = new PassedOver(parts.wake)
    this.#lookAgain = new LookAgain({ ...parts, passedOver: this.#passedOver })
  }

  async run(batch: HandOffBatch): Promise<HandOffAnswers> {
    for (let tries = 1; ; tries += 1) {
      await writeNamesOf(batch, this.#names)
      try {
        return await this.#runNamed(batch)
      } catch (error) {
        if (!(error instanceof NameForgotten) || tries === TRIES) throw error
      }
    }
  }

  async #runNamed(batch: HandOffBatch): Promise<HandOffAnswers> {
    const plain = plainBatch(batch, this.#policy)
    if (plain === undefined) return this.#alone.transact(() => this.#handOff(batch))
    try {
      const answers = await this.#alone.handOff(batch, plain)
      if (answers !== undefined) return answers
    } catch (error) {
      if (!(error instanceof NoteInDoubt)) throw error
      return this.#alone.transactPlain(() => this.#handOff(batch, plain, error.secrets))
    }
    return this.#alone.transactPlain(() => this.#handOff(batch, plain))
  }

  /** `inDoubt` are the secrets of leases that may have been given. */
  async #handOff(
    batch: HandOffBatch,
    plain?: PlainBatch,
    inDoubt?: readonly string[],
  ): Promise<HandOffAnswers> {
    const { leases, calledBack, pulled, counted, mayOpenLevels, now } =
      plain === undefined ? await this.#transact(batch) : await this.#handOffPlain(batch, plain, inDoubt)
    if (counted) this.#roller.kick()
    this.#shrinking.take(leases.setsLeft)
    const opened = mayOpenLevels ? await afterCommit(() => this.#roller.settleUp(), 0) : 0
    const { results, dueAt, readied } = await this.#lookAgain.run(batch.pulls, pulled)
    const earliest = earlier(leases.earliestDueAt, dueAt)
    return {
      settles: leases.settles,
      renews: leases.renews,
      undone: leases.undone,
      callBacks: calledBack.results,
      pulls: results,
      readied: calledBack.readied + leases.returned + opened + pulled.movedUp + readied,
      nextDueInMillis: earliest === null ? null : earliest - now,
    }
  }

  /** Waits for what is done after a hand-off was answered. */
  async idle(): Promise<void> {
    await Promise.all([this.#filling.idle(), this.#shrinking.idle()])
  }

  /** The same, and nobody is woken any more. */
  async stop(): Promise<void> {
    this.#passedOver.stop()
    await this.idle()
  }

  /** Everything that a batch may hold, in one transaction. */
  async #transact(batch: HandOffBatch): Promise<Committed> {
    // What is given back or renewed passes over a set that is locked, and nearly always it would be our own lock.
    if (!isOnlyDone(batch)) await this.#shrinking.idle()
    const { committed } = await this.#filling.claim(appetiteOf(batch.pulls), async () => {
      const committed = await this.#commit(batch)
      return { committed, ...claimedBy(committed.pulled) }
    })
    return committed
  }

  #commit(batch: HandOffBatch): Promise<Committed> {
    return this.#transactions.run(async (tx) => {
      const deltas = new CountDeltas()
      const leases = await answerLeases(tx, batch, deltas, this.#policy)
      const calledBack = await this.#callBacks.run(tx, batch.callBacks, deltas)
      const mayOpenLevels = leases.mayOpenLevels || calledBack.mayOpenLevels
      // What the roller is about to open belongs to these pulls too: they follow when it has.
      const pulled = mayOpenLevels
        ? postponed(batch.pulls)
        : await this.#pull.run(tx, batch.pulls, deltas, false)
      await deltas.flush(tx)
      return { leases, calledBack, mayOpenLevels, pulled, counted: !deltas.isEmpty, now: tx.knownNow ?? 0 }
    })
  }

  /** In one statement; what it leaves over is done in a transaction as if it had come later. */
  async #handOffPlain(
    batch: HandOffBatch,
    plain: PlainBatch,
    inDoubt: readonly string[] | undefined,
  ): Promise<Committed> {
    if (inDoubt !== undefined) await this.#transactions.untilBack()
    const outcome = await this.#filling.claim(plain.appetite, () =>
      inDoubt === undefined
        ? this.#plain.run(batch.pulls, plain)
        : this.#plain.lookUp(batch.pulls, plain.settlements, inDoubt),
    )
    const { leftOver, pulls, mayOpenLevels, earliestDueAt, setsLeft } = outcome
    const pulled: Pulled =
      pulls === undefined
        ? postponed(batch.pulls)
        : { results: pulls, earliestDueAt, movedUp: 0, lanesToFill: [] }
    if (leftOver.size === 0) {
      const leases = {
        ...NO_LEASES,
        settles: batch.settles.map(({ settlements }) => settlements.map(() => null)),
        setsLeft,
      }
      return {
        leases,
        calledBack: NOTHING_CALLED_BACK,
        mayOpenLevels,
        pulled,
        counted: true,
        now: outcome.now,
      }
    }
    // What the settlements of the statement may open belongs to the pulls, too: they follow when the roller has.
    const pullsNow = pulls === undefined && !mayOpenLevels
    const rest = await this.#transact({
      ...batch,
      settles: batch.settles.map((order) => ({
        ...order,
        settlements: order.settlements.filter(({ lease }) => leftOver.has(lease.partition)),
      })),
      pulls: pullsNow ? batch.pulls : [],
    })
    const settles = batch.settles.map(({ settlements }, position) => {
      const judged = rest.leases.settles[position]?.values()
      return settlements.map(({ lease }) =>
        leftOver.has(lease.partition) ? (judged?.next().value ?? null) : null,
      )
    })
    return {
      ...rest,
      leases: { ...rest.leases, settles, setsLeft: [...setsLeft, ...rest.leases.setsLeft] },
      mayOpenLevels: mayOpenLevels || rest.mayOpenLevels,
      pulled: pullsNow ? rest.pulled : pulled,
    }
  }
}

function isOnlyDone({ settles, renews, undos }: HandOffBatch): boolean {
  if (renews.length + undos.length > 0) return false
  return settles.every(({ settlements }) => settlements.every(({ order }) => order.outcome === 'done'))
}

const NO_LEASES = { renews: [], undone: 0, returned: 0, earliestDueAt: null, mayOpenLevels: false }
const NOTHING_CALLED_BACK = { results: [], readied: 0, mayOpenLevels: false }

const postponed = (pulls: readonly PullOrder[]): Pulled => ({
  results: pulls.map(() => undefined),
  earliestDueAt: null,
  movedUp: 0,
  lanesToFill: [],
})
