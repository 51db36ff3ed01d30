import type { Urgency } from '../admission/access.ts'

/** The event loop delay from which each kind is refused, as a multiple of the threshold. */
const refusedFrom: Readonly<Record<Urgency, number>> = { 'call-back': 1, view: 2, pull: 4, urgent: 8 }
/**
 * The number of consecutive late samples that count as overload. A single slow turn, or a suspended process,
 * does not.
 */
const LOOKS = 3

/** Decides from the event loop delay which requests are refused. */
export class Overload {
  readonly #thresholdMillis: number
  readonly #late: number[] = Array(LOOKS).fill(0)
  #times = 0

  constructor(thresholdMillis: number) {
    this.#thresholdMillis = thresholdMillis
  }

  /** Records a sample of the event loop delay. */
  note(lateMillis: number): void {
    this.#late.shift()
    this.#late.push(lateMillis)
    this.#times = Math.min(...this.#late) / this.#thresholdMillis
  }

  get isBehind(): boolean {
    return this.#times >= 1
  }

  refuses(urgency: Urgency): boolean {
    return this.#times >= refusedFrom[urgency]
  }
}

/**
 * The maximum number of buckets. One that was not used for a second is full, and can be dropped.
 */
const MOST_BUCKETS = 10_000

interface Bucket {
  left: number
  at: number
}

/** A token bucket per quota key: `perSecond` requests per second, with a burst of one second's worth. */
export class RateLimit {
  readonly #perSecond: number
  readonly #capacity: number
  readonly #buckets = new Map<string, Bucket>()

  constructor(perSecond: number) {
    this.#perSecond = perSecond
    this.#capacity = Math.max(1, perSecond)
  }

  get isOn(): boolean {
    return this.#perSecond > 0
  }

  /** Returns zero when the request may be served, or else the seconds after which it may be retried. */
  secondsToWait(key: string, now = performance.now()): number {
    const bucket = this.#bucketOf(key, now)
    const refilled = bucket.left + ((now - bucket.at) / 1000) * this.#perSecond
    bucket.left = Math.min(this.#capacity, refilled)
    bucket.at = now
    if (bucket.left < 1) return (1 - bucket.left) / this.#perSecond
    bucket.left -= 1
    return 0
  }

  #bucketOf(key: string, now: number): Bucket {
    const known = this.#buckets.get(key)
    if (known !== undefined) return known
    if (this.#buckets.size >= MOST_BUCKETS) this.#forgetIdle(now)
    const bucket = { left: this.#capacity, at: now }
    this.#buckets.set(key, bucket)
    return bucket
  }

  #forgetIdle(now: number): void {
    for (const [key, { at }] of this.#buckets) if (now - at > 1000) this.#buckets.delete(key)
    if (this.#buckets.size >= MOST_BUCKETS) this.#buckets.clear()
  }
}
