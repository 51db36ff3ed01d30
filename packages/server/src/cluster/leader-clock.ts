import type { WallClock } from '../handoff/clock.ts'

/**
 * The leader's clock: the database's clock at the take-over plus monotonic time since then. If the clock of
 * this machine or of the database is set, it has no effect until the next take-over. The time never goes
 * back.
 */
export class LeaderClock {
  #ahead = 0
  #last = 0

  /** `now` is the database's clock, just read. */
  set(now: number): void {
    this.#ahead = now - performance.now()
  }

  readonly now: WallClock = () => {
    this.#last = Math.max(this.#last, Math.floor(performance.now() + this.#ahead))
    return this.#last
  }
}
