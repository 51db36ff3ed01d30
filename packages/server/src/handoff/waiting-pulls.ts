import type { PullOrder, PullResult } from './store.ts'

/** Each costs about a kilobyte and a timer. Pulls beyond this are answered at once. */
export const MAX_WAITING_PULLS = 20_000

export const NOTHING: PullResult = { partitions: [], repeated: false }

interface Waiter {
  readonly order: PullOrder
  readonly answer: (result: PullResult) => void
  readonly fail: (error: unknown) => void
  /** Trying again right now; keeps its place meanwhile. */
  trying: boolean
  /** Its time is up or its client is gone: a try under way is the last. */
  over: boolean
}

type TryPull = (order: PullOrder) => Promise<PullResult>

/**
 * Pulls that found nothing and were asked to wait, first come first served. When partitions become
 * ready only as many are woken as there are partitions: ten thousand may wait at no cost.
 */
export class WaitingPulls {
  readonly #tryPull: TryPull
  readonly #most: number
  readonly #waiting = new Set<Waiter>()
  readonly #byKey = new Map<string, Set<Waiter>>()
  #closed = false

  /** Goes up whenever something became ready. Whoever found nothing before must look again. */
  epoch = 0

  constructor(tryPull: TryPull, most = MAX_WAITING_PULLS) {
    this.#tryPull = tryPull
    this.#most = most
  }

  get size(): number {
    return this.#waiting.size
  }

  get isFull(): boolean {
    return this.#waiting.size >= this.#most
  }

  /** `seenEpoch` is the epoch at which the caller looked and found nothing. */
  wait(
    order: PullOrder,
    millis: number,
    signal: AbortSignal | undefined,
    seenEpoch: number,
  ): Promise<PullResult> {
    if (this.#closed || signal?.aborted) return Promise.resolve(NOTHING)
    return new Promise((resolve, reject) => {
      const settle = <T>(deliver: (value: T) => void) => {
        return (value: T) => {
          clearTimeout(timer)
          signal?.removeEventListener('abort', giveUp)
          this.#remove(waiter)
          deliver(value)
        }
      }
      const waiter: Waiter = {
        order,
        answer: settle(resolve),
        fail: settle(reject),
        trying: false,
        over: false,
      }
      // A try under way may be about to succeed: its leases must reach whoever undoes or uses them.
      const giveUp = () => {
        waiter.over = true
        if (!waiter.trying) waiter.answer(NOTHING)
      }
      const timer = setTimeout(() => {
        waiter.over = true
        // A twin on another node may have been given leases for this key while this one waited.
        if (!waiter.trying && order.key !== null) void this.#try(waiter)
        else if (!waiter.trying) waiter.answer(NOTHING)
      }, millis)
      signal?.addEventListener('abort', giveUp)
      this.#add(waiter)
      if (seenEpoch !== this.epoch) void this.#try(waiter)
    })
  }

  /** So many partitions became ready. */
  wake(readied: number): void {
    if (readied <= 0) return
    this.epoch += 1
    let left = readied
    for (const waiter of this.#waiting) {
      if (left === 0) return
      if (waiter.trying) continue
      left -= 1
      void this.#try(waiter)
      // The twin of a keyed pull is answered with it, not when its own wait ends.
      for (const twin of this.#byKey.get(waiter.order.key ?? '') ?? []) if (!twin.trying) void this.#try(twin)
    }
  }

  /** Everyone is answered empty, and whoever comes later too. */
  close(): void {
    this.#closed = true
    for (const waiter of this.#waiting) if (!waiter.trying) waiter.answer(NOTHING)
  }

  async #try(waiter: Waiter): Promise<void> {
    waiter.trying = true
    const epoch = this.epoch
    try {
      const result = await this.#tryPull(waiter.order)
      waiter.trying = false
      if (result.partitions.length > 0 || result.repeated || waiter.over || this.#closed)
        waiter.answer(result)
      else if (epoch !== this.epoch) void this.#try(waiter)
    } catch (error) {
      waiter.fail(error)
    }
  }

  #add(waiter: Waiter): void {
    this.#waiting.add(waiter)
    const { key } = waiter.order
    if (key === null) return
    const twins = this.#byKey.get(key)
    if (twins === undefined) this.#byKey.set(key, new Set([waiter]))
    else twins.add(waiter)
  }

  #remove(waiter: Waiter): void {
    this.#waiting.delete(waiter)
    const { key } = waiter.order
    const twins = key === null ? undefined : this.#byKey.get(key)
    if (key === null || twins === undefined) return
    twins.delete(waiter)
    if (twins.size === 0) this.#byKey.delete(key)
  }
}
