import type { Log } from './log.ts'
import { StoreUnavailable } from './store.ts'

/** Tells once that the store cannot commit, and once that it can again. */
export class Outage {
  readonly #log: Log
  readonly #beginGrace: () => void
  #isOn = false

  constructor(log: Log, beginGrace: () => void) {
    this.#log = log
    this.#beginGrace = beginGrace
  }

  failed(error: unknown): void {
    if (error instanceof StoreUnavailable) {
      if (!this.#isOn) this.#log.error({ err: error, code: error.code }, 'the store cannot commit')
      this.#isOn = true
      this.#beginGrace()
    } else this.#log.error({ err: error }, 'the hand-off failed')
  }

  over(): void {
    if (!this.#isOn) return
    this.#isOn = false
    this.#log.info({}, 'the store is back; leases are not taken until their holders had time to renew')
  }
}
