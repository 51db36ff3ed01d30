import type { Stopwatch } from './clock.ts'
import type { Log } from './log.ts'
import { firstCauseOf } from './outage.ts'
import { StoreUnavailable } from './store.ts'

/** On a disk that is full some things fit and others do not: there is room again when nothing was refused for so long. */
const QUIET_MILLIS = 60_000

/**
 * Tells once that the store has no room for all that is to be written, and once that it has again. That is no outage: what
 * is small goes through, so workers are heard and the node hands out what it has.
 */
export class Room {
  readonly #log: Log
  readonly #stopwatch: Stopwatch
  #isShort = false
  #refusedAt = Number.NEGATIVE_INFINITY

  constructor(log: Log, stopwatch: Stopwatch) {
    this.#log = log
    this.#stopwatch = stopwatch
  }

  refused(error: StoreUnavailable): void {
    if (!this.#isShort || this.#isQuiet()) {
      const { code, message: reason } = error
      this.#log.error(
        { code, reason, cause: firstCauseOf(error) },
        'the store has no room: what does not fit is refused',
      )
    }
    this.#isShort = true
    this.#refusedAt = this.#stopwatch()
  }

  /** A call-back was stored. */
  stored(): void {
    if (!this.#isShort || !this.#isQuiet()) return
    this.#isShort = false
    this.#log.info({}, 'the store has room again')
  }

  #isQuiet(): boolean {
    return this.#stopwatch() - this.#refusedAt >= QUIET_MILLIS
  }
}

export function isLackOfRoom(error: unknown): error is StoreUnavailable {
  return error instanceof StoreUnavailable && error.code === 'store_full'
}
