import { setImmediate as nextIteration } from 'node:timers/promises'

/** No iteration of the event loop takes this long under load, so a longer gap may be a stall. */
const STOOD_STILL_MILLIS = 100
/** How long it takes at most to read the requests that arrived during a stall. */
const CATCHING_UP_MILLIS = 1000

/**
 * Detects clients that disconnected while the node was stalled: suspended, asleep or waiting for its disk.
 *
 * After a stall, a request and the end of its connection are read in two iterations of the event loop, and a
 * pull may be answered in the first. So for a while after a stall, requests wait for one more iteration
 * before they are answered; otherwise, partitions would be leased to clients that are gone. A single request
 * after an idle period also waits for that iteration. Under steady load, no request does.
 */
export class StallTimer {
  #lastRequestAt = Number.NEGATIVE_INFINITY
  #caughtUpAt = 0

  /** Call at the start of a request. Returns what to await before it is answered; undefined for nothing. */
  noteRequest(): (() => Promise<void>) | undefined {
    const now = performance.now()
    if (now - this.#lastRequestAt > STOOD_STILL_MILLIS) this.#caughtUpAt = now + CATCHING_UP_MILLIS
    this.#lastRequestAt = now
    return now < this.#caughtUpAt ? nextIteration : undefined
  }
}
