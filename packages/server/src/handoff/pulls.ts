import type { Batcher } from './batcher.ts'
import type { Pulled, PullRequest } from './requests.ts'
import { type PullOrder, type PullResult, type ReadiedOf, StoreUnavailable } from './store.ts'
import { MAX_WAITING_PULLS, NOTHING, WaitingPulls } from './waiting-pulls.ts'

/** Called with the result of a pull before it is returned. */
type Note = (instance: string | null, result: PullResult) => void

/** Runs pulls, alone or with a settle: partitions are handed out immediately or as soon as some are ready. */
export class Pulls {
  readonly #batcher: Batcher
  readonly #note: Note
  readonly #waiting: WaitingPulls
  #isClosed = false

  constructor(batcher: Batcher, note: Note, maxWaiting = MAX_WAITING_PULLS) {
    this.#batcher = batcher
    this.#note = note
    this.#waiting = new WaitingPulls((order) => this.#tryAgain(order), maxWaiting)
  }

  async pull(request: PullRequest, signal: AbortSignal | undefined): Promise<Pulled> {
    if (this.#isClosed) return { ...NOTHING, waited: false }
    const { epoch } = this
    const answer = await this.#batcher.ask({ pull: orderOf(request) })
    return this.#handOut(request, answer.pull, signal, epoch)
  }

  /** The pull that runs in the same transaction as a settle. */
  orderBeside(request: PullRequest | null): PullOrder | undefined {
    return request === null || this.#isClosed ? undefined : orderOf(request)
  }

  /**
   * Completes a pull whose first attempt was part of a settle, at that epoch. The settle is committed, so it
   * is answered even if the store becomes unavailable while the pull waits.
   */
  async afterSettling(
    request: PullRequest,
    found: PullResult | undefined,
    signal: AbortSignal | undefined,
    epoch: number,
  ): Promise<Pulled> {
    try {
      return await this.#handOut(request, found, signal, epoch)
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error
      return { ...NOTHING, waited: true }
    }
  }

  /**
   * Incremented whenever partitions become ready. A pull that found nothing at an earlier epoch must try
   * again.
   */
  get epoch(): number {
    return this.#waiting.epoch
  }

  /** The number of waiting pulls. */
  get waiting(): number {
    return this.#waiting.size
  }

  /** Wakes pulls for this many ready partitions, by task and table if known. */
  wake(readied: number, readiedOf?: readonly ReadiedOf[] | null): void {
    this.#waiting.wake(readied, readiedOf)
  }

  /** Partitions may be ready without a notification. */
  wakeAll(): void {
    this.#waiting.wake(this.#waiting.size)
  }

  /** Stops handing out. Waiting pulls get an empty answer. */
  close(): void {
    this.#isClosed = true
    this.#waiting.close()
  }

  async #tryAgain(order: PullOrder): Promise<PullResult> {
    if (this.#isClosed) return NOTHING
    const { pull } = await this.#batcher.ask({ pull: order })
    return pull ?? NOTHING
  }

  /** Returns what the transaction found, or waits for partitions if the caller allows it. */
  #handOut(
    request: PullRequest,
    found: PullResult = NOTHING,
    signal: AbortSignal | undefined,
    epoch: number,
  ): Pulled | Promise<Pulled> {
    const { instance, waitMillis } = request
    const noted = (result: PullResult, waited: boolean) => {
      this.#note(instance, result)
      return { ...result, waited }
    }
    const isAnswer = found.partitions.length > 0 || found.repeated || waitMillis <= 0
    if (isAnswer || this.#isClosed || this.#waiting.isFull) return noted(found, false)
    const waited = this.#waiting.wait(orderOf(request), waitMillis, signal, epoch)
    return waited.then((result) => noted(result, true))
  }
}

function orderOf({ instance, batch, records, key, tables, tasks }: PullRequest): PullOrder {
  return { instance, batch, records, key, tables, tasks }
}
