import { expiryGraceMillis, type Policy } from './rules/policy.ts'
import type { MaintenanceRequest, NewlyReadyOf, Store } from './store.ts'

/** Instances that were not seen for this long are deleted. */
const FORGET_INSTANCES_MILLIS = 7 * 86_400_000

/** Nodes that ended gracefully are deleted sooner: each start has a new name unless one is configured. */
const FORGET_ENDED_NODES_MILLIS = 3_600_000

/** The maximum time between sweeps, so that changes by other nodes are noticed. */
const SWEEP_AT_LEAST_MILLIS = 1000
/** The interval of maintenance. Work that leaves something to clean up requests a run immediately. */
const TIDY_MILLIS = 10_000
/** The maximum per transaction, so that many expiries at once do not block pulls for long. */
const SWEEP_LIMIT = 500
/**
 * If the clock gains more than this on the stopwatch between two sweeps, it was set. Normal clock corrections
 * are far smaller.
 */
const CLOCK_JUMP_MILLIS = 1000

interface MaintenanceEvents {
  newlyReady(count: number, newlyReadyOf?: readonly NewlyReadyOf[] | null): void
  /** Partitions ran out of attempts because their leases expired. */
  parked(count: number): void
  failed(error: unknown): void
}

export type Retention = Pick<MaintenanceRequest, 'retentionMillis' | 'auditMillis'>

/**
 * Work without a request: ending leases and back-offs, and completing control requests and retention in
 * steps. With several nodes, only the leader's store does anything.
 */
export class Maintenance {
  readonly #store: Store
  readonly #policy: Policy
  readonly #retention: Retention
  readonly #events: MaintenanceEvents
  readonly #sweeping = new PeriodicJob(() => this.#sweep())
  readonly #maintaining = new PeriodicJob(() => this.#maintain())
  #expireFrom = 0
  /**
   * How far the machine's clock is ahead of its stopwatch. Neither is injected: timers use the machine's
   * clock too.
   */
  #clockAhead = 0

  constructor(store: Store, policy: Policy, retention: Retention, events: MaintenanceEvents) {
    this.#store = store
    this.#policy = policy
    this.#retention = retention
    this.#events = events
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
      if (swept.woken > 0) this.#events.newlyReady(swept.woken, swept.newlyReadyOf)
      if (swept.parked > 0) this.#events.parked(swept.parked)
      return swept.more ? 0 : Math.min(SWEEP_AT_LEAST_MILLIS, swept.nextDueInMillis ?? SWEEP_AT_LEAST_MILLIS)
    } catch (error) {
      this.#events.failed(error)
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
      const request = {
        ...this.#retention,
        forgetInstancesMillis: FORGET_INSTANCES_MILLIS,
        forgetEndedNodesMillis: FORGET_ENDED_NODES_MILLIS,
      }
      const { more, newlyReady, failure } = await this.#store.maintain(request)
      if (newlyReady > 0) this.#events.newlyReady(newlyReady)
      if (failure !== undefined) this.#events.failed(failure)
      return more ? 0 : TIDY_MILLIS
    } catch (error) {
      this.#events.failed(error)
      return TIDY_MILLIS
    }
  }
}

/**
 * Runs a function periodically, never concurrently with itself: after its interval, or earlier on request.
 * Requests during a run are kept.
 */
export class PeriodicJob {
  readonly #run: () => Promise<number>
  #timer: NodeJS.Timeout | undefined
  #at = Number.POSITIVE_INFINITY
  #running: Promise<void> | undefined
  #stopped = true

  /** `run` resolves with the milliseconds until the next run. It must never reject. */
  constructor(run: () => Promise<number>) {
    this.#run = run
  }

  start(): void {
    this.#stopped = false
    this.dueIn(0)
  }

  async stop(): Promise<void> {
    this.#stopped = true
    clearTimeout(this.#timer)
    await this.#running
  }

  dueIn(millis: number): void {
    const at = performance.now() + Math.max(0, millis)
    if (this.#stopped || at >= this.#at) return
    this.#at = at
    if (this.#running !== undefined) return
    clearTimeout(this.#timer)
    this.#timer = setTimeout(
      () => {
        this.#running = this.#runOnce()
      },
      Math.ceil(Math.max(0, millis)),
    )
  }

  async #runOnce(): Promise<void> {
    this.#at = Number.POSITIVE_INFINITY
    const rest = await this.#run()
    this.#running = undefined
    const asked = this.#at - performance.now()
    this.#at = Number.POSITIVE_INFINITY
    this.dueIn(Math.min(rest, asked))
  }
}
