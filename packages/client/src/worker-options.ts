import type { Lease, Outcome, PulledPartition, RefusalCode } from '@baton/protocol'
import { MAX_WAIT_SECONDS } from '@baton/protocol/core'
import type { BatonError, LeaseLostError } from './errors.ts'
import type { HandlingOutcome } from './outcome.ts'
import type { FailedTry } from './retry.ts'
import type { WorkProgress } from './work-report.ts'

/** What a handler gets in addition to its partition. */
export interface HandlingContext {
  /**
   * Aborted when the lease is lost or cannot be renewed in time (the reason is a `LeaseLostError`), or when
   * the worker is stopping and the time to finish is over (a `WorkerStoppedError`). After a lost lease,
   * another worker may have the partition.
   */
  readonly signal: AbortSignal
  /** The lease. `null` if the service delivers at most once and settles partitions when it hands them out. */
  readonly lease: Lease | null
  /** The number of this attempt at the partition, starting with 1. */
  readonly attempt: number
  /** What the last worker of the partition saved to go on from; `null` if there is nothing. */
  readonly checkpoint: string | null
  /**
   * Reports how far the work is. Sent with the next renewal, every ten seconds at most; a later report replaces
   * an earlier one. Does nothing if there is no lease.
   */
  readonly progress: (progress: WorkProgress) => void
  /**
   * Saves a text of at most 4,096 bytes of UTF-8, which the next lease of the partition carries; `null` clears
   * it. Sent at once. Resolves when it is stored. Need not be awaited: what was not sent when the handler fails
   * or releases goes with its settlement, and a partition that is done needs none. Rejects with a `RangeError`
   * if it is too long, with a `LeaseLostError` if the lease was lost.
   */
  readonly saveCheckpoint: (checkpoint: string | null) => Promise<void>
}

/**
 * Works on one partition. Returning means done, throwing means failed. To say more, return an outcome, or
 * throw a `Failed` or `Released`. Delivery is at least once: a partition may have been worked on before. If
 * the service is configured for at most once, `lease` is null, and only the `unreported` event reports the
 * outcome.
 *
 * `Fields` are the fields of descriptors beyond the contract, if the service keeps them. Producers must
 * ensure the type; it is not checked here.
 */
export type Handler<Fields extends object = object> = (
  partition: PulledPartition & Fields,
  context: HandlingContext,
  // biome-ignore lint/suspicious/noConfusingVoidType: most handlers return nothing
) => Promise<HandlingOutcome | void> | HandlingOutcome | void

export interface WorkerOptions {
  /**
   * The most partitions that are handled at the same time.
   * @defaultValue `1`
   */
  readonly concurrency?: number
  /**
   * How many further partitions to prefetch, so that handlers do not wait for the network. Useful if a
   * partition takes milliseconds. If it takes long, leave the partitions to other workers. Only partitions
   * under leases are prefetched, because others cannot be released.
   * @defaultValue `0`
   */
  readonly prefetch?: number
  /**
   * The most records of all partitions that this worker holds. The partition that reaches the budget is still
   * pulled, and one partition is always pulled, however large.
   * @defaultValue no limit
   */
  readonly recordBudget?: number
  /**
   * Pull only partitions of these compute tables, as `schema.table`. A worker that supports only some tables
   * must set this, because it holds every partition that it is handed.
   * @defaultValue any table
   */
  readonly tables?: readonly string[]
  /**
   * Pull only partitions of these tasks.
   * @defaultValue any task
   */
  readonly tasks?: readonly string[]
  /**
   * How long a pull waits at the service if nothing is ready, up to 60. Zero polls instead.
   * @defaultValue `20`, and `0` with `untilIdle`
   */
  readonly waitSeconds?: number
  /**
   * Stop as soon as nothing is ready and nothing is held, instead of waiting for more. Partitions in a
   * back-off, behind a level barrier or leased to other workers are not ready, and are not waited for. With
   * `waitSeconds`, the worker stops after a pull waited that long and returned nothing.
   * @defaultValue `false`
   */
  readonly untilIdle?: boolean
  /**
   * How long handlers may continue after {@link Worker.stop} before their signals are aborted.
   * @defaultValue `20`
   */
  readonly finishWithinSeconds?: number
  /**
   * How long, after that, handlers may take to end and leases to be released. A handler that still runs then
   * keeps its lease until it expires: releasing it would let two workers handle the partition.
   * @defaultValue `5`
   */
  readonly releaseWithinSeconds?: number
  /** Aborting it stops the worker, like {@link Worker.stop}. */
  readonly signal?: AbortSignal
  /** Called for every event of the worker. */
  readonly onEvent?: WorkerEventListener
  /**
   * Wraps each call of the handler, for instance in a span. Must call `handle` once and return its result.
   *
   * @example
   * ```ts
   * around: (partition, handle) => tracer.startActiveSpan(partition.partition_name, async (span) => {
   *   try { return await handle() } finally { span.end() }
   * })
   * ```
   */
  readonly around?: <T>(partition: PulledPartition, handle: () => Promise<T>) => Promise<T>
}

const defaults = {
  concurrency: 1,
  prefetch: 0,
  recordBudget: Number.POSITIVE_INFINITY,
  untilIdle: false,
  finishWithinSeconds: 20,
  releaseWithinSeconds: 5,
}

const DEFAULT_WAIT_SECONDS = 20

export type WorkerSettings = typeof defaults & { readonly waitSeconds: number }

/** Fills in the defaults. Throws a RangeError that explains an invalid option. */
export function settingsOf(options: WorkerOptions): WorkerSettings {
  const { concurrency, prefetch, recordBudget, untilIdle } = { ...defaults, ...options }
  const { waitSeconds = untilIdle ? 0 : DEFAULT_WAIT_SECONDS } = options
  const { finishWithinSeconds, releaseWithinSeconds } = { ...defaults, ...options }
  const demand = (holds: boolean, rule: string) => {
    if (!holds) throw new RangeError(rule)
  }
  demand(Number.isSafeInteger(concurrency) && concurrency >= 1, 'concurrency must be a positive integer')
  demand(Number.isSafeInteger(prefetch) && prefetch >= 0, 'prefetch must be a non-negative integer')
  demand(recordBudget > 0, 'recordBudget must be positive')
  demand(
    waitSeconds >= 0 && waitSeconds <= MAX_WAIT_SECONDS,
    `waitSeconds must be between 0 and ${MAX_WAIT_SECONDS}`,
  )
  demand(finishWithinSeconds >= 0, 'finishWithinSeconds must not be negative')
  demand(releaseWithinSeconds >= 0, 'releaseWithinSeconds must not be negative')
  return {
    concurrency,
    prefetch,
    recordBudget,
    waitSeconds: Math.ceil(waitSeconds),
    untilIdle,
    finishWithinSeconds,
    releaseWithinSeconds,
  }
}

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
