import { LeaderUnavailable, StoreUnavailable } from '../handoff/store.ts'

/** How long requests wait for a leader, counted from when there was none. */
const PATIENCE_MILLIS = 3000
/** The most batches and views that may wait. A batch has the requests of many clients. */
const MOST_WAITING = 1000

interface Waiting<Holder> {
  resolve(holder: Holder): void
  reject(error: unknown): void
}

/**
 * A holder that may be missing for short periods. Callers wait for the next one, up to a time limit and a
 * maximum number of callers.
 */
export class Vacancy<Holder> {
  #holder: Holder | null = null
  #reason: string
  #isFault = false
  #since = performance.now()
  #timer: NodeJS.Timeout | undefined
  readonly #waiting = new Set<Waiting<Holder>>()

  constructor(reason: string) {
    this.#reason = reason
  }

  get holder(): Holder | null {
    return this.#holder
  }

  /** Restarts the time limit. */
  begin(reason: string): void {
    this.#reason = reason
    this.#isFault = false
    this.#since = performance.now()
  }

  fill(holder: Holder): void {
    this.#holder = holder
    clearTimeout(this.#timer)
    this.#timer = undefined
    for (const { resolve } of this.#waiting) resolve(holder)
    this.#waiting.clear()
  }

  /** `isFault`: the store prevents nodes from taking over, rather than the take-over just taking time. */
  empty(reason: string, isFault = false): void {
    if (this.#holder !== null) this.begin(reason)
    this.#reason = reason
    this.#isFault = isFault
    this.#holder = null
  }

  /** There will be no further holder. */
  close(reason: string): void {
    this.#holder = null
    this.#reason = reason
    this.#since = Number.NEGATIVE_INFINITY
    this.#giveUp()
  }

  async filled(): Promise<Holder> {
    if (this.#holder !== null) return this.#holder
    const left = this.#since + PATIENCE_MILLIS - performance.now()
    if (left <= 0 || this.#waiting.size >= MOST_WAITING) throw this.#unavailable()
    this.#timer ??= setTimeout(() => this.#giveUp(), left)
    return new Promise((resolve, reject) => this.#waiting.add({ resolve, reject }))
  }

  #giveUp(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    for (const { reject } of this.#waiting) reject(this.#unavailable())
    this.#waiting.clear()
  }

  #unavailable(): StoreUnavailable {
    const detail = `there is no leader: ${this.#reason}`
    return this.#isFault ? new StoreUnavailable('store_unavailable', detail) : new LeaderUnavailable(detail)
  }
}
