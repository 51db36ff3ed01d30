import { setTimeout as sleep } from 'node:timers/promises'
import type { InstanceRole } from '../../handoff/instances.ts'
import type { Policy } from '../../handoff/policy.ts'
import {
  type HandOffAnswers,
  type HandOffBatch,
  type PullOrder,
  type PullResult,
  StoreUnavailable,
} from '../../handoff/store.ts'
import { NOTHING } from '../../handoff/waiting-pulls.ts'
import type { CallBacks, CalledBack } from './call-back.ts'
import { CountDeltas } from './count-deltas.ts'
import { fillTripped, laneIsOpen } from './lanes.ts'
import type { Names } from './names.ts'
import { type PlainBatch, type PlainHandOffs, plainBatch } from './plain-hand-off.ts'
import type { Pull, Pulled } from './pull.ts'
import type { Roller } from './roller.ts'
import { answerLeases, type LeaseAnswers } from './settle.ts'
import { statement } from './statement.ts'
import { dropStraysInFront } from './strays.ts'
import type { Transactions } from './transactions.ts'

/** How long a pull that met only rows locked by others waits before it looks again. */
const LOOK_AGAIN_MILLIS = 3

/** Why a pull may have come out empty although there is work. */
const reasons = statement(
  'reasons-for-nothing',
  `SELECT EXISTS (SELECT FROM baton.count_delta) AS unfolded,
     EXISTS (
       SELECT FROM (SELECT level, task FROM baton.ready ORDER BY level, rank, id OFFSET 0) r
       JOIN baton.task t ON t.id = r.task WHERE ${laneIsOpen('t', 'r.level')}
     ) AS ready`,
)

/** So few partitions cannot empty what stands behind a tripwire before its window is filled. */
const SMALL_CLAIM = 64

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

export class HandOffs {
  readonly #transactions: Transactions
  readonly #roller: Roller
  readonly #names: Names
  readonly #policy: Policy
  readonly #callBacks: CallBacks
  readonly #pull: Pull
  readonly #plain: PlainHandOffs
  readonly #readied: (count: number) => void
  readonly #filling = new Set<Promise<void>>()

  constructor(parts: {
    transactions: Transactions
    roller: Roller
    names: Names
    policy: Policy
    callBacks: CallBacks
    pull: Pull
    plain: PlainHandOffs
    readied: (count: number) => void
  }) {
    this.#transactions = parts.transactions
    this.#roller = parts.roller
    this.#names = parts.names
    this.#policy = parts.policy
    this.#callBacks = parts.callBacks
    this.#pull = parts.pull
    this.#plain = parts.plain
    this.#readied = parts.readied
  }

  async run(batch: HandOffBatch): Promise<HandOffAnswers> {
    if (!this.#namesAreKnown(batch)) await this.#writeNames(batch)
    const plain = plainBatch(batch, this.#policy)
    const { leases, calledBack, pulled, counted, mayOpenLevels, now } =
      plain === undefined ? await this.#transact(batch) : await this.#handOffPlain(batch, plain)
    if (counted) this.#roller.kick()
    const rollNow = mayOpenLevels || pulled.lanesSkipped
    const opened = rollNow ? await this.#afterCommit(() => this.#roller.settleUp(), 0) : 0
    const found = {
      results: pulled.results.map((result) => result ?? NOTHING),
      dueAt: pulled.earliestDueAt,
      readied: 0,
    }
    const { results, dueAt, readied } = await this.#afterCommit(
      () => this.#lookAgain(batch.pulls, pulled),
      found,
    )
    const earliest = earlier(leases.earliestDueAt, dueAt)
    return {
      settles: leases.settles,
      renews: leases.renews,
      undone: leases.undone,
      callBacks: calledBack.results,
      pulls: results,
      readied: calledBack.readied + leases.returned + leases.undone + opened + pulled.movedUp + readied,
      nextDueInMillis: earliest === null ? null : earliest - now,
    }
  }

  /** Waits for windows that are being filled after their hand-off was answered. */
  async idle(): Promise<void> {
    await Promise.all(this.#filling)
  }

  /** Everything that a batch may hold, in one transaction. */
  #transact(batch: HandOffBatch): Promise<Committed> {
    return this.#transactions.run(async (tx) => {
      const deltas = new CountDeltas()
      const leases = await answerLeases(tx, batch, deltas, this.#policy)
      const calledBack = await this.#callBacks.run(tx, batch.callBacks, deltas)
      const mayOpenLevels = leases.mayOpenLevels || calledBack.mayOpenLevels
      // What the roller is about to open belongs to these pulls too: they follow when it has.
      const pulled = mayOpenLevels
        ? postponed(batch.pulls)
        : await this.#pullAll(tx, batch.pulls, deltas, false)
      await deltas.flush(tx)
      return { leases, calledBack, mayOpenLevels, pulled, counted: !deltas.isEmpty, now: tx.knownNow ?? 0 }
    })
  }

  /** In one statement; what it leaves over is done in a transaction as if it had come later. */
  async #handOffPlain(batch: HandOffBatch, plain: PlainBatch): Promise<Committed> {
    const outcome = await this.#plain.run(batch.pulls, plain)
    const { leftOver, pulls, mayOpenLevels, earliestDueAt, tripped, claimed } = outcome
    const filled = await this.#fill(tripped, claimed)
    const pulled: Pulled =
      pulls === undefined
        ? postponed(batch.pulls)
        : { results: pulls, earliestDueAt, movedUp: filled.readied, lanesSkipped: filled.skipped }
    if (leftOver.size === 0) {
      const leases = {
        ...NO_LEASES,
        settles: batch.settles.map(({ settlements }) => settlements.map(() => null)),
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
    const rest = await this.#transact({
      ...batch,
      settles: batch.settles.map((order) => ({
        ...order,
        settlements: order.settlements.filter(({ lease }) => leftOver.has(lease.partition)),
      })),
      pulls: pulls === undefined ? batch.pulls : [],
    })
    const settles = batch.settles.map(({ settlements }, position) => {
      const judged = rest.leases.settles[position]?.values()
      return settlements.map(({ lease }) =>
        leftOver.has(lease.partition) ? (judged?.next().value ?? null) : null,
      )
    })
    return {
      ...rest,
      leases: { ...rest.leases, settles },
      mayOpenLevels: mayOpenLevels || rest.mayOpenLevels,
      pulled: pulls === undefined ? rest.pulled : pulled,
    }
  }

  /**
   * Fills the windows whose tripwire was handed out. After a small claim nobody waits for it: there
   * are LOW_WATER partitions behind a tripwire, and writing the next ones takes ten milliseconds. If
   * this node dies before, the roller fills them: what was claimed is counted for their lanes.
   */
  async #fill(lanes: readonly number[], claimed: number): Promise<{ readied: number; skipped: boolean }> {
    const nothing = { readied: 0, skipped: false }
    if (lanes.length === 0) return nothing
    const filling = this.#afterCommit(
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

  /** The batch is committed: what comes after it may fail, but must not make it look undone. */
  async #afterCommit<Result>(work: () => Promise<Result>, otherwise: Result): Promise<Result> {
    try {
      return await work()
    } catch (error) {
      if (error instanceof StoreUnavailable) return otherwise
      throw error
    }
  }

  #pullAll(
    tx: Parameters<Pull['run']>[0],
    orders: readonly PullOrder[],
    deltas: CountDeltas,
    waitForTwins: boolean,
  ): Promise<Pulled> {
    if (orders.length === 0)
      return Promise.resolve({ results: [], earliestDueAt: null, movedUp: 0, lanesSkipped: false })
    return this.#pull.run(tx, orders, deltas, waitForTwins)
  }

  /**
   * An empty answer has to be true. Before it is given: levels that are due are opened and windows
   * filled, a twin that is under way elsewhere is waited for, and who met only locked rows looks again.
   */
  async #lookAgain(
    orders: readonly PullOrder[],
    { results, earliestDueAt }: Pulled,
  ): Promise<{ results: PullResult[]; dueAt: number | null; readied: number }> {
    const settled = results.map((result) => result ?? NOTHING)
    const again = orders.flatMap((order, position) => {
      const result = results[position]
      const isEmpty = result === undefined || (result.partitions.length === 0 && !result.repeated)
      return isEmpty ? [{ order, position }] : []
    })
    if (again.length === 0) return { results: settled, dueAt: earliestDueAt, readied: 0 }
    const [reason] = await this.#transactions.read(reasons)
    const isUnfolded = reason?.['unfolded'] === true
    const isContended = reason?.['ready'] === true
    if (!isUnfolded && !isContended && !results.includes(undefined)) {
      return { results: settled, dueAt: earliestDueAt, readied: 0 }
    }
    // Whatever comes of it, another roller may have filled or opened something just before.
    const readied = isUnfolded ? await this.#roller.settleUp() : 0
    if (isContended) await sleep(Math.random() * LOOK_AGAIN_MILLIS)
    const second = await this.#transactions.run(async (tx) => {
      const deltas = new CountDeltas()
      const pulled = await this.#pullAll(
        tx,
        again.map(({ order }) => order),
        deltas,
        true,
      )
      await deltas.flush(tx)
      return pulled
    })
    // Nothing was there the second time either: perhaps what looks ready is nobody's place any more.
    if (isContended && second.results.every((result) => result?.partitions.length === 0))
      await this.#transactions.read(dropStraysInFront)
    this.#roller.kick()
    for (const [at, { position }] of again.entries()) settled[position] = second.results[at] ?? NOTHING
    const dueAt = earlier(earliestDueAt, second.earliestDueAt)
    return { results: settled, dueAt, readied: readied + second.movedUp }
  }

  #namesAreKnown({ callBacks, pulls }: HandOffBatch): boolean {
    return (
      callBacks.length === 0 &&
      pulls.every(({ instance }) => instance === null || this.#names.knowsInstance(instance))
    )
  }

  async #writeNames({ callBacks, pulls }: HandOffBatch): Promise<void> {
    const instances = new Map<string, InstanceRole>()
    for (const { producer } of callBacks) if (producer !== null) instances.set(producer, 'producer')
    for (const { instance } of pulls) if (instance !== null) instances.set(instance, 'worker')
    await Promise.all([
      this.#names.writeInstances(instances),
      this.#names.writeTables(
        callBacks.flatMap(({ callBack }) =>
          callBack.partitions.map(({ computeTableName }) => computeTableName),
        ),
      ),
    ])
  }
}

const NO_LEASES = { renews: [], undone: 0, returned: 0, earliestDueAt: null, mayOpenLevels: false }
const NOTHING_CALLED_BACK = { results: [], readied: 0, mayOpenLevels: false }

const postponed = (pulls: readonly PullOrder[]): Pulled => ({
  results: pulls.map(() => undefined),
  earliestDueAt: null,
  movedUp: 0,
  lanesSkipped: false,
})

function earlier(a: number | null, b: number | null): number | null {
  if (a === null || b === null) return a ?? b
  return Math.min(a, b)
}
