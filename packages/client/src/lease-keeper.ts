import type { Lease, RenewAnswer, Renewal } from '@baton/protocol'
import { MAX_LEASES_PER_REQUEST } from '@baton/protocol/core'
import type { BatonClient } from './client.ts'
import { sharedTrace } from './client-options.ts'
import { BatonError, LeaseLostError } from './errors.ts'
import { backOffMillis } from './retry.ts'
import { type WorkProgress, WorkReport } from './work-report.ts'
import type { ServiceWatch } from './worker-options.ts'

/**
 * The margin in which to stop a handler before another worker may start, and to wait for the answer to a last
 * renewal.
 */
const SHORTEST_MARGIN_MILLIS = 100
const LONGEST_MARGIN_MILLIS = 5000

/** Called with the checkpoint that the service does not know yet; undefined if there is none. */
type Lose = (error: LeaseLostError, checkpoint: string | null | undefined) => void

/**
 * A lease as its holder sees it. All times are from the monotonic clock. Changes of the wall clock have no
 * effect, here or at the service, because the service sends the duration of a lease and not only its end.
 */
class KeptLease {
  readonly id: string
  readonly lose: Lose
  readonly traceparent: string | undefined
  readonly report = new WorkReport()
  #lengthMillis: number
  #endsAt: number
  /** When the first renewal since the last successful one was sent. */
  #triedAt: number | undefined

  constructor(lease: Lease, now: number, lose: Lose, traceparent: string | undefined) {
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

/** The most checkpoints in one request, so that it stays below the body limit of the service. */
const CHECKPOINTS_PER_REQUEST = 256
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

  keep(lease: Lease, lose: Lose, traceparent?: string): void {
    const kept = new KeptLease(lease, performance.now(), lose, traceparent)
    this.#leases.set(kept.id, kept)
    this.#wakeBy(kept.renewAt)
  }

  /** The progress is sent with the next renewal; soon, if the last one was sent a while ago. */
  progress(leaseId: string, progress: WorkProgress): void {
    const lease = this.#leases.get(leaseId)
    lease?.report.progress(progress)
    this.#wakeForReport(lease)
  }

  /** Sends a checkpoint at once. Resolves when it is stored; rejects with a LeaseLostError if it cannot be. */
  async save(leaseId: string, checkpoint: string | null): Promise<void> {
    const lease = this.#leases.get(leaseId)
    const saved = lease?.report.save(checkpoint)
    this.#wakeForReport(lease)
    await saved
  }

  #wakeForReport(lease: KeptLease | undefined): void {
    if (lease !== undefined && !this.#renewing) this.#wakeBy(Math.max(lease.report.dueAt, this.#notBefore))
  }

  /**
   * Stops renewing a lease that has ended or is about to be settled. Returns its checkpoint that the service
   * does not know yet; undefined if there is none.
   */
  drop(leaseId: string): string | null | undefined {
    const lease = this.#leases.get(leaseId)
    this.#leases.delete(leaseId)
    if (this.#leases.size === 0) this.#sleep()
    return lease?.report.end()
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
    for (const { renewAt, report } of this.#leases.values())
      earliest = Math.min(earliest, renewAt, report.dueAt)
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
    const renewed = this.#dueWith(begun)
    for (const lease of renewed) lease.tried(begun)
    try {
      for (const some of inRequests(renewed)) await this.#renewSome(some)
      this.#failures = 0
      this.#notBefore = 0
    } catch (error) {
      this.#failed(error)
    }
    this.#renewing = false
    if (this.#leases.size > 0) this.#wakeBy(this.#nextDueAt())
  }

  /** If one lease must be renewed, all are, so that they stay together. Otherwise those with a report. */
  #dueWith(now: number): KeptLease[] {
    const all = [...this.#leases.values()]
    return all.some(({ renewAt }) => renewAt <= now) ? all : all.filter(({ report }) => report.dueAt <= now)
  }

  async #renewSome(leases: readonly KeptLease[]): Promise<void> {
    const sentAt = performance.now()
    const left = (this.#earliestGiveUp() - sentAt) / 2
    const millis = Math.max(SHORTEST_REQUEST_MILLIS, Math.min(left, LONGEST_REQUEST_MILLIS))
    const { client, watch, onRenewed } = this.#options
    const traceparent = sharedTrace(leases.map((lease) => lease.traceparent))
    const once = { retryForSeconds: 0, timeoutSeconds: millis / 1000, traceparent }
    const reports = new Map(leases.map(({ id, report }) => [id, report.renewal(id, sentAt)]))
    const sent: (string | Renewal)[] = Array.from(reports.values(), ({ renewal }) => renewal)
    const answer = await client.renew(sent, once)
    watch.answered()
    for (const { leaseId } of answer.renewed) reports.get(leaseId)?.taken()
    this.#take(answer, sentAt)
    if (answer.renewed.length > 0) onRenewed(answer.renewed.length)
  }

  #take({ renewed, refused }: RenewAnswer, sentAt: number): void {
    for (const { leaseId, expiresInSeconds } of renewed) {
      this.#leases.get(leaseId)?.renewed(expiresInSeconds, sentAt)
    }
    for (const { leaseId, code, detail } of refused) {
      const lease = this.#leases.get(leaseId)
      if (lease === undefined) continue
      // The lease lives on, and the next renewal goes without the checkpoint.
      if (code === 'checkpoint_too_long') lease.report.refuse(detail)
      else this.#lose(lease, code, detail)
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
    const error = new LeaseLostError(lease.id, code, detail)
    const checkpoint = lease.report.end(error)
    this.drop(lease.id)
    lease.lose(error, checkpoint)
  }
}

function* inRequests(leases: readonly KeptLease[]): Iterable<KeptLease[]> {
  let [some, checkpoints]: [KeptLease[], number] = [[], 0]
  for (const lease of leases) {
    if (some.length === MAX_LEASES_PER_REQUEST || checkpoints === CHECKPOINTS_PER_REQUEST) {
      yield some
      some = []
      checkpoints = 0
    }
    some.push(lease)
    if (lease.report.hasCheckpoint) checkpoints += 1
  }
  if (some.length > 0) yield some
}
