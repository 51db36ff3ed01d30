import { LeaderChanged, StoreUnavailable } from '../handoff/store.ts'

/** How long requests wait for a leader, counted from the moment at which there was none. */
const PATIENCE_MILLIS = 3000
/** Batches and views that wait; a batch has the requests of many clients. */
const MOST_WAITING = 1000

interface Waiting<Holder> {
  resolve(holder: Holder): void
  reject(error: unknown): void
}

/** A place that is empty for moments. Those who need its holder wait, but not for long and not too many. */
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

  /** Those who come are patient from now on. */
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

  /** `isFault`: the store keeps nodes from filling it, and not only the time that it takes. */
  empty(reason: string, isFault = false): void {
    if (this.#holder !== null) this.begin(reason)
    this.#reason = reason
    this.#isFault = isFault
    this.#holder = null
  }

  /** It will not be filled again. */
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
    const detail = `no node leads: ${this.#reason}`
    return this.#isFault ? new StoreUnavailable('store_unavailable', detail) : new LeaderChanged(detail)
  }
}
