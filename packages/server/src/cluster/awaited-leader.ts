import { LeaderUnavailable, StoreUnavailable } from '../handoff/store.ts'

/** How long requests wait for a leader, counted from when there was none. */
const PATIENCE_MILLIS = 3000
const MOST_WAITING = 10_000

interface Waiting<Leader> {
  resolve(leader: Leader): void
  reject(error: unknown): void
}

/** The leader, which may be missing for a while. Requests wait for the next one, within bounds. */
export class AwaitedLeader<Leader> {
  #current: Leader | null = null
  #reason: string
  #isFault = false
  #since = performance.now()
  #timer: NodeJS.Timeout | undefined
  readonly #waiting = new Set<Waiting<Leader>>()

  constructor(reason: string) {
    this.#reason = reason
  }

  get current(): Leader | null {
    return this.#current
  }

  /** Restarts the time limit. */
  begin(reason: string): void {
    this.#reason = reason
    this.#isFault = false
    this.#since = performance.now()
  }

  found(leader: Leader): void {
    this.#current = leader
    clearTimeout(this.#timer)
    this.#timer = undefined
    for (const { resolve } of this.#waiting) resolve(leader)
    this.#waiting.clear()
  }

  /** `isFault`: the store prevents nodes from taking over, rather than the take-over just taking time. */
  missing(reason: string, isFault = false): void {
    if (this.#current !== null) this.begin(reason)
    this.#reason = reason
    this.#isFault = isFault
    this.#current = null
  }

  /** There will be no further leader for this node. */
  close(reason: string): void {
    this.#current = null
    this.#reason = reason
    this.#since = Number.NEGATIVE_INFINITY
    this.#giveUp()
  }

  async whenFound(): Promise<Leader> {
    if (this.#current !== null) return this.#current
    const left = this.#since + PATIENCE_MILLIS - performance.now()
    if (left <= 0 || this.#waiting.size >= MOST_WAITING) throw this.unavailable()
    this.#timer ??= setTimeout(() => this.#giveUp(), left)
    return new Promise((resolve, reject) => this.#waiting.add({ resolve, reject }))
  }

  unavailable(): StoreUnavailable {
    const detail = `there is no leader: ${this.#reason}`
    return this.#isFault ? new StoreUnavailable('store_unavailable', detail) : new LeaderUnavailable(detail)
  }

  #giveUp(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    for (const { reject } of this.#waiting) reject(this.unavailable())
    this.#waiting.clear()
  }
}
