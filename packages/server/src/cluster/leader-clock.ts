import { type Stopwatch, systemStopwatch, type WallClock } from '../handoff/clock.ts'

/**
 * The time of the one that leads: the database's clock at the take-over plus steady time since. A clock that is set
 * meanwhile, of this machine or of the database, changes nothing until the next take-over; it never goes back.
 */
export class LeaderClock {
  readonly #stopwatch: Stopwatch
  #ahead = 0
  #last = 0

  constructor(stopwatch: Stopwatch = systemStopwatch) {
    this.#stopwatch = stopwatch
  }

  /** The database's clock was just read. */
  set(now: number): void {
    this.#ahead = now - this.#stopwatch()
  }

  readonly now: WallClock = () => {
    this.#last = Math.max(this.#last, Math.floor(this.#stopwatch() + this.#ahead))
    return this.#last
  }
}
