import {
  type DeliveryChange,
  type DeliveryProgress,
  progressOf,
  type StoredDelivery,
  type StoredSubscription,
  type TaskDeliveries,
} from '../handoff/outbox.ts'
import type { Posted } from './posting.ts'

/** The waits after failures. They are all multiples of the first wait, which tests make short. */
export class RetrySchedule {
  readonly #firstMillis: number

  constructor(firstMillis: number) {
    this.#firstMillis = firstMillis
  }

  /** The wait before the next attempt at an event: 5 s, 15 s, 45 s … 8 hours, if the first is 5 s. */
  afterAttempt(attempts: number): number {
    return this.#jittered(Math.min(this.#firstMillis * 3 ** (attempts - 1), this.#firstMillis * 5760))
  }

  /** Before the next request to a target after failures over the limit: 5 s, 10 s, 20 s … 10 minutes. */
  afterFailures(failures: number): number {
    return this.#jittered(Math.min(this.#firstMillis * 2 ** (failures - 1), this.#firstMillis * 120))
  }

  #jittered(millis: number): number {
    return Math.round(millis * (0.8 + 0.4 * Math.random()))
  }
}

/** With the default waits, this is about three days. */
const MOST_ATTEMPTS = 17

const PAGE = 100
/** The most concurrent requests to a target that responds well. */
const WIDEST_WINDOW = 8
/** Those with an event that is being sent or waits for a retry. Then no new tasks are started. */
const MAX_TASKS_IN_DELIVERY = 1000
/** The number of consecutive failures after which the circuit opens. */
const FAILURES_TO_BREAK = 5

/** Reads pending deliveries of this target after an event, in order: of one task, or of all. */
type ReadPending = (
  ofTask: TaskDeliveries | null,
  after: number,
  limit: number,
) => Promise<readonly StoredDelivery[]>

/** The event of a task that is being sent or waits for a retry. Later events of the task wait for it. */
interface TaskInDelivery {
  readonly delivery: StoredDelivery
  /** When to retry; null while the event is being sent. */
  until: number | null
  /** The last event of the task that was read and skipped. 0: none. */
  skippedTo: number
}

/**
 * A subscription and the state of its receiver. Decides what is sent next: events of one task in order, one
 * at a time. If one fails, the events of other tasks continue. A receiver that keeps failing gets one event
 * now and then (circuit breaker). It holds a page of deliveries and a limited number of tasks in memory,
 * however many are pending.
 */
export class Target {
  subscription: StoredSubscription
  readonly #retrySchedule: RetrySchedule
  /** By task. */
  readonly #inDelivery = new Map<string, TaskInDelivery>()
  #ready: StoredDelivery[] = []
  /** Events up to this one have been read. */
  #position = 0
  #isExhausted = false
  /** Tasks whose event is finished and which may have more, with that event. */
  readonly #toRead = new Map<string, number>()
  #sending = 0
  #window = 1
  #failures = 0
  #openUntil = 0

  constructor(subscription: StoredSubscription, retrySchedule: RetrySchedule) {
    this.subscription = subscription
    this.#retrySchedule = retrySchedule
  }

  /** Whether the circuit is open because the receiver failed too often. */
  get isBroken(): boolean {
    return this.#failures >= FAILURES_TO_BREAK
  }

  /** Until when nothing is sent, because the receiver failed too often or requested a pause. */
  openUntil(now: number): number | null {
    return this.isBroken || this.#openUntil > now ? this.#openUntil : null
  }

  get sending(): number {
    return this.#sending
  }

  expectNewEvents(): void {
    this.#isExhausted = false
  }

  /** An operator changed something: all is read again, and a pause ends. Running requests continue. */
  rewind(): void {
    this.#position = 0
    this.#isExhausted = false
    this.#ready = []
    for (const [task, { until }] of this.#inDelivery)
      if (until !== null || this.#toRead.has(task)) this.#inDelivery.delete(task)
    this.#toRead.clear()
    this.#failures = 0
    this.#openUntil = 0
  }

  /** The next delivery to send, or undefined if nothing can be sent now. */
  async next(now: number, read: ReadPending): Promise<StoredDelivery | undefined> {
    if (this.#sending >= (this.isBroken ? 1 : this.#window) || now < this.#openUntil) return undefined
    const delivery = this.#dueRetry(now) ?? (await this.#nextOfTask(read)) ?? (await this.#nextNew(now, read))
    if (delivery === undefined) return undefined
    const current = this.#inDelivery.get(delivery.taskId)
    this.#inDelivery.set(delivery.taskId, { delivery, until: null, skippedTo: current?.skippedTo ?? 0 })
    this.#sending += 1
    return delivery
  }

  /** The progress of a delivery after this response. Call `finished` when it is durable. */
  judge(delivery: StoredDelivery, posted: Posted, attemptedAt: number, millis: number): DeliveryProgress {
    const { isDelivered, isGone, status, error, retryAfterMillis } = posted
    const attempts = progressOf(delivery).attempts + 1
    const attempted = { attempts, attemptedAt, status, error, millis, nextAt: attemptedAt }
    if (isDelivered) return { ...attempted, state: 'delivered' }
    // The subscription is disabled now; the event is sent again when an operator enables it.
    if (isGone) return { ...attempted, state: 'pending' }
    if (attempts >= MOST_ATTEMPTS) return { ...attempted, state: 'failed' }
    const wait = Math.max(this.#retrySchedule.afterAttempt(attempts), retryAfterMillis ?? 0)
    return { ...attempted, state: 'pending', nextAt: attemptedAt + wait }
  }

  finished({ event, progress }: DeliveryChange, posted: Posted, now: number): void {
    this.#sending -= 1
    if (posted.isDelivered) this.#succeeded(now)
    else this.#failed(posted, now)
    const [task, current] = this.#taskOf(event)
    if (task === undefined || current === undefined) return
    if (progress?.state === 'pending') {
      this.#inDelivery.set(task, {
        ...current,
        delivery: { ...current.delivery, progress },
        until: progress.nextAt,
      })
    } else if (current.skippedTo > event) this.#toRead.set(task, event)
    else this.#inDelivery.delete(task)
  }

  #taskOf(event: number): [string, TaskInDelivery] | [] {
    for (const entry of this.#inDelivery) if (entry[1].delivery.event === event) return entry
    return []
  }

  #succeeded(now: number): void {
    this.#window = Math.min(WIDEST_WINDOW, this.#window + 1)
    // The receiver is back, so waiting events are sent at once.
    if (this.isBroken)
      for (const current of this.#inDelivery.values())
        if (current.until !== null) current.until = Math.min(current.until, now)
    // `#openUntil` remains: the answer to another event may have requested a pause.
    this.#failures = 0
  }

  #failed({ retryAfterMillis }: Posted, now: number): void {
    this.#window = 1
    this.#failures += 1
    const over = this.#failures - FAILURES_TO_BREAK + 1
    if (over > 0) this.#openUntil = now + this.#retrySchedule.afterFailures(over)
    if (retryAfterMillis !== null) this.#openUntil = Math.max(this.#openUntil, now + retryAfterMillis)
  }

  #dueRetry(now: number): StoredDelivery | undefined {
    for (const { until, delivery } of this.#inDelivery.values())
      if (until !== null && until <= now) return delivery
    return undefined
  }

  async #nextOfTask(read: ReadPending): Promise<StoredDelivery | undefined> {
    for (const [task, after] of this.#toRead) {
      const upTo = this.#inDelivery.get(task)?.skippedTo ?? 0
      const [delivery] = await read({ taskId: task, upTo }, after, 1)
      this.#toRead.delete(task)
      if (delivery !== undefined) return delivery
      this.#inDelivery.delete(task)
    }
    return undefined
  }

  async #nextNew(now: number, read: ReadPending): Promise<StoredDelivery | undefined> {
    while (true) {
      for (let delivery = this.#ready.shift(); delivery !== undefined; delivery = this.#ready.shift()) {
        const { taskId, event } = delivery
        const { nextAt } = progressOf(delivery)
        const current = this.#inDelivery.get(taskId)
        if (current !== undefined) current.skippedTo = Math.max(current.skippedTo, event)
        else if (nextAt <= now) return delivery
        else this.#inDelivery.set(taskId, { delivery, until: nextAt, skippedTo: 0 })
      }
      if (this.#isExhausted || this.#inDelivery.size >= MAX_TASKS_IN_DELIVERY) return undefined
      const page = await read(null, this.#position, PAGE)
      this.#position = page.at(-1)?.event ?? this.#position
      this.#isExhausted = page.length < PAGE
      this.#ready = [...page]
    }
  }
}
