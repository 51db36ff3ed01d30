import { systemClock, systemStopwatch } from './clock.ts'
import { FORGET_ENDED_NODES_MILLIS, FORGET_INSTANCES_MILLIS } from './heartbeats.ts'
import { expiryGraceMillis, type Policy } from './rules/policy.ts'
import type { PreparedOf, Store } from './store.ts'

/**
 * Something that is done again and again, one at a time: when its time has come, or sooner if somebody asks. What is asked
 * for while it runs is not forgotten.
 */
export class PeriodicTask {
  readonly #run: () => Promise<number>
  #timer: NodeJS.Timeout | undefined
  #at = Number.POSITIVE_INFINITY
  #running: Promise<void> | undefined
  #stopped = true

  /** `run` resolves with how many milliseconds to rest; it never rejects. */
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

/** The longest that upkeep sleeps: what other nodes brought about is noticed within it. */
const SWEEP_AT_LEAST_MILLIS = 1000
/** How often leftovers are looked for; whoever leaves some behind asks for it at once. */
const TIDY_MILLIS = 10_000
/** Ended per transaction, so that a flood of expiries never holds pulls up for long. */
const SWEEP_LIMIT = 500
/** A clock that gains more than this on the stopwatch between two sweeps was set; one that is kept right gains far less. */
const CLOCK_JUMP_MILLIS = 1000
/** Where other nodes can make partitions ready, a hint that got lost is made up for after so long. */
const LOOK_AROUND_MILLIS = 2000

interface MaintenanceEvents {
  readied(count: number, readiedOf?: readonly PreparedOf[] | null): void
  /** Other nodes may have made something ready unheard. */
  lookAround(): void
  /** Partitions ran out of attempts because nobody settled them. */
  parked(count: number): void
  failed(error: unknown): void
}

/**
 * What happens without a request: leases and back-offs end, control orders and retention finish
 * their work. Runs where it is and in steps; on several nodes whoever comes first does it.
 */
export class Maintenance {
  readonly #store: Store
  readonly #policy: Policy
  readonly #retentionMillis: number
  readonly #events: MaintenanceEvents
  readonly #sweeping = new PeriodicTask(() => this.#sweep())
  readonly #maintaining = new PeriodicTask(() => this.#maintain())
  #expireFrom = 0
  /** How far the machine's clock is ahead of its stopwatch. Neither is injected: timers go by this machine, too. */
  #clockAhead = 0
  #lookAroundAt = 0

  constructor(store: Store, policy: Policy, retentionMillis: number, events: MaintenanceEvents) {
    this.#store = store
    this.#policy = policy
    this.#retentionMillis = retentionMillis
    this.#events = events
  }

  start(): void {
    this.#clockAhead = systemClock() - systemStopwatch()
    this.beginGrace()
    this.#sweeping.start()
    this.#maintaining.start()
  }

  async stop(): Promise<void> {
    await Promise.all([this.#sweeping.stop(), this.#maintaining.stop()])
  }

  /** After a start, an outage or a jump of the clock workers get the chance to renew before their leases are taken. */
  beginGrace(): void {
    this.#expireFrom = systemStopwatch() + expiryGraceMillis(this.#policy)
  }

  /** Something ends in so many milliseconds. */
  dueIn(millis: number): void {
    this.#sweeping.dueIn(millis)
  }

  maintainSoon(millis: number): void {
    this.#maintaining.dueIn(millis)
  }

  async #sweep(): Promise<number> {
    try {
      if (this.#clockWasSetAhead()) this.beginGrace()
      const expireLeases = systemStopwatch() >= this.#expireFrom
      const swept = await this.#store.sweep({ limit: SWEEP_LIMIT, expireLeases })
      if (swept.woken > 0) this.#events.readied(swept.woken, swept.readiedOf)
      this.#lookAround()
      if (swept.parked > 0) this.#events.parked(swept.parked)
      return swept.more ? 0 : Math.min(SWEEP_AT_LEAST_MILLIS, swept.nextDueInMillis ?? SWEEP_AT_LEAST_MILLIS)
    } catch (error) {
      this.#events.failed(error)
      return SWEEP_AT_LEAST_MILLIS
    }
  }

  /** By an operator, a time server, or a machine that slept: leases seem overdue that are not. */
  #clockWasSetAhead(): boolean {
    const ahead = systemClock() - systemStopwatch()
    const wasSet = ahead - this.#clockAhead > CLOCK_JUMP_MILLIS
    this.#clockAhead = ahead
    return wasSet
  }

  #lookAround(): void {
    if (this.#store.onHint === undefined || systemStopwatch() < this.#lookAroundAt) return
    this.#lookAroundAt = systemStopwatch() + LOOK_AROUND_MILLIS
    this.#events.lookAround()
  }

  async #maintain(): Promise<number> {
    try {
      const order = {
        retentionMillis: this.#retentionMillis,
        forgetInstancesMillis: FORGET_INSTANCES_MILLIS,
        forgetEndedNodesMillis: FORGET_ENDED_NODES_MILLIS,
      }
      const { more, readied, failure } = await this.#store.maintain(order)
      if (readied > 0) this.#events.readied(readied)
      if (failure !== undefined) this.#events.failed(failure)
      return more ? 0 : TIDY_MILLIS
    } catch (error) {
      this.#events.failed(error)
      return TIDY_MILLIS
    }
  }
}
