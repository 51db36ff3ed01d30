import type { Head, LedHead } from './head.ts'

const TICK_MILLIS = 1000
/** How long a node that was deposed leaves the leader alone, at first and at most. */
const FIRST_MILLIS = 5000
const LONGEST_MILLIS = 60_000
/** A leader that appends nothing for so long may be gone. */
const STILL_TICKS = 3

export interface HoldBackOptions {
  readHead(): Promise<Head>
  pause(millis: number): Promise<void>
  readonly random?: () => number
}

/**
 * Two nodes that reach the database and not each other would depose one another without end. So a node that was deposed,
 * and cannot reach the one that leads now, leaves it alone for a while as long as its entries advance: each time for
 * longer, and for a random part of it. One that was not deposed, or follows again, never waits.
 */
export class HoldBack {
  readonly #options: HoldBackOptions
  #deposed = 0

  constructor(options: HoldBackOptions) {
    this.#options = options
  }

  /** Another node took over from this one. */
  deposed(): void {
    this.#deposed += 1
  }

  /** This node reaches the one that leads. */
  followed(): void {
    this.#deposed = 0
  }

  get isNeeded(): boolean {
    return this.#deposed > 0
  }

  /** True: this node may take over from the leader of that head. False: another leads meanwhile. */
  async mayTakeOver(seen: LedHead): Promise<boolean> {
    const { readHead, pause, random = Math.random } = this.#options
    const longest = Math.min(FIRST_MILLIS * 2 ** (this.#deposed - 1), LONGEST_MILLIS)
    const ticks = this.isNeeded ? Math.ceil((longest * (1 + random())) / 2 / TICK_MILLIS) : 0
    let { last } = seen
    for (let [tick, still] = [0, 0]; tick < ticks && still < STILL_TICKS; tick += 1) {
      await pause(TICK_MILLIS)
      const head = await readHead()
      if (head.term !== seen.term) return false
      still = head.last === last ? still + 1 : 0
      last = head.last
    }
    return true
  }
}
