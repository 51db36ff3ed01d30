import type { Outcome, PulledPartition, RefusalCode } from '@baton/protocol'
import type { BatonError, LeaseLostError } from './errors.ts'
import type { FailedTry } from './persistence.ts'

/** What happens in a worker, in the order in which it happens; for logs, metrics and traces. */
export type WorkerEvent =
  /** Partitions came into this worker's hands. */
  | { readonly kind: 'pulled'; readonly partitions: readonly PulledPartition[] }
  /** The handler was called. */
  | { readonly kind: 'started'; readonly partition: PulledPartition }
  /**
   * The handler threw. The partition will be settled as failed; as released after an abort, or if it threw a
   * `Released`; and not at all where the service said that the lease is lost.
   */
  | { readonly kind: 'threw'; readonly partition: PulledPartition; readonly error: unknown }
  /** The service has taken note of how it ended. */
  | {
      readonly kind: 'settled'
      readonly partition: PulledPartition
      readonly outcome: Outcome
      /** Whether it failed for good: it is parked and waits for an operator. */
      readonly parked: boolean
      readonly reason: string | undefined
      /** From the call of the handler to its end. */
      readonly millis: number
    }
  /**
   * It ended, and the service is not told: it delivers at most once, so that the partition came without a lease and
   * counts as done since it was handed out. What failed is not tried again, and `released` means that it is lost.
   */
  | {
      readonly kind: 'unreported'
      readonly partition: PulledPartition
      readonly outcome: Outcome
      readonly reason: string | undefined
      /** From the call of the handler to its end; zero if it was never called. */
      readonly millis: number
    }
  /** The service refused the settlement: what was done under this lease does not count. */
  | {
      readonly kind: 'refused'
      readonly partition: PulledPartition
      readonly outcome: Outcome
      readonly code: RefusalCode
      readonly detail: string
    }
  /** The lease was lost while the partition was in this worker's hands; its handler was told by its signal. */
  | { readonly kind: 'lost'; readonly partition: PulledPartition; readonly error: LeaseLostError }
  /** So many leases were extended. */
  | { readonly kind: 'renewed'; readonly leases: number }
  /** A request failed and will be repeated. */
  | {
      readonly kind: 'away'
      readonly error: BatonError
      /** In a row, of this request. */
      readonly failures: number
      readonly pauseMillis: number
    }
  /** The service answers again. */
  | { readonly kind: 'back'; readonly awayMillis: number }
  /** Nothing more is pulled. `running` handlers are still at work. */
  | { readonly kind: 'stopping'; readonly running: number }
  /**
   * All is over. `abandoned` partitions could be neither settled nor given back: their leases will expire, and those
   * without a lease are not handed out again. With an `error` the worker could not go on: a wrong URL, a refused
   * token.
   */
  | { readonly kind: 'stopped'; readonly abandoned: number; readonly error: unknown }

export type WorkerEventListener = (event: WorkerEvent) => void

/** A listener that cannot hurt the worker: a broken log must not cost a lease. */
export function guarded(listener: WorkerEventListener | undefined): WorkerEventListener {
  if (listener === undefined) return () => {}
  return (event) => {
    try {
      listener(event)
    } catch (error) {
      console.error('a listener for worker events threw', error)
    }
  }
}

/** Tells when the service goes away and when it is back, whichever request notices. */
export class ServiceWatch {
  readonly #tell: WorkerEventListener
  #awaySince: number | undefined

  constructor(tell: WorkerEventListener) {
    this.#tell = tell
  }

  failed({ error, failures, pauseMillis }: FailedTry): void {
    this.#awaySince ??= performance.now()
    this.#tell({ kind: 'away', error, failures, pauseMillis })
  }

  answered(): void {
    if (this.#awaySince === undefined) return
    const awayMillis = performance.now() - this.#awaySince
    this.#awaySince = undefined
    this.#tell({ kind: 'back', awayMillis })
  }
}
