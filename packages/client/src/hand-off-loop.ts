import type { PulledPartition, Refusal, Settlement } from '@baton/protocol'
import { type Chosen, newIdempotencyKey, type PullChoice } from './call-options.ts'
import type { BatonClient } from './client.ts'
import { type FailedTry, persist } from './persistence.ts'
import { sharedTrace } from './shared-trace.ts'
import type { ServiceWatch } from './worker-events.ts'

/** So few that even the longest reasons, escaped, stay below what the service takes in one request. */
const SETTLEMENTS_PER_REQUEST = 250
/** After an empty answer that came at once, when the service does not say how long to rest. */
const REST_SECONDS = 1
/** Keeps a fleet that was answered together from asking together. */
const REST_SPREAD = 0.25

/**
 * Handlers that end in the same turn of the event loop do so one microtask after the other: without waiting for the
 * last of them, a request settled one and the next the fifteen others. Browsers have no such end of a turn.
 */
const { setImmediate: whenTurnEnds = queueMicrotask } = globalThis as {
  setImmediate?: (act: () => void) => void
}

/** What became of a settlement: taken note of, or refused. */
export type SettlementAnswer =
  | { readonly settled: true; readonly parked: boolean }
  | { readonly settled: false; readonly refusal: Refusal }

export interface HandOffLoopOptions {
  readonly client: BatonClient
  readonly watch: ServiceWatch
  readonly waitSeconds: number
  readonly chosen: Chosen
  /** How much may be taken now; `undefined` when there is no room. */
  readonly room: () => PullChoice | undefined
  readonly receive: (partitions: readonly PulledPartition[]) => void
  /** Whether something is being worked on whose outcome may come any moment. */
  readonly isBusy: () => boolean
  /** A pull that waited as long as it may came back empty, and was not the repeat of one whose answer was lost. */
  readonly onNothingReady: () => void
  /** Something that repeating will not mend: a wrong URL, a refused token. */
  readonly onHopeless: (error: unknown) => void
}

interface WaitingSettlement {
  readonly settlement: Settlement
  readonly traceparent: string | undefined
  readonly resolve: (answer: SettlementAnswer) => void
  readonly reject: (error: unknown) => void
}

/**
 * The exchange between a worker and the service. While there is work, each request settles what was finished and
 * pulls as much again; what is finished while one is under way goes into the next. Only with nothing to settle and
 * nothing ready does a pull wait at the service. No request is repeated that pulls before everything finished is
 * reported: leases may have ended meanwhile, and it would bring back what is only not reported yet.
 */
export class HandOffLoop {
  readonly #options: HandOffLoopOptions
  readonly #closing = new AbortController()
  readonly #ending = new AbortController()
  readonly #settlements: WaitingSettlement[] = []
  /** Waiting for what else ends in the same turn of the event loop. */
  #gathers = false
  #exchange: Promise<void> | undefined
  #waitingPull: Promise<void> | undefined
  #rest: ReturnType<typeof setTimeout> | undefined

  constructor(options: HandOffLoopOptions) {
    this.#options = options
  }

  /** Starts whatever request is due. To be called when room was made. */
  turn(): void {
    if (this.#exchange === undefined && this.#settlements.length > 0 && !this.#gathers) {
      this.#exchange = this.#settleAndPull().finally(() => {
        this.#exchange = undefined
        this.turn()
      })
    }
    if (this.#mayWait) {
      const wish = this.#options.room()
      if (wish === undefined) return
      this.#waitingPull = this.#pullAndWait(wish).finally(() => {
        this.#waitingPull = undefined
        this.turn()
      })
    }
  }

  /** Resolves with the service's answer, however long it takes to get one; rejects when the loop ends before. */
  settle(settlement: Settlement, traceparent?: string): Promise<SettlementAnswer> {
    return new Promise((resolve, reject) => {
      this.#settlements.push({ settlement, traceparent, resolve, reject })
      if (!this.#gathers) {
        this.#gathers = true
        const then = this.#options.isBusy() ? whenTurnEnds : queueMicrotask
        then(() => this.#report())
      }
    })
  }

  #report(): void {
    this.#gathers = false
    this.turn()
  }

  /** Pulls nothing more. Settling goes on. */
  async close(): Promise<void> {
    this.#closing.abort()
    clearTimeout(this.#rest)
    await this.#waitingPull
  }

  /** Gives up on everything that is not answered. */
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
    let wish: PullChoice | undefined
    let tries = 0
    const attempt = () => {
      tries += 1
      settling.push(...this.#settlements.splice(0, SETTLEMENTS_PER_REQUEST - settling.length))
      // Once asked for, it is asked for again also when nothing more is wanted: the answer may have been lost.
      wish = this.#wish() ?? wish
      return this.#settle(settling, this.#settlements.length === 0 ? wish : undefined, idempotencyKey)
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
      // Whoever settled hears of it before anything new begins.
      await undefined
      if (answer.partitions.length > 0) receive(answer.partitions)
      else if (wish !== undefined && waitSeconds === 0 && tries === 1) onNothingReady()
    } catch (error) {
      for (const { reject } of settling) reject(error)
      if (!this.#ending.signal.aborted) onHopeless(error)
    }
  }

  /** A pull that waits already stands in for what could be pulled beside a settlement. */
  #wish(): PullChoice | undefined {
    if (this.#waitingPull !== undefined || this.#closing.signal.aborted) return undefined
    return this.#options.room()
  }

  #settle(settling: readonly WaitingSettlement[], pull: PullChoice | undefined, idempotencyKey: string) {
    const settlements = settling.map(({ settlement }) => settlement)
    const traceparent = sharedTrace(settling.map((one) => one.traceparent))
    const once = { retryForSeconds: 0, signal: this.#ending.signal, traceparent }
    const wish = pull === undefined ? undefined : { ...pull, ...this.#options.chosen }
    return this.#options.client.settle(settlements, { pull: wish, idempotencyKey, ...once })
  }

  async #pullAndWait(wish: PullChoice): Promise<void> {
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
      return client.pull({ ...wish, ...chosen, ...wait, idempotencyKey, retryForSeconds: 0, signal })
    }
    try {
      const { partitions, retryAfterSeconds } = await this.#untilAnswered(attempt, signal)
      if (partitions.length > 0) receive(partitions)
      // An empty answer to a repeat may only say that what the first try was given is gone. It is looked anew, at once.
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
   * A pull that was broken off may have been granted leases whose answer nobody read. Asking again under its key
   * finds them, so that they can be given back instead of expiring.
   */
  async #reclaim(idempotencyKey: string): Promise<void> {
    const { client, chosen, receive } = this.#options
    const once = { ...chosen, batch: 1, idempotencyKey, retryForSeconds: 0, timeoutSeconds: 2 }
    try {
      const { partitions } = await client.pull({ ...once, signal: this.#ending.signal })
      if (partitions.length > 0) receive(partitions)
    } catch {
      // Then they expire.
    }
  }

  #restFor(seconds = REST_SECONDS): void {
    if (this.#closing.signal.aborted) return
    const millis = seconds * 1000 * (1 + Math.random() * REST_SPREAD)
    this.#rest = setTimeout(() => {
      this.#rest = undefined
      this.turn()
    }, millis)
  }
}
