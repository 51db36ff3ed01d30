import type { PulledPartition } from '@baton/protocol'
import type { LeaseLostError, WorkerStoppedError } from './errors.ts'
import type { HandlingContext } from './worker-options.ts'

/** One partition in this worker's hands, from the pull until its handler has ended. */
export class Holding {
  readonly partition: PulledPartition
  readonly #controller = new AbortController()
  #lost: LeaseLostError | undefined

  constructor(partition: PulledPartition) {
    this.partition = partition
  }

  /** Set once the lease is lost: from then on nothing that was done here may count. */
  get lost(): LeaseLostError | undefined {
    return this.#lost
  }

  get isAborted(): boolean {
    return this.#controller.signal.aborted
  }

  get context(): HandlingContext {
    const { lease } = this.partition
    return { signal: this.#controller.signal, lease, attempt: lease?.attempt ?? 1 }
  }

  lose(error: LeaseLostError): void {
    this.#lost ??= error
    this.#controller.abort(error)
  }

  /** The lease is still ours; only the time is over. */
  interrupt(error: WorkerStoppedError): void {
    this.#controller.abort(error)
  }
}
