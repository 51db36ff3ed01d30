import type { LeaseRef } from './lease-id.ts'
import {
  type Batching,
  type CallBackOrder,
  type CallBackResult,
  type HandOffAnswers,
  type HandOffBatch,
  type PullOrder,
  type PullResult,
  type RenewOrder,
  type RenewResult,
  type SettleOrder,
  type SettleResult,
  type Store,
  StoreUnavailable,
} from './store.ts'

/** What one request asks of the store; a settle that also pulls asks for two things at once. */
export interface Ask {
  readonly settle?: SettleOrder
  readonly renew?: RenewOrder
  readonly undo?: readonly LeaseRef[]
  readonly callBack?: CallBackOrder
  readonly pull?: PullOrder
}

export interface Answer {
  readonly settle?: SettleResult
  readonly renew?: RenewResult
  readonly undone: number
  readonly callBack?: CallBackResult
  readonly pull?: PullResult
}

interface Pending {
  readonly ask: Ask
  readonly resolve: (answer: Answer) => void
  readonly reject: (error: unknown) => void
}

export interface CoalescerEvents {
  /** A transaction was committed. */
  committed(answers: HandOffAnswers): void
  failed(error: unknown): void
}

/** A larger call-back has a transaction of its own: pulls must not wait until it has been passed on. */
const SHARING_LIMIT = 2000

const ONE_BY_ONE: Batching = { atOnce: 1, full: Number.POSITIVE_INFINITY, fullAtOnce: 1 }

/**
 * Lets requests that are under way at the same time share one transaction. While one commit is
 * being made durable the next batch gathers, so the number of requests per commit follows the load
 * by itself and a lone request waits for nobody.
 */
export class Coalescer {
  readonly #store: Store
  readonly #events: CoalescerEvents
  #gathering: Pending[] = []
  #scheduled = false
  #inFlight = 0
  readonly #batching: Batching

  constructor(store: Store, events: CoalescerEvents) {
    this.#store = store
    this.#events = events
    this.#batching = store.batching ?? ONE_BY_ONE
  }

  ask(ask: Ask): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const pending = { ask, resolve, reject }
      if ((ask.callBack?.callBack.partitions.length ?? 0) > SHARING_LIMIT) void this.#commit([pending])
      else {
        this.#gathering.push(pending)
        this.#schedule()
      }
    })
  }

  /** Waits for the end of the event loop's turn, so that every request read in it comes along. */
  #schedule(): void {
    if (this.#scheduled || !this.#mayStart()) return
    this.#scheduled = true
    setImmediate(() => {
      this.#scheduled = false
      this.#send()
    })
  }

  #mayStart(): boolean {
    const { atOnce, full, fullAtOnce } = this.#batching
    return this.#inFlight < atOnce || (this.#inFlight < fullAtOnce && weightOf(this.#gathering) >= full)
  }

  #send(): void {
    while (this.#gathering.length > 0 && this.#mayStart()) {
      this.#inFlight += 1
      this.#commit(this.#nextBatch()).finally(() => {
        this.#inFlight -= 1
        this.#send()
      })
    }
  }

  #nextBatch(): Pending[] {
    const { full } = this.#batching
    let weight = 0
    let length = 0
    while (length < this.#gathering.length && weight < full) {
      weight += weightOf(this.#gathering.slice(length, length + 1))
      length += 1
    }
    return this.#gathering.splice(0, length)
  }

  async #commit(batch: readonly Pending[]): Promise<void> {
    let answers: HandOffAnswers
    try {
      answers = await this.#store.handOff(batchOf(batch.map(({ ask }) => ask)))
    } catch (error) {
      if (error instanceof StoreUnavailable || batch.length === 1) {
        this.#events.failed(error)
        for (const { reject } of batch) reject(error)
        return
      }
      // One request's data broke the transaction that all shared: alone, only its own fails.
      for (const pending of batch) await this.#commit([pending])
      return
    }
    try {
      this.#events.committed(answers)
      distribute(batch, answers)
    } catch (error) {
      // It is committed: whatever is wrong with the answers, running it again would lease twice.
      this.#events.failed(error)
      for (const { reject } of batch) reject(error)
    }
  }
}

/** In partitions: what the store's work is made of. */
function weightOf(pending: readonly Pending[]): number {
  return pending.reduce(
    (sum, { ask: { settle, renew, undo, callBack, pull } }) =>
      sum +
      (settle?.settlements.length ?? 0) +
      (renew?.leases.length ?? 0) +
      (undo?.length ?? 0) +
      (callBack?.callBack.partitions.length ?? 0) +
      (pull?.batch ?? 0),
    0,
  )
}

function batchOf(asks: readonly Ask[]): HandOffBatch {
  const batch = {
    settles: [] as SettleOrder[],
    renews: [] as RenewOrder[],
    undos: [] as LeaseRef[],
    callBacks: [] as CallBackOrder[],
    pulls: [] as PullOrder[],
  }
  for (const { settle, renew, undo, callBack, pull } of asks) {
    if (settle !== undefined) batch.settles.push(settle)
    if (renew !== undefined) batch.renews.push(renew)
    if (undo !== undefined) batch.undos.push(...undo)
    if (callBack !== undefined) batch.callBacks.push(callBack)
    if (pull !== undefined) batch.pulls.push(pull)
  }
  return batch
}

/** Answers come back in the order in which `batchOf` laid the orders out. */
function distribute(batch: readonly Pending[], answers: HandOffAnswers): void {
  const settles = answers.settles.values()
  const renews = answers.renews.values()
  const callBacks = answers.callBacks.values()
  const pulls = answers.pulls.values()
  for (const { ask, resolve } of batch) {
    const answer: { -readonly [Key in keyof Answer]: Answer[Key] } = { undone: answers.undone }
    if (ask.settle !== undefined) answer.settle = nextOf(settles)
    if (ask.renew !== undefined) answer.renew = nextOf(renews)
    if (ask.callBack !== undefined) answer.callBack = nextOf(callBacks)
    if (ask.pull !== undefined) answer.pull = nextOf(pulls)
    resolve(answer)
  }
}

function nextOf<T>(answers: Iterator<T>): T {
  const { done, value } = answers.next()
  if (done === true) throw new Error('the store answered fewer orders than it was given')
  return value
}
