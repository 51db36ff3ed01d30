import { BatonError } from './errors.ts'

/** Timers count up to here, which is 24.8 days. One that is set to more goes off at once. */
const LONGEST_TIMER_MILLIS = 2 ** 31 - 1

/** A timer for a time that the program chose. What is longer than a timer can count never comes, like Infinity. */
export function timer(act: () => void, millis: number): ReturnType<typeof setTimeout> | undefined {
  return millis <= LONGEST_TIMER_MILLIS ? setTimeout(act, millis) : undefined
}

/** Resolves after so many milliseconds; rejects with the signal's reason as soon as it is aborted. */
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
/** A service that asks for more is asked again all the same: it may have been restarted meanwhile. */
const LONGEST_RETRY_AFTER_MILLIS = 60_000

/**
 * How long to leave the service alone after so many failures in a row. Doubles, and is spread over its upper half,
 * so that a fleet that lost its service together does not come back together.
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

/** One failed try, told to whoever watches. */
export interface FailedTry {
  readonly error: BatonError
  /** How many in a row, this one included. */
  readonly failures: number
  readonly pauseMillis: number
}

interface PersistOptions {
  /** How long to go on trying; zero tries once. */
  readonly forMillis: number
  readonly signal?: AbortSignal | undefined
  readonly onFailure?: ((failed: FailedTry) => void) | undefined
}

/**
 * Tries until it succeeds, until what fails will not get better, or until the time is over. Only for calls that
 * may be repeated: every call of the hand-off may, a pull because it carries a key.
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
