import type { Lease, RenewAnswer } from '@baton/protocol'
import { MAX_LEASES_PER_REQUEST } from '@baton/protocol/core'
import type { BatonClient } from './client.ts'
import { sharedTrace } from './client-options.ts'
import { BatonError, LeaseLostError } from './errors.ts'
import { backOffMillis } from './retry.ts'
import type { ServiceWatch } from './worker-options.ts'

/**
 * The margin in which to stop a handler before another worker may start, and to wait for the answer to a last
 * renewal.
 */
const SHORTEST_MARGIN_MILLIS = 100
const LONGEST_MARGIN_MILLIS = 5000

/**
 * A lease as its holder sees it. All times are from the monotonic clock. Changes of the wall clock have no
 * effect, here or at the service, because the service sends the duration of a lease and not only its end.
 */
class KeptLease {
  readonly id: string
  readonly lose: (error: LeaseLostError) => void
  readonly traceparent: string | undefined
  #lengthMillis: number
  #endsAt: number
  /** When the first renewal since the last successful one was sent. */
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

  /** When two thirds of the lease are left, so that an outage of half a lease has no effect. */
  get renewAt(): number {
    return this.#endsAt - (this.#lengthMillis * 2) / 3
  }

  /**
   * When the lease counts as lost unless a renewal succeeds. Never before a renewal was tried: a program that
   * was blocked or suspended for long may still be in time.
   */
  get giveUpAt(): number {
    if (this.#triedAt === undefined) return Number.POSITIVE_INFINITY
    const margin = Math.max(SHORTEST_MARGIN_MILLIS, Math.min(this.#lengthMillis / 10, LONGEST_MARGIN_MILLIS))
    return Math.max(this.#endsAt - margin, this.#triedAt + margin)
  }

  tried(now: number): void {
    this.#triedAt ??= now
  }

  /** `since` is when the renewal was sent. The service cannot have counted from an earlier time. */
  renewed(expiresInSeconds: number, since: number): void {
    this.#lengthMillis = expiresInSeconds * 1000
    this.#endsAt = since + this.#lengthMillis
    this.#triedAt = undefined
  }
}

const LONGEST_REQUEST_MILLIS = 10_000
const SHORTEST_REQUEST_MILLIS = 100

interface LeaseKeeperOptions {
  readonly client: BatonClient
  readonly watch: ServiceWatch
  readonly onRenewed: (leases: number) => void
}

/** Renews all held leases before they expire, in one request, and reports lost leases. */
export class LeaseKeeper {
  readonly #options: LeaseKeeperOptions
  readonly #leases = new Map<string, KeptLease>()
  #timer: ReturnType<typeof setTimeout> | undefined
  #wakeAt = Number.POSITIVE_INFINITY
  #renewing = false
  #failures = 0
  #notBefore = 0

  constructor(options: LeaseKeeperOptions) {
    this.#options = options
  }

  keep(lease: Lease, lose: (error: LeaseLostError) => void, traceparent?: string): void {
    const kept = new KeptLease(lease, performance.now(), lose, traceparent)
    this.#leases.set(kept.id, kept)
    this.#wakeBy(kept.renewAt)
  }

  /** Stops renewing a lease that has ended or is about to be settled. */
  drop(leaseId: string): void {
    this.#leases.delete(leaseId)
    if (this.#leases.size === 0) this.#sleep()
  }

  #sleep(): void {
    clearTimeout(this.#timer)
    this.#wakeAt = Number.POSITIVE_INFINITY
  }

  #wakeBy(time: number): void {
    if (time >= this.#wakeAt) return
    clearTimeout(this.#timer)
    this.#wakeAt = time
    this.#timer = setTimeout(() => this.#wake(), Math.max(time - performance.now(), 0))
  }

  #wake(): void {
    this.#wakeAt = Number.POSITIVE_INFINITY
    const now = performance.now()
    for (const lease of this.#leases.values()) {
      if (now >= lease.giveUpAt) {
        this.#lose(lease, 'lease_unrenewed', 'the service could not be reached in time to renew the lease')
      }
    }
    if (!this.#renewing && this.#renewalDueAt() <= now) void this.#renew()
    if (this.#leases.size > 0) this.#wakeBy(this.#nextDueAt())
  }

  #renewalDueAt(): number {
    let earliest = Number.POSITIVE_INFINITY
    for (const { renewAt } of this.#leases.values()) earliest = Math.min(earliest, renewAt)
    return Math.max(earliest, this.#notBefore)
  }

  #earliestGiveUp(): number {
    let earliest = Number.POSITIVE_INFINITY
    for (const { giveUpAt } of this.#leases.values()) earliest = Math.min(earliest, giveUpAt)
    return earliest
  }

  #nextDueAt(): number {
    const giveUp = this.#earliestGiveUp()
    return this.#renewing ? giveUp : Math.min(giveUp, this.#renewalDueAt())
  }

  async #renew(): Promise<void> {
    this.#renewing = true
    const begun = performance.now()
    for (const lease of this.#leases.values()) lease.tried(begun)
    const ids = [...this.#leases.keys()]
    try {
      for (let at = 0; at < ids.length; at += MAX_LEASES_PER_REQUEST) {
        await this.#renewSome(ids.slice(at, at + MAX_LEASES_PER_REQUEST))
      }
      this.#failures = 0
      this.#notBefore = 0
    } catch (error) {
      this.#failed(error)
    }
    this.#renewing = false
    if (this.#leases.size > 0) this.#wakeBy(this.#nextDueAt())
  }

  async #renewSome(leaseIds: readonly string[]): Promise<void> {
    const sentAt = performance.now()
    const left = (this.#earliestGiveUp() - sentAt) / 2
    const millis = Math.max(SHORTEST_REQUEST_MILLIS, Math.min(left, LONGEST_REQUEST_MILLIS))
    const { client, watch, onRenewed } = this.#options
    const traceparent = sharedTrace(leaseIds.map((id) => this.#leases.get(id)?.traceparent))
    const once = { retryForSeconds: 0, timeoutSeconds: millis / 1000, traceparent }
    const answer = await client.renew(leaseIds, once)
    watch.answered()
    this.#take(answer, sentAt)
    if (answer.renewed.length > 0) onRenewed(answer.renewed.length)
  }

  #take({ renewed, refused }: RenewAnswer, sentAt: number): void {
    for (const { leaseId, expiresInSeconds } of renewed) {
      this.#leases.get(leaseId)?.renewed(expiresInSeconds, sentAt)
    }
    for (const { leaseId, code, detail } of refused) {
      const lease = this.#leases.get(leaseId)
      if (lease !== undefined) this.#lose(lease, code, detail)
    }
  }

  /** Schedules a retry, sooner if little time is left. */
  #failed(error: unknown): void {
    const known = error instanceof BatonError ? error : undefined
    this.#failures += 1
    const now = performance.now()
    const quarter = Math.max((this.#earliestGiveUp() - now) / 4, SHORTEST_REQUEST_MILLIS / 2)
    const pauseMillis = Math.min(backOffMillis(this.#failures, known?.retryAfterSeconds), quarter)
    this.#notBefore = now + pauseMillis
    if (known !== undefined) {
      this.#options.watch.failed({ error: known, failures: this.#failures, pauseMillis })
    }
  }

  #lose(lease: KeptLease, code: LeaseLostError['code'], detail: string): void {
    this.drop(lease.id)
    lease.lose(new LeaseLostError(lease.id, code, detail))
  }
}
