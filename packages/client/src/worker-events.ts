import type { Outcome, PulledPartition, RefusalCode } from '@baton/protocol'
import type { BatonError, LeaseLostError } from './errors.ts'
import type { FailedTry } from './persistence.ts'

/** The events of a worker, in the order in which they happen. For logs, metrics and traces. */
export type WorkerEvent =
  /** Partitions were pulled. */
  | { readonly kind: 'pulled'; readonly partitions: readonly PulledPartition[] }
  /** The handler was called. */
  | { readonly kind: 'started'; readonly partition: PulledPartition }
  /**
   * The handler threw. The partition will be settled as failed; as released after an abort or a thrown
   * `Released`; and not at all if the service reported that the lease is lost.
   */
  | { readonly kind: 'threw'; readonly partition: PulledPartition; readonly error: unknown }
  /** The service accepted the settlement. */
  | {
      readonly kind: 'settled'
      readonly partition: PulledPartition
      readonly outcome: Outcome
      /** Whether the partition is parked: it has failed for good and waits for an operator. */
      readonly parked: boolean
      readonly reason: string | undefined
      /** From the call of the handler to its end. */
      readonly millis: number
    }
  /**
   * The handler ended, and the outcome is not sent: the service delivers at most once, so the partition came
   * without a lease and counted as done when it was handed out. A failed partition is not retried, and a
   * released one is lost.
   */
  | {
      readonly kind: 'unreported'
      readonly partition: PulledPartition
      readonly outcome: Outcome
      readonly reason: string | undefined
      /** From the call of the handler to its end. Zero if it was never called. */
      readonly millis: number
    }
  /** The service refused the settlement: the work under this lease does not count. */
  | {
      readonly kind: 'refused'
      readonly partition: PulledPartition
      readonly outcome: Outcome
      readonly code: RefusalCode
      readonly detail: string
    }
  /** The lease was lost while this worker held the partition. The handler's signal was aborted. */
  | { readonly kind: 'lost'; readonly partition: PulledPartition; readonly error: LeaseLostError }
  /** The number of leases that were extended. */
  | { readonly kind: 'renewed'; readonly leases: number }
  /** A request failed and will be repeated. */
  | {
      readonly kind: 'away'
      readonly error: BatonError
      /** The number of failures of this request in a row. */
      readonly failures: number
      readonly pauseMillis: number
    }
  /** The service answers again. */
  | { readonly kind: 'back'; readonly awayMillis: number }
  /** The worker stopped pulling. `running` handlers have not ended yet. */
  | { readonly kind: 'stopping'; readonly running: number }
  /**
   * The worker has stopped. `abandoned` partitions were neither settled nor released: their leases will
   * expire, and those without a lease are not handed out again. With an `error`, the worker could not
   * continue: a wrong URL, a refused token.
   */
  | { readonly kind: 'stopped'; readonly abandoned: number; readonly error: unknown }

export type WorkerEventListener = (event: WorkerEvent) => void

/** Wraps a listener so that its errors do not reach the worker: a broken log must not cost a lease. */
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

/** Reports when the service becomes unavailable and when it is back, whichever request notices. */
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
