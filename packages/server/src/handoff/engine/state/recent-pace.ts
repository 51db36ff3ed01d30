import type { Seen } from '../../views/queries.ts'

/** A window ends when it has lasted this long and has this many partitions. */
const WINDOW_MILLIS = 30_000
const WINDOW_PARTITIONS = 10

interface Window {
  readonly since: number
  partitions: number
  records: number
}

const windowFrom = (since: number): Window => ({ since, partitions: 0, records: 0 })

/** What was finished of a task or a table in the last two windows, in memory only. */
export class RecentPace {
  #before: Window
  #current: Window
  /** When something was last finished. */
  #lastAt: number

  constructor(since: number) {
    this.#before = windowFrom(since)
    this.#current = this.#before
    this.#lastAt = since
  }

  add(now: number, recordCount: number): void {
    const { since, partitions } = this.#current
    if (now - since >= WINDOW_MILLIS && partitions >= WINDOW_PARTITIONS) {
      this.#before = this.#current
      this.#current = windowFrom(now)
    }
    this.#current.partitions += 1
    this.#current.records += recordCount
    this.#lastAt = now
  }

  /** The clock may have been set back. */
  seen(now: number): Seen {
    const [before, current] = [this.#before, this.#current]
    const sum = (unit: 'partitions' | 'records') =>
      current === before ? before[unit] : before[unit] + current[unit]
    return {
      partitions: sum('partitions'),
      records: sum('records'),
      seconds: Math.max(now - before.since, 1000) / 1000,
      idleMillis: now - this.#lastAt,
    }
  }
}
