/** One that was not used for a second is full, and can be dropped. */
const MOST_BUCKETS = 10_000

interface Bucket {
  left: number
  at: number
}

/** A token bucket per quota key: `perSecond` requests per second, with a burst of one second's worth. */
export class RateLimit {
  readonly perSecond: number
  readonly #capacity: number
  readonly #buckets = new Map<string, Bucket>()

  constructor(perSecond: number) {
    this.perSecond = perSecond
    this.#capacity = Math.max(1, perSecond)
  }

  get isOn(): boolean {
    return this.perSecond > 0
  }

  /** Returns zero when the request may be served, or else the seconds after which it may be retried. */
  secondsToWait(key: string, now = performance.now()): number {
    const bucket = this.#bucketOf(key, now)
    const refilled = bucket.left + ((now - bucket.at) / 1000) * this.perSecond
    bucket.left = Math.min(this.#capacity, refilled)
    bucket.at = now
    if (bucket.left < 1) return (1 - bucket.left) / this.perSecond
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
