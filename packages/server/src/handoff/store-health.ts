import type { Stopwatch } from './clock.ts'
import type { Log } from './log.ts'
import { LeaderUnavailable, StoreUnavailable } from './store.ts'

/** Logs once when the store cannot commit or its leader has changed, and once when it can commit again. */
export class StoreHealth {
  readonly #log: Log
  readonly #beginGrace: () => void
  #isOut = false
  #leaderChanged = false

  constructor(log: Log, beginGrace: () => void) {
    this.#log = log
    this.#beginGrace = beginGrace
  }

  failed(error: unknown): void {
    if (error instanceof LeaderUnavailable) {
      if (!this.#isOut && !this.#leaderChanged) this.#reportLeader(error)
      this.#leaderChanged = true
      this.#beginGrace()
    } else if (error instanceof StoreUnavailable) {
      if (!this.#isOut) this.#report(error)
      this.#isOut = true
      this.#beginGrace()
    } else this.#log.error({ err: error }, 'the hand-off failed')
  }

  /** Operators need the reason. The stack traces are for debugging. */
  #report(error: StoreUnavailable): void {
    const { code, message: reason } = error
    this.#log.error({ code, reason, cause: firstCauseOf(error) }, 'the store cannot commit')
    this.#log.debug({ err: error }, 'stack trace of the failed commit')
  }

  #reportLeader({ message: reason }: LeaderUnavailable): void {
    const next = 'requests in progress are answered with 503, other requests wait for the next leader'
    this.#log.warn({ reason }, `the leader is unavailable or has changed: ${next}`)
  }

  recovered(): void {
    if (!this.#isOut && !this.#leaderChanged) return
    this.#isOut = false
    this.#leaderChanged = false
    this.#beginGrace()
    this.#log.info({}, 'the store is available again; no lease expires during the grace period')
  }
}

/** The message of the root cause, if any. */
function firstCauseOf(error: Error): string | undefined {
  let cause = error.cause
  while (cause instanceof Error && cause.cause instanceof Error) cause = cause.cause
  return cause instanceof Error ? cause.message : undefined
}

/** A nearly full disk accepts some writes: there is space when nothing was refused for this long. */
const QUIET_MILLIS = 60_000

/** Logs once when space gets low, and once when it is back. No outage: small writes still succeed. */
export class DiskSpace {
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
        'the store has no free space: requests that do not fit are refused',
      )
    }
    this.#isShort = true
    this.#refusedAt = this.#stopwatch()
  }

  stored(): void {
    if (!this.#isShort || !this.#isQuiet()) return
    this.#isShort = false
    this.#log.info({}, 'the store has free space again')
  }

  #isQuiet(): boolean {
    return this.#stopwatch() - this.#refusedAt >= QUIET_MILLIS
  }
}

export function isDiskFull(error: unknown): error is StoreUnavailable {
  return error instanceof StoreUnavailable && error.code === 'store_full'
}
