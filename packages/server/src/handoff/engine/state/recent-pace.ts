import type { Amount } from '../../views/queries.ts'

const STEP_MILLIS = 10_000
const STEPS = 7

/** What was finished within the last minute, in memory only. */
export class RecentPace {
  readonly #partitions = new Float64Array(STEPS)
  readonly #records = new Float64Array(STEPS)
  readonly #since: number
  #step: number

  constructor(now: number) {
    this.#since = now
    this.#step = Math.floor(now / STEP_MILLIS)
  }

  add(now: number, recordCount: number): void {
    this.#advance(now)
    const index = this.#step % STEPS
    this.#partitions[index] = (this.#partitions[index] ?? 0) + 1
    this.#records[index] = (this.#records[index] ?? 0) + recordCount
  }

  /** Null if nothing was finished. */
  perSecond(now: number): Amount | null {
    this.#advance(now)
    const partitions = this.#partitions.reduce((sum, one) => sum + one, 0)
    if (partitions === 0) return null
    const begin = Math.max((this.#step - STEPS + 1) * STEP_MILLIS, this.#since)
    const seconds = Math.max(now - begin, 1000) / 1000
    const records = this.#records.reduce((sum, one) => sum + one, 0)
    return { partitions: partitions / seconds, records: records / seconds }
  }

  /** Clears the steps that have passed. The clock may have been set back. */
  #advance(now: number): void {
    const step = Math.floor(now / STEP_MILLIS)
    for (let passed = 0; this.#step < step && passed < STEPS; passed += 1) {
      this.#step += 1
      this.#partitions[this.#step % STEPS] = 0
      this.#records[this.#step % STEPS] = 0
    }
    this.#step = Math.max(this.#step, step)
  }
}
