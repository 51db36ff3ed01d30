/** Callers that are remembered; those who have sent nothing for a second are as good as new. */
const MOST_CALLERS = 10_000

interface Bucket {
  left: number
  at: number
}

/** So many requests a second for each caller, of which a second's worth may come at once. */
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

  /** Zero: it may be served. Otherwise after how many seconds it may be sent again. */
  secondsToWait(caller: string, now = performance.now()): number {
    const bucket = this.#bucketOf(caller, now)
    const refilled = bucket.left + ((now - bucket.at) / 1000) * this.#perSecond
    bucket.left = Math.min(this.#capacity, refilled)
    bucket.at = now
    if (bucket.left < 1) return (1 - bucket.left) / this.#perSecond
    bucket.left -= 1
    return 0
  }

  #bucketOf(caller: string, now: number): Bucket {
    const known = this.#buckets.get(caller)
    if (known !== undefined) return known
    if (this.#buckets.size >= MOST_CALLERS) this.#forgetIdle(now)
    const bucket = { left: this.#capacity, at: now }
    this.#buckets.set(caller, bucket)
    return bucket
  }

  #forgetIdle(now: number): void {
    for (const [caller, { at }] of this.#buckets) if (now - at > 1000) this.#buckets.delete(caller)
    if (this.#buckets.size >= MOST_CALLERS) this.#buckets.clear()
  }
}
