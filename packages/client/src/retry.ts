import { BatonError } from './errors.ts'

/** The longest delay of a timer, 24.8 days. A timer with a longer delay fires at once. */
const LONGEST_TIMER_MILLIS = 2 ** 31 - 1

/**
 * A timer for a delay that the program configured. A delay above the maximum, such as Infinity, never fires.
 */
export function timer(act: () => void, millis: number): ReturnType<typeof setTimeout> | undefined {
  return millis <= LONGEST_TIMER_MILLIS ? setTimeout(act, millis) : undefined
}

/** Resolves after this many milliseconds. Rejects with the signal's reason as soon as it is aborted. */
export function pause(millis: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) {
      reject(signal.reason)
      return
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', interrupt)
      resolve()
    }, millis)
    const interrupt = () => {
      clearTimeout(timer)
      reject(signal?.reason)
    }
    signal?.addEventListener('abort', interrupt, { once: true })
  })
}

const FIRST_PAUSE_MILLIS = 200
const LONGEST_PAUSE_MILLIS = 15_000
/** A longer retry delay of the service is cut to this: the service may have been restarted meanwhile. */
const LONGEST_RETRY_AFTER_MILLIS = 60_000

/**
 * The back-off after n failures in a row. It doubles, and is random within its upper half, so that clients
 * that lost the service at the same time do not reconnect at the same time.
 */
export function backOffMillis(
  failures: number,
  retryAfterSeconds = 0,
  random: () => number = Math.random,
): number {
  const full = Math.min(FIRST_PAUSE_MILLIS * 2 ** Math.min(failures - 1, 20), LONGEST_PAUSE_MILLIS)
  const asked = Math.min(retryAfterSeconds * 1000, LONGEST_RETRY_AFTER_MILLIS)
  const spread = random()
  return Math.max(full * (0.5 + 0.5 * spread), asked * (1 + 0.25 * spread))
}

/** One failed try, as reported to listeners. */
export interface FailedTry {
  readonly error: BatonError
  /** The number of failures in a row, including this one. */
  readonly failures: number
  readonly pauseMillis: number
}

interface PersistOptions {
  /** How long to retry. Zero means a single try. */
  readonly forMillis: number
  readonly signal?: AbortSignal | undefined
  readonly onFailure?: ((failed: FailedTry) => void) | undefined
}

/**
 * Retries until the call succeeds, fails with an error that is not retryable, or runs out of time. Only for
 * calls that may be repeated: every call of the hand-off may, a pull because it has an idempotency key.
 */
export async function persist<T>(attempt: () => Promise<T>, options: PersistOptions): Promise<T> {
  const { forMillis, signal, onFailure } = options
  const begun = performance.now()
  for (let failures = 1; ; failures += 1) {
    try {
      return await attempt()
    } catch (error) {
      if (!(error instanceof BatonError) || !error.retryable || signal?.aborted) throw error
      const pauseMillis = backOffMillis(failures, error.retryAfterSeconds)
      if (performance.now() - begun + pauseMillis > forMillis) throw error
      onFailure?.({ error, failures, pauseMillis })
      await pause(pauseMillis, signal)
    }
  }
}
