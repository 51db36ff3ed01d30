import type { FailedTry } from './persistence.ts'
import type { WorkerEventListener } from './worker-events.ts'

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
