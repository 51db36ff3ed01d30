import { type Answer, type Ask, answersOf, batchOf, weightOf } from './ask.ts'
import { type Batching, type HandOffAnswers, type Store, StoreUnavailable } from './store.ts'

interface Pending {
  readonly ask: Ask
  readonly weight: number
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
  #gatheringWeight = 0
  #scheduled = false
  #inFlight = 0
  #lastSize = 0
  readonly #batching: Batching

  constructor(store: Store, events: CoalescerEvents) {
    this.#store = store
    this.#events = events
    this.#batching = store.batching ?? ONE_BY_ONE
  }

  ask(ask: Ask): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const weight = weightOf(ask)
      const pending = { ask, weight, resolve, reject }
      if (ask.callBack !== undefined && weight > SHARING_LIMIT) void this.#commit([pending], () => undefined)
      else {
        this.#gathering.push(pending)
        this.#gatheringWeight += weight
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
    const { atOnce, full, fullAtOnce, ahead = Number.POSITIVE_INFINITY } = this.#batching
    if (this.#inFlight < atOnce) return true
    if (this.#inFlight < fullAtOnce && this.#gatheringWeight >= full) return true
    return this.#inFlight === atOnce && this.#gathering.length >= Math.max(ahead, this.#lastSize)
  }

  #send(): void {
    while (this.#gathering.length > 0 && this.#mayStart()) {
      this.#inFlight += 1
      const batch = this.#nextBatch()
      this.#lastSize = batch.length
      void this.#commit(batch, () => {
        this.#inFlight -= 1
        this.#send()
      })
    }
  }

  #nextBatch(): readonly Pending[] {
    const { full } = this.#batching
    let batch = this.#gathering
    if (this.#gatheringWeight <= full) this.#gathering = []
    else {
      let weight = 0
      const end = batch.findIndex((pending) => {
        weight += pending.weight
        return weight >= full
      })
      batch = this.#gathering.splice(0, end + 1)
    }
    for (const { weight } of batch) this.#gatheringWeight -= weight
    return batch
  }

  /**
   * `through` is called as soon as the store is free for another batch, before the answers of this one are passed on:
   * while they are written, the store works on the next.
   */
  async #commit(batch: readonly Pending[], through: () => void): Promise<void> {
    let answers: HandOffAnswers
    try {
      answers = await this.#store.handOff(batchOf(batch))
    } catch (error) {
      if (error instanceof StoreUnavailable || batch.length === 1) {
        through()
        this.#events.failed(error)
        for (const { reject } of batch) reject(error)
        return
      }
      // One request's data broke the transaction that all shared: alone, only its own fails.
      for (const pending of batch) await this.#commit([pending], () => undefined)
      through()
      return
    }
    through()
    try {
      this.#events.committed(answers)
      answersOf(batch, answers).forEach((answer, at) => {
        batch[at]?.resolve(answer)
      })
    } catch (error) {
      // It is committed: whatever is wrong with the answers, running it again would lease twice.
      this.#events.failed(error)
      for (const { reject } of batch) reject(error)
    }
  }
}
