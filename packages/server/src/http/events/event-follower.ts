import type { ServerResponse } from 'node:http'
import type { Tick } from '../../handoff/events.ts'
import { resetText, tickText } from './event-text.ts'

/** A follower may lag behind by so much before ticks are kept from it. */
const MOST_UNREAD_BYTES = 512 * 1024
/** A follower that reads nothing for so many heartbeats is let go. */
const MOST_BEATS_BEHIND = 2

/**
 * One open event stream. What its reader has not taken yet waits in memory, so there is a bound: beyond it ticks
 * are skipped, and when the reader has caught up it is told to look at everything anew.
 */
export class EventFollower {
  readonly #response: ServerResponse
  #lastId = ''
  #isBehind = false
  #beatsBehind = 0

  constructor(response: ServerResponse) {
    this.#response = response
    response.on('drain', () => this.#caughtUp())
    // A connection that broke is closed by Node; there is nobody to answer.
    response.on('error', () => {})
  }

  tell(tick: Tick): void {
    this.#lastId = tick.id
    if (this.#isBehind) return
    if (this.#response.writableLength > MOST_UNREAD_BYTES) this.#isBehind = true
    else this.#response.write(tickText(tick))
  }

  /** A comment line: proves to both ends, and to proxies between them, that the connection lives. */
  beat(): void {
    if (!this.#isBehind) {
      this.#response.write(':\n\n')
      return
    }
    this.#beatsBehind += 1
    if (this.#beatsBehind > MOST_BEATS_BEHIND) this.#response.destroy()
  }

  end(): void {
    this.#response.end()
    // Whoever does not read would keep the node from closing.
    if (this.#isBehind) this.#response.destroy()
  }

  #caughtUp(): void {
    if (!this.#isBehind) return
    this.#isBehind = false
    this.#beatsBehind = 0
    this.#response.write(resetText(this.#lastId))
  }
}
