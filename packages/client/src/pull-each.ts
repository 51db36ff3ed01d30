import type { Lease, PulledPartition } from '@baton/protocol'
import type { ServiceAddress } from './client.ts'
import type { DoneOutcome, FailedOutcome, HandlingOutcome, ReleasedOutcome } from './outcome.ts'
import type { WorkProgress } from './work-report.ts'
import { Worker } from './worker.ts'
import type { HandlingContext, WorkerOptions } from './worker-options.ts'

/** A partition that the program holds. Its lease is renewed until its outcome is set. */
export class HeldPartition<Fields extends object = object> implements AsyncDisposable {
  readonly partition: PulledPartition & Fields
  readonly #context: HandlingContext
  readonly #settle: (outcome: HandlingOutcome) => void
  #settled = false

  constructor(
    partition: PulledPartition & Fields,
    context: HandlingContext,
    settle: (outcome: HandlingOutcome) => void,
  ) {
    this.partition = partition
    this.#context = context
    this.#settle = settle
  }

  /** Aborted when the lease is lost, or when the loop has ended and the time to finish is over. */
  get signal(): AbortSignal {
    return this.#context.signal
  }

  get lease(): Lease | null {
    return this.#context.lease
  }

  /** The number of this attempt at the partition, starting with 1. */
  get attempt(): number {
    return this.#context.attempt
  }

  /** What the last worker of the partition saved to go on from; `null` if there is nothing. */
  get checkpoint(): string | null {
    return this.#context.checkpoint
  }

  /** See {@link HandlingContext.progress}. */
  progress(progress: WorkProgress): void {
    this.#context.progress(progress)
  }

  /** See {@link HandlingContext.saveCheckpoint}. */
  saveCheckpoint(checkpoint: string | null): Promise<void> {
    return this.#context.saveCheckpoint(checkpoint)
  }

  done(details: Omit<DoneOutcome, 'outcome'> = {}): void {
    this.#settleOnce({ ...details, outcome: 'done' })
  }

  fail(details: Omit<FailedOutcome, 'outcome'> = {}): void {
    this.#settleOnce({ ...details, outcome: 'failed' })
  }

  release(details: Omit<ReleasedOutcome, 'outcome'> = {}): void {
    this.#settleOnce({ ...details, outcome: 'released' })
  }

  /** Releases the partition if it has no outcome yet. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.release({ reason: 'the loop ended without an outcome' })
  }

  /** Only the first outcome counts. */
  #settleOnce(outcome: HandlingOutcome): void {
    if (this.#settled) return
    this.#settled = true
    this.#settle(outcome)
  }
}

/**
 * Yields partitions one after the other, for programs that are a loop. At most `concurrency` partitions are
 * held without an outcome. With the default of one, set the outcome of each partition before you request the
 * next. The outcome is sent together with the next pull, or when the loop ends.
 *
 * @example
 * ```ts
 * for await (const held of pullEach('http://127.0.0.1:7070')) {
 *   await using _ = held // released if anything below throws
 *   await load(held.partition, held.signal)
 *   held.done()
 * }
 * ```
 */
export async function* pullEach<Fields extends object = object>(
  service: ServiceAddress,
  options: WorkerOptions = {},
): AsyncGenerator<HeldPartition<Fields>, void, undefined> {
  const arrived: HeldPartition<Fields>[] = []
  const outcomes = new HeldOutcomes()
  let wake = () => {}
  let left = false
  const worker = new Worker<Fields>(
    service,
    (partition, context) =>
      new Promise<HandlingOutcome>((settle) => {
        // A pull in progress may still return partitions without a lease. They cannot be released, and the
        // loop that would handle them has ended.
        if (left) return settle(loopEnded)
        arrived.push(new HeldPartition(partition, context, (outcome) => outcomes.add(() => settle(outcome))))
        wake()
      }),
    options,
  )
  let running = true
  const over = worker.run().finally(() => {
    running = false
    wake()
  })
  over.catch(() => {})
  try {
    while (true) {
      outcomes.send()
      const next = arrived.shift()
      if (next !== undefined) {
        outcomes.hold()
        yield next
      } else if (running) await new Promise<void>((resolve) => (wake = resolve))
      else break
    }
    await over
  } finally {
    left = true
    // Stop first, so that settling does not pull new partitions.
    const stopped = worker.stop()
    outcomes.send()
    for (const held of arrived) held.release(loopEnded)
    await stopped
  }
}

const loopEnded = { outcome: 'released', reason: 'the loop has ended' } as const

/**
 * Outcomes to pass to the worker. Held back while the loop's body runs, because the loop may be about to end.
 */
class HeldOutcomes {
  readonly #waiting: (() => void)[] = []
  #held = false

  add(settle: () => void): void {
    if (this.#held) this.#waiting.push(settle)
    else settle()
  }

  hold(): void {
    this.#held = true
  }

  send(): void {
    this.#held = false
    for (const settle of this.#waiting.splice(0)) settle()
  }
}
