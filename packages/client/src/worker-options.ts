import type { Lease, PulledPartition } from '@baton/protocol'
import { MAX_WAIT_SECONDS } from '@baton/protocol/core'
import type { HandlingOutcome } from './outcome.ts'
import type { WorkerEventListener } from './worker-events.ts'

/** What a handler gets beside its partition. */
export interface HandlingContext {
  /**
   * Aborted when the lease is lost or can no longer be renewed in time (the reason is a `LeaseLostError`), or when
   * the worker stops and the time to finish is over (a `WorkerStoppedError`). Whoever goes on after a lost lease
   * works on what is in other hands.
   */
  readonly signal: AbortSignal
  /** The lease; `null` from a service that settles by handing out. */
  readonly lease: Lease | null
  /** Which attempt at the partition this is, beginning with 1. */
  readonly attempt: number
}

/**
 * Works on one partition. Returning means done, throwing means failed; an outcome that is returned, or a `Failed` or
 * `Released` that is thrown, says more. Delivery is at least once: a partition may have been worked on before. Where
 * the service was set to at most once, `lease` is null and the outcome is told by the `unreported` event alone.
 *
 * `Fields` is what descriptors have beyond the contract, where the service keeps it. It is a promise of the producers:
 * nothing checks it here.
 */
export type Handler<Fields extends object = object> = (
  partition: PulledPartition & Fields,
  context: HandlingContext,
  // biome-ignore lint/suspicious/noConfusingVoidType: a handler that returns nothing is the usual one
) => Promise<HandlingOutcome | void> | HandlingOutcome | void

export interface WorkerOptions {
  /**
   * How many partitions are worked on at once.
   * @defaultValue `1`
   */
  readonly concurrency?: number
  /**
   * How many further partitions are taken ahead, so that handlers never wait for the network. Worth it where a
   * partition takes milliseconds; where it takes long, they are better left to other workers. Only what comes under
   * leases is taken ahead, since nothing else can be given back.
   * @defaultValue `0`
   */
  readonly prefetch?: number
  /**
   * How many records may be in this worker's hands at once. The partition that reaches the budget is still taken,
   * and one is always taken, however large.
   * @defaultValue no limit
   */
  readonly recordBudget?: number
  /**
   * Only partitions of these compute tables, as `schema.table`. A worker that knows some tables only must say so: what it is
   * handed counts as in its hands.
   * @defaultValue any table
   */
  readonly tables?: readonly string[]
  /**
   * Only partitions of these tasks.
   * @defaultValue any task
   */
  readonly tasks?: readonly string[]
  /**
   * How long a pull waits at the service when nothing is ready, up to 60. Zero asks again and again instead.
   * @defaultValue `20`, and `0` with `untilIdle`
   */
  readonly waitSeconds?: number
  /**
   * Stop by itself as soon as nothing is ready and nothing is in hand, instead of waiting for more. Partitions that
   * wait for a back-off or a level barrier, or that other workers hold, are not ready and not waited for. With
   * `waitSeconds` beside it, it stops once a pull has waited that long in vain.
   * @defaultValue `false`
   */
  readonly untilIdle?: boolean
  /**
   * How long handlers may go on after {@link Worker.stop} before their signals are aborted.
   * @defaultValue `20`
   */
  readonly finishWithinSeconds?: number
  /**
   * How long, after that, handlers have to end and leases to be given back. A handler that still runs then keeps its
   * lease until it expires: giving it back would put the partition into two hands.
   * @defaultValue `5`
   */
  readonly releaseWithinSeconds?: number
  /** Aborting it stops the worker, like {@link Worker.stop}. */
  readonly signal?: AbortSignal
  /** Told about everything that happens. */
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

/** The options with what was left out, or a RangeError that says what is wrong. */
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
