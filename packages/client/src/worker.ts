import { clientOf, type ServiceAddress } from './client.ts'
import { guarded } from './guarded.ts'
import { HandOffLoop } from './hand-off-loop.ts'
import { Holdings } from './holdings.ts'
import { LeaseKeeper } from './lease-keeper.ts'
import { timer } from './retry.ts'
import {
  type Handler,
  ServiceWatch,
  settingsOf,
  type WorkerEventListener,
  type WorkerOptions,
  type WorkerSettings,
} from './worker-options.ts'

/** A deadline that can be moved earlier but not later. */
export class Deadline {
  readonly reached: Promise<void>
  readonly #reach: () => void
  #at = Number.POSITIVE_INFINITY
  #timer: ReturnType<typeof setTimeout> | undefined

  constructor() {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.reached = promise
    this.#reach = resolve
  }

  within(seconds: number): void {
    const at = performance.now() + seconds * 1000
    if (at >= this.#at) return
    this.#at = at
    clearTimeout(this.#timer)
    this.#timer = timer(this.#reach, seconds * 1000)
  }

  /** Clears the timer. */
  forget(): void {
    clearTimeout(this.#timer)
  }
}

/** How long a stopping worker may take. The defaults are the options of the worker. */
export interface StopOptions {
  /** See {@link WorkerOptions.finishWithinSeconds}. */
  readonly finishWithinSeconds?: number
  /** See {@link WorkerOptions.releaseWithinSeconds}. */
  readonly releaseWithinSeconds?: number
}

/**
 * Pulls partitions and calls a handler for each. Renews the lease while the handler runs, settles when it
 * ends, and reconnects after an outage of the service.
 *
 * @example
 * ```ts
 * const worker = new Worker('http://127.0.0.1:7070', async (partition, { signal }) => {
 *   const records = await load(partition.computeTableName, partition.partition_name, signal)
 *   return { records }
 * }, { concurrency: 8 })
 * process.once('SIGTERM', () => worker.stop())
 * await worker.run()
 * ```
 */
export class Worker<Fields extends object = object> implements AsyncDisposable {
  readonly #settings: WorkerSettings
  readonly #signal: AbortSignal | undefined
  readonly #tell: WorkerEventListener
  readonly #loop: HandOffLoop
  readonly #holdings: Holdings
  readonly #finish = new Deadline()
  readonly #release = new Deadline()
  readonly #over = Promise.withResolvers<void>()
  #started = false
  #stopping = false
  #error: unknown

  constructor(service: ServiceAddress, handler: Handler<Fields>, options: WorkerOptions = {}) {
    if (typeof handler !== 'function') throw new TypeError('the handler must be a function')
    const client = clientOf(service)
    this.#settings = settingsOf(options)
    this.#signal = options.signal
    this.#tell = guarded(options.onEvent)
    const watch = new ServiceWatch(this.#tell)
    const onRenewed = (leases: number) => this.#tell({ kind: 'renewed', leases })
    this.#holdings = new Holdings({
      handler: handler as Handler,
      around: options.around,
      settings: this.#settings,
      keeper: new LeaseKeeper({ client, watch, onRenewed }),
      loop: () => this.#loop,
      tell: this.#tell,
    })
    this.#loop = new HandOffLoop({
      client,
      watch,
      waitSeconds: this.#settings.waitSeconds,
      chosen: { tables: options.tables, tasks: options.tasks },
      capacity: () => this.#holdings.capacity(),
      receive: (partitions) => this.#holdings.receive(partitions),
      isBusy: () => this.#holdings.running > 0,
      onNothingReady: () => {
        if (this.#settings.untilIdle && this.#holdings.isEmpty) void this.stop()
      },
      onHopeless: (error) => {
        this.#error ??= error
        void this.stop()
      },
    })
    // A program that does not await the end gets the error through the `stopped` event.
    this.#over.promise.catch(() => {})
  }

  /** The number of running handlers. */
  get running(): number {
    return this.#holdings.running
  }

  /** Whether the worker is stopping. */
  get isStopping(): boolean {
    return this.#stopping
  }

  /** Resolves when the worker has stopped. Rejects if it stopped because of an error. */
  get stopped(): Promise<void> {
    return this.#over.promise
  }

  /** Starts pulling. Returns at once, so that `await using worker = new Worker(…).start()` reads well. */
  start(): this {
    if (this.#started) return this
    this.#started = true
    if (this.#signal?.aborted) void this.stop()
    else {
      this.#signal?.addEventListener('abort', this.#onAbort, { once: true })
      this.#loop.advance()
    }
    return this
  }

  /** Starts pulling, and resolves when the worker has stopped. */
  run(): Promise<void> {
    return this.start().stopped
  }

  /**
   * Stops pulling, lets handlers finish, and releases partitions that did not finish in time. A second call
   * can shorten the remaining time but not extend it. Resolves when the worker has stopped.
   */
  async stop(options: StopOptions = {}): Promise<void> {
    const { finishWithinSeconds, releaseWithinSeconds } = { ...this.#settings, ...options }
    this.#finish.within(finishWithinSeconds)
    if (this.#stopping) this.#release.within(finishWithinSeconds + releaseWithinSeconds)
    else {
      this.#stopping = true
      void this.#stop(releaseWithinSeconds)
    }
    await this.#over.promise.catch(() => {})
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop()
  }

  readonly #onAbort = () => void this.stop()

  async #stop(releaseWithinSeconds: number): Promise<void> {
    this.#signal?.removeEventListener('abort', this.#onAbort)
    this.#tell({ kind: 'stopping', running: this.#holdings.running })
    this.#holdings.close()
    // An aborted pull may still return partitions, which are then released.
    const emptied = this.#loop.close().then(() => this.#holdings.emptied())
    await Promise.race([emptied, this.#finish.reached])
    this.#holdings.interrupt()
    this.#release.within(releaseWithinSeconds)
    await Promise.race([emptied, this.#release.reached])
    this.#loop.end()
    this.#finish.forget()
    this.#release.forget()
    this.#tell({ kind: 'stopped', abandoned: this.#holdings.abandoned, error: this.#error })
    if (this.#error === undefined) this.#over.resolve()
    else this.#over.reject(this.#error)
  }
}
