/** How long to wait after failures. All of it follows from the first wait: tests make that a short one. */
export class Patience {
  readonly #firstMillis: number
  readonly #random: () => number

  constructor(firstMillis: number, random: () => number = Math.random) {
    this.#firstMillis = firstMillis
    this.#random = random
  }

  /** Before the next attempt at an event: 5 s, 15 s, 45 s … 8 hours, if the first is 5 s. */
  afterAttempt(attempts: number): number {
    return this.#jittered(Math.min(this.#firstMillis * 3 ** (attempts - 1), this.#firstMillis * 5760))
  }

  /** Before the next try at a target that failed so often in a row: 5 s, 10 s, 20 s … 10 minutes. */
  afterFailures(failures: number): number {
    return this.#jittered(Math.min(this.#firstMillis * 2 ** (failures - 1), this.#firstMillis * 120))
  }

  #jittered(millis: number): number {
    return Math.round(millis * (0.8 + 0.4 * this.#random()))
  }
}

/** With the usual waits this is three days. */
export const MOST_ATTEMPTS = 17
