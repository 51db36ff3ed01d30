import type { PulledPartition, Refusal, SettleAnswer, Settlement } from '@baton/protocol'
import type { BatonClient } from './client.ts'
import { type Chosen, newIdempotencyKey, type PullChoice, sharedTrace } from './client-options.ts'
import { isTooLarge } from './errors.ts'
import { type FailedTry, persist } from './retry.ts'
import type { ServiceWatch } from './worker-options.ts'

/** Low enough that a request with the longest reasons, escaped, stays below the body limit of the service. */
const SETTLEMENTS_PER_REQUEST = 160
/** The pause after an immediate empty answer, if the service does not send one. */
const REST_SECONDS = 1
/**
 * Random spread of the pause, so that workers that were answered at the same time do not pull at the same
 * time.
 */
const REST_SPREAD = 0.25

/**
 * Handlers that end in the same iteration of the event loop end one microtask after the other. Waiting for
 * the end of the iteration sends their settlements in one request, instead of one in a first request and the
 * rest in the next. Browsers have no setImmediate.
 */
const { setImmediate: whenIterationEnds = queueMicrotask } = globalThis as {
  setImmediate?: (act: () => void) => void
}

/** The answer to a settlement: settled or refused. */
type SettlementAnswer =
  | { readonly settled: true; readonly parked: boolean }
  | { readonly settled: false; readonly refusal: Refusal }

interface HandOffLoopOptions {
  readonly client: BatonClient
  readonly watch: ServiceWatch
  readonly waitSeconds: number
  readonly chosen: Chosen
  /** How much may be pulled now; `undefined` if there is no capacity. */
  readonly capacity: () => PullChoice | undefined
  readonly receive: (partitions: readonly PulledPartition[]) => void
  /** Whether a handler is running, so that a settlement may follow at any moment. */
  readonly isBusy: () => boolean
  /**
   * Called when a pull waited for its full time and returned nothing. Not called if an earlier try of the
   * same pull failed, because its answer may have been lost.
   */
  readonly onNothingReady: () => void
  /** Called for an error that a retry cannot fix: a wrong URL, a refused token. */
  readonly onHopeless: (error: unknown) => void
}

interface WaitingSettlement {
  readonly settlement: Settlement
  readonly traceparent: string | undefined
  readonly resolve: (answer: SettlementAnswer) => void
  readonly reject: (error: unknown) => void
}

/**
 * The requests between a worker and the service. While there is work, each request settles the finished
 * partitions and pulls new ones. Partitions that finish during a request are settled by the next. A pull
 * waits at the service only if nothing is to be settled and nothing is ready. A pull is not repeated before
 * all finished partitions are reported: their leases may have expired meanwhile, and the pull would hand out
 * partitions that are finished but not reported.
 */
export class HandOffLoop {
  readonly #options: HandOffLoopOptions
  readonly #closing = new AbortController()
  readonly #ending = new AbortController()
  readonly #settlements: WaitingSettlement[] = []
  /** Lower if a proxy in front of the service refused a request as too large. */
  #mostAtOnce = SETTLEMENTS_PER_REQUEST
  /** Whether the loop is waiting for other handlers that end in the same iteration of the event loop. */
  #gathers = false
  #exchange: Promise<void> | undefined
  #waitingPull: Promise<void> | undefined
  #rest: ReturnType<typeof setTimeout> | undefined

  constructor(options: HandOffLoopOptions) {
    this.#options = options
  }

  /** Sends the next request, if one is due. Must be called when capacity becomes free. */
  advance(): void {
    if (this.#exchange === undefined && this.#settlements.length > 0 && !this.#gathers) {
      this.#exchange = this.#settleAndPull().finally(() => {
        this.#exchange = undefined
        this.advance()
      })
    }
    if (this.#mayWait) {
      const pull = this.#options.capacity()
      if (pull === undefined) return
      this.#waitingPull = this.#pullAndWait(pull).finally(() => {
        this.#waitingPull = undefined
        this.advance()
      })
    }
  }

  /** Resolves with the service's answer, however long that takes. Rejects if the loop ends first. */
  settle(settlement: Settlement, traceparent?: string): Promise<SettlementAnswer> {
    return new Promise((resolve, reject) => {
      this.#settlements.push({ settlement, traceparent, resolve, reject })
      if (!this.#gathers) {
        this.#gathers = true
        const then = this.#options.isBusy() ? whenIterationEnds : queueMicrotask
        then(() => this.#report())
      }
    })
  }

  #report(): void {
    this.#gathers = false
    this.advance()
  }

  /** Stops pulling. Settling continues. */
  async close(): Promise<void> {
    this.#closing.abort()
    clearTimeout(this.#rest)
    await this.#waitingPull
  }

  /** Gives up all requests that are not answered. */
  end(): void {
    this.#closing.abort()
    clearTimeout(this.#rest)
    this.#ending.abort(new Error('the worker has stopped'))
    for (const { reject } of this.#settlements.splice(0)) reject(this.#ending.signal.reason)
  }

  get #mayWait(): boolean {
    return (
      this.#waitingPull === undefined &&
      this.#exchange === undefined &&
      !this.#gathers &&
      this.#rest === undefined &&
      !this.#closing.signal.aborted
    )
  }

  async #settleAndPull(): Promise<void> {
    const { waitSeconds, receive, onNothingReady, onHopeless } = this.#options
    const settling: WaitingSettlement[] = []
    const idempotencyKey = newIdempotencyKey()
    let pull: PullChoice | undefined
    let tries = 0
    const attempt = async (): Promise<SettleAnswer> => {
      tries += 1
      settling.push(...this.#settlements.splice(0, this.#mostAtOnce - settling.length))
      // Once a try has included a pull, each repetition includes it, even if no capacity is left: the answer
      // may have been lost, and with it leases.
      pull = this.#nextPull() ?? pull
      try {
        return await this.#settle(settling, this.#settlements.length === 0 ? pull : undefined, idempotencyKey)
      } catch (error) {
        if (!isTooLarge(error) || settling.length === 1) throw error
        this.#mostAtOnce = Math.ceil(settling.length / 2)
        this.#settlements.unshift(...settling.splice(this.#mostAtOnce))
        return attempt()
      }
    }
    try {
      const answer = await this.#untilAnswered(attempt, this.#ending.signal)
      const refusals = new Map(answer.refused.map((refusal) => [refusal.leaseId, refusal]))
      const parked = new Set(answer.parked)
      for (const { settlement, resolve } of settling) {
        const refusal = refusals.get(settlement.leaseId)
        resolve(
          refusal === undefined
            ? { settled: true, parked: parked.has(settlement.leaseId) }
            : { settled: false, refusal },
        )
      }
      // Callers of `settle` get their answer before new partitions start.
      await undefined
      if (answer.partitions.length > 0) receive(answer.partitions)
      else if (pull !== undefined && waitSeconds === 0 && tries === 1) onNothingReady()
    } catch (error) {
      for (const { reject } of settling) reject(error)
      if (!this.#ending.signal.aborted) onHopeless(error)
    }
  }

  /** What to pull with a settlement. Nothing, while another pull is waiting at the service. */
  #nextPull(): PullChoice | undefined {
    if (this.#waitingPull !== undefined || this.#closing.signal.aborted) return undefined
    return this.#options.capacity()
  }

  #settle(settling: readonly WaitingSettlement[], pull: PullChoice | undefined, idempotencyKey: string) {
    const settlements = settling.map(({ settlement }) => settlement)
    const traceparent = sharedTrace(settling.map((one) => one.traceparent))
    const once = { retryForSeconds: 0, signal: this.#ending.signal, traceparent }
    const chosenPull = pull === undefined ? undefined : { ...pull, ...this.#options.chosen }
    return this.#options.client.settle(settlements, { pull: chosenPull, idempotencyKey, ...once })
  }

  async #pullAndWait(amount: PullChoice): Promise<void> {
    const { client, chosen, waitSeconds, receive, onNothingReady, onHopeless } = this.#options
    const idempotencyKey = newIdempotencyKey()
    const begun = performance.now()
    const signal = this.#closing.signal
    const wait = waitSeconds > 0 ? { waitSeconds } : {}
    let tries = 0
    const attempt = async () => {
      tries += 1
      if (this.#gathers) this.#report()
      while (this.#exchange !== undefined) await this.#exchange
      return client.pull({ ...amount, ...chosen, ...wait, idempotencyKey, retryForSeconds: 0, signal })
    }
    try {
      const { partitions, retryAfterSeconds } = await this.#untilAnswered(attempt, signal)
      if (partitions.length > 0) receive(partitions)
      // An empty answer to a repeated pull may only mean that the leases of the first try have ended. Pull
      // again at once.
      else if (tries === 1) {
        const waited = (performance.now() - begun) / 1000
        if (waited < waitSeconds / 2 || waitSeconds === 0) this.#restFor(retryAfterSeconds)
        onNothingReady()
      }
    } catch (error) {
      if (this.#closing.signal.aborted) await this.#reclaim(idempotencyKey)
      else onHopeless(error)
    }
  }

  async #untilAnswered<T>(attempt: () => Promise<T>, signal: AbortSignal): Promise<T> {
    const { watch } = this.#options
    const onFailure = (failed: FailedTry) => watch.failed(failed)
    const answer = await persist(attempt, { forMillis: Number.POSITIVE_INFINITY, signal, onFailure })
    watch.answered()
    return answer
  }

  /**
   * An aborted pull may have been granted leases although its answer was never read. Repeating it with the
   * same key returns them, so that they can be released instead of expiring.
   */
  async #reclaim(idempotencyKey: string): Promise<void> {
    const { client, chosen, receive } = this.#options
    const once = { ...chosen, batch: 1, idempotencyKey, retryForSeconds: 0, timeoutSeconds: 2 }
    try {
      const { partitions } = await client.pull({ ...once, signal: this.#ending.signal })
      if (partitions.length > 0) receive(partitions)
    } catch {
      // The leases will expire.
    }
  }

  #restFor(seconds = REST_SECONDS): void {
    if (this.#closing.signal.aborted) return
    const millis = seconds * 1000 * (1 + Math.random() * REST_SPREAD)
    this.#rest = setTimeout(() => {
      this.#rest = undefined
      this.advance()
    }, millis)
  }
}
