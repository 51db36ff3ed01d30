import { PeriodicJob } from './periodic-job.ts'
import { expiryGraceMillis, type Policy } from './rules/policy.ts'
import type { MaintenanceRequest, NewlyReadyOf, Store } from './store.ts'

/** The maximum time between sweeps, so that changes by other nodes are noticed. */
const SWEEP_AT_LEAST_MILLIS = 1000
/** The interval of maintenance. Work that leaves something to clean up requests a run immediately. */
const TIDY_MILLIS = 10_000
/** The maximum per transaction, so that many expiries at once do not block pulls for long. */
const SWEEP_LIMIT = 500
/** If the clock gains this on the stopwatch between two sweeps, it was set, not corrected. */
const CLOCK_JUMP_MILLIS = 1000

interface MaintenanceCallbacks {
  newlyReady(count: number, newlyReadyOf?: readonly NewlyReadyOf[] | null): void
  /** Partitions ran out of attempts because their leases expired. */
  parked(count: number): void
  failed(error: unknown): void
}

/** Ends leases and back-offs, and runs control requests and retention in steps. Only the leader does any. */
export class Maintenance {
  readonly #store: Store
  readonly #policy: Policy
  readonly #retention: MaintenanceRequest
  readonly #callbacks: MaintenanceCallbacks
  readonly #sweeping = new PeriodicJob(() => this.#sweep())
  readonly #maintaining = new PeriodicJob(() => this.#maintain())
  #expireFrom = 0
  /** Neither is injected: timers use the machine's clock too. */
  #clockAhead = 0

  constructor(store: Store, policy: Policy, retention: MaintenanceRequest, callbacks: MaintenanceCallbacks) {
    this.#store = store
    this.#policy = policy
    this.#retention = retention
    this.#callbacks = callbacks
  }

  start(): void {
    this.#clockAhead = Date.now() - performance.now()
    this.beginGrace()
    this.#sweeping.start()
    this.#maintaining.start()
  }

  async stop(): Promise<void> {
    await Promise.all([this.#sweeping.stop(), this.#maintaining.stop()])
  }

  /** After a start, an outage or a clock jump, workers get time to renew before their leases expire. */
  beginGrace(): void {
    this.#expireFrom = performance.now() + expiryGraceMillis(this.#policy)
  }

  /** A lease or back-off ends in this many milliseconds. */
  dueIn(millis: number): void {
    this.#sweeping.dueIn(millis)
  }

  /** There may be background work, for example a rerun. */
  maintainNow(): void {
    this.#maintaining.dueIn(0)
  }

  async #sweep(): Promise<number> {
    try {
      const mayExpireLeases = () => this.#mayExpireLeases()
      const swept = await this.#store.sweep({ limit: SWEEP_LIMIT, mayExpireLeases })
      if (swept.woken > 0) this.#callbacks.newlyReady(swept.woken, swept.newlyReadyOf)
      if (swept.parked > 0) this.#callbacks.parked(swept.parked)
      return swept.more ? 0 : Math.min(SWEEP_AT_LEAST_MILLIS, swept.nextDueInMillis ?? SWEEP_AT_LEAST_MILLIS)
    } catch (error) {
      this.#callbacks.failed(error)
      return SWEEP_AT_LEAST_MILLIS
    }
  }

  #mayExpireLeases(): boolean {
    if (this.#clockWasSetAhead()) this.beginGrace()
    return performance.now() >= this.#expireFrom
  }

  /** By an operator, NTP, or a suspended machine: leases seem overdue although they are not. */
  #clockWasSetAhead(): boolean {
    const ahead = Date.now() - performance.now()
    const wasSet = ahead - this.#clockAhead > CLOCK_JUMP_MILLIS
    this.#clockAhead = ahead
    return wasSet
  }

  async #maintain(): Promise<number> {
    try {
      const { more, newlyReady, failure } = await this.#store.maintain(this.#retention)
      if (newlyReady > 0) this.#callbacks.newlyReady(newlyReady)
      if (failure !== undefined) this.#callbacks.failed(failure)
      return more ? 0 : TIDY_MILLIS
    } catch (error) {
      this.#callbacks.failed(error)
      return TIDY_MILLIS
    }
  }
}
