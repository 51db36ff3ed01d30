import type { Lease } from '@baton/protocol'
import type { LeaseLostError } from './errors.ts'

/** Time to stop a handler before another worker may begin, and to let a last renewal be answered. */
const SHORTEST_MARGIN_MILLIS = 100
const LONGEST_MARGIN_MILLIS = 5000

/**
 * A lease as its holder sees it. All times are those of the monotonic clock: what the wall clock does, here or at the
 * service, changes nothing, because the service says how long a lease lasts and not only until when.
 */
export class KeptLease {
  readonly id: string
  readonly lose: (error: LeaseLostError) => void
  readonly traceparent: string | undefined
  #lengthMillis: number
  #endsAt: number
  /** When the first renewal since the last success was begun. */
  #triedAt: number | undefined

  constructor(
    lease: Lease,
    now: number,
    lose: (error: LeaseLostError) => void,
    traceparent: string | undefined,
  ) {
    this.id = lease.id
    this.lose = lose
    this.traceparent = traceparent
    this.#lengthMillis = lease.expiresInSeconds * 1000
    this.#endsAt = now + this.#lengthMillis
  }

  /** With two thirds of the lease left: an outage of half a lease costs nobody anything. */
  get renewAt(): number {
    return this.#endsAt - (this.#lengthMillis * 2) / 3
  }

  /**
   * When it has to count as lost unless a renewal succeeds; never before one was tried, since a program that was
   * busy or stopped for long may still be in time.
   */
  get giveUpAt(): number {
    if (this.#triedAt === undefined) return Number.POSITIVE_INFINITY
    const margin = Math.max(SHORTEST_MARGIN_MILLIS, Math.min(this.#lengthMillis / 10, LONGEST_MARGIN_MILLIS))
    return Math.max(this.#endsAt - margin, this.#triedAt + margin)
  }

  tried(now: number): void {
    this.#triedAt ??= now
  }

  /** `since` is when the renewal was sent: the service cannot have counted from an earlier moment. */
  renewed(expiresInSeconds: number, since: number): void {
    this.#lengthMillis = expiresInSeconds * 1000
    this.#endsAt = since + this.#lengthMillis
    this.#triedAt = undefined
  }
}
