import { setImmediate as nextTurn } from 'node:timers/promises'

/** Longer than the loop of a node under load ever takes for a turn. */
const STOOD_STILL_MILLIS = 100
/** How long it takes at most to read what has gathered meanwhile. */
const CATCHING_UP_MILLIS = 1000

/**
 * Whoever asked while the node was stopped, slept or waited for its disk may have hung up since. What they sent and the end
 * of their connection are read in two turns of the loop, and a pull may be answered within the first. So a node that
 * stood still lets the loop turn once more before it answers, for a while, and nothing is handed to the dead unnoticed.
 * A lone request after a quiet time waits for that turn as well, and a node whose requests follow each other never does.
 */
export class Standstill {
  #lastAskedAt = Number.NEGATIVE_INFINITY
  #caughtUpAt = 0

  /** At the beginning of a request. Undefined: there is nothing to wait for before it is answered. */
  noteRequest(): (() => Promise<void>) | undefined {
    const now = performance.now()
    if (now - this.#lastAskedAt > STOOD_STILL_MILLIS) this.#caughtUpAt = now + CATCHING_UP_MILLIS
    this.#lastAskedAt = now
    return now < this.#caughtUpAt ? nextTurn : undefined
  }
}
