import type { Batcher } from './batcher.ts'
import type { Pulled, PullRequest } from './requests.ts'
import { type PreparedOf, type PullOrder, type PullResult, StoreUnavailable } from './store.ts'
import { MAX_WAITING_PULLS, NOTHING, WaitingPulls } from './waiting-pulls.ts'

/** Told what a caller is about to be given. */
type Note = (instance: string | null, result: PullResult) => void

/** What is handed out, at once or as soon as there is something: the pulls of callers, alone or with a settle. */
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

  /** What the transaction of a settle asks for beside it. */
  orderBeside(request: PullRequest | null): PullOrder | undefined {
    return request === null || this.#isClosed ? undefined : orderOf(request)
  }

  /**
   * The rest of a pull whose first look was part of a settle, at that epoch. What was settled is settled, and is answered
   * also if the store goes away while the pull waits.
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

  /** Goes up whenever something became ready: whoever looked before and found nothing looks again. */
  get epoch(): number {
    return this.#waiting.epoch
  }

  /** How many wait. */
  get waiting(): number {
    return this.#waiting.size
  }

  /** So many partitions became ready; of which tasks and tables, where that is known. */
  wake(readied: number, readiedOf?: readonly PreparedOf[] | null): void {
    this.#waiting.wake(readied, readiedOf)
  }

  /** Something may be ready that nobody was told of. */
  wakeAll(): void {
    this.#waiting.wake(this.#waiting.size)
  }

  /** From here on nothing is handed out; those who wait are answered empty. */
  close(): void {
    this.#isClosed = true
    this.#waiting.close()
  }

  async #tryAgain(order: PullOrder): Promise<PullResult> {
    if (this.#isClosed) return NOTHING
    const { pull } = await this.#batcher.ask({ pull: order })
    return pull ?? NOTHING
  }

  /** What the transaction found, or what comes while the caller is ready to wait. */
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
