import type { LeaderRow } from '../handoff/stored.ts'
import type { LedRow } from './leader-link.ts'

const TICK_MILLIS = 1000
/** The first and the longest back-off of a deposed node. */
const FIRST_MILLIS = 5000
const LONGEST_MILLIS = 60_000
/** A leader that appends nothing for this many ticks may be gone. */
const STILL_TICKS = 3

interface BackOffOptions {
  readLeaderRow(): Promise<LeaderRow>
  pause(millis: number): Promise<void>
  readonly random?: () => number
}

/**
 * Two nodes that reach the database but not each other would depose one another forever. So a deposed node
 * that cannot reach the new leader backs off while the leader's entries advance: for longer each time, with
 * jitter. A node that was not deposed, or that follows again, never waits.
 */
export class TakeOverBackOff {
  readonly #options: BackOffOptions
  #deposed = 0

  constructor(options: BackOffOptions) {
    this.#options = options
  }

  /** Another node took over from this one. */
  deposed(): void {
    this.#deposed += 1
  }

  /** This node has connected to the leader. */
  followed(): void {
    this.#deposed = 0
  }

  get isNeeded(): boolean {
    return this.#deposed > 0
  }

  /** True if this node may take over from the leader of that row, false if another node leads by now. */
  async mayTakeOver(seen: LedRow): Promise<boolean> {
    const { readLeaderRow, pause, random = Math.random } = this.#options
    const longest = Math.min(FIRST_MILLIS * 2 ** (this.#deposed - 1), LONGEST_MILLIS)
    const ticks = this.isNeeded ? Math.ceil((longest * (1 + random())) / 2 / TICK_MILLIS) : 0
    let { last } = seen
    for (let [tick, still] = [0, 0]; tick < ticks && still < STILL_TICKS; tick += 1) {
      await pause(TICK_MILLIS)
      const row = await readLeaderRow()
      if (row.term !== seen.term) return false
      still = row.last === last ? still + 1 : 0
      last = row.last
    }
    return true
  }
}
