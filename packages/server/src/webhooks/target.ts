import type {
  DeliveryChange,
  DeliveryProgress,
  StoredDelivery,
  StoredSubscription,
} from '../handoff/outbox.ts'
import type { Posted } from './posting.ts'

/** How long to wait after failures. All of it follows from the first wait: tests make that a short one. */
export class RetrySchedule {
  readonly #firstMillis: number
  readonly #random: () => number

  constructor(firstMillis: number, random: () => number = Math.random) {
    this.#firstMillis = firstMillis
    this.#random = random
  }

  /** Before the next attempt at an event: 5 s, 15 s, 45 s … 8 hours, if the first is 5 s. */
  afterAttempt(attempts: number): number {
    return this.#jittered(Math.min(this.#firstMillis * 3 ** (attempts - 1), this.#firstMillis * 5760))
  }

  /** Before the next try at a target that failed so often in a row: 5 s, 10 s, 20 s … 10 minutes. */
  afterFailures(failures: number): number {
    return this.#jittered(Math.min(this.#firstMillis * 2 ** (failures - 1), this.#firstMillis * 120))
  }

  #jittered(millis: number): number {
    return Math.round(millis * (0.8 + 0.4 * this.#random()))
  }
}

/** With the usual waits this is three days. */
const MOST_ATTEMPTS = 17

/** Deliveries read at a time. */
const PAGE = 100
/** Sent at once, to a target that answers well. */
const WIDEST_WINDOW = 8
/** Tasks whose next event failed and waits: no more are begun beyond so many. */
const MOST_LINES = 1000
/** Failures in a row after which a target is left alone for a while. */
const FAILURES_TO_BREAK = 5

/** Reads pending deliveries of this target: of one task or of all, behind an event, in order. */
type ReadPending = (taskId: string | null, after: number, limit: number) => Promise<readonly StoredDelivery[]>

/** What is under way or waits of one task. Its later events wait behind it. */
interface Line {
  readonly delivery: StoredDelivery
  /** Null: it is being sent. */
  until: number | null
  /** Later events of the task were met and passed over. */
  hasMore: boolean
}

/**
 * One subscription and how its receiver does. Decides what is sent next: events of one task in order, one at a time;
 * those of other tasks go on when one fails. A receiver that fails again and again is tried with one event now and then.
 * It holds a page of deliveries and a bounded number of lines, however many are pending.
 */
export class Target {
  subscription: StoredSubscription
  readonly #retrySchedule: RetrySchedule
  readonly #lines = new Map<string, Line>()
  #ready: StoredDelivery[] = []
  /** Events up to here were read. */
  #position = 0
  #isExhausted = false
  /** Lines whose first event was seen to, and which may have more. */
  readonly #toRead = new Map<string, number>()
  #sending = 0
  #window = 1
  #failures = 0
  #openUntil = 0

  constructor(subscription: StoredSubscription, retrySchedule: RetrySchedule) {
    this.subscription = subscription
    this.#retrySchedule = retrySchedule
  }

  /** Nothing is sent for a while because the receiver failed too often. */
  get isBroken(): boolean {
    return this.#failures >= FAILURES_TO_BREAK
  }

  /** Until when nothing is sent, because it failed too often or asked for a pause. */
  openUntil(now: number): number | null {
    return this.isBroken || this.#openUntil > now ? this.#openUntil : null
  }

  get sending(): number {
    return this.#sending
  }

  /** There may be new events behind those that were read. */
  look(): void {
    this.#isExhausted = false
  }

  /** An operator changed what is pending: everything is read again. What is being sent stays under way. */
  rewind(): void {
    this.#position = 0
    this.#isExhausted = false
    this.#ready = []
    this.#toRead.clear()
    for (const [task, line] of this.#lines)
      if (line.until !== null) this.#lines.delete(task)
      else line.hasMore = true
    this.#failures = 0
    this.#openUntil = 0
  }

  /** The next delivery to send, or undefined when there is nothing to be sent now. */
  async next(now: number, read: ReadPending): Promise<StoredDelivery | undefined> {
    if (this.#sending >= (this.isBroken ? 1 : this.#window) || now < this.#openUntil) return undefined
    const delivery = this.#dueLine(now) ?? (await this.#nextOfLine(read)) ?? (await this.#nextNew(now, read))
    if (delivery === undefined) return undefined
    const line = this.#lines.get(delivery.taskId)
    this.#lines.set(delivery.taskId, { delivery, until: null, hasMore: line?.hasMore ?? false })
    this.#sending += 1
    return delivery
  }

  /** What a delivery comes to by this answer. `finished` is to be called when that is durable. */
  judge(delivery: StoredDelivery, posted: Posted, attemptedAt: number, millis: number): DeliveryProgress {
    const { isDelivered, status, error, retryAfterMillis } = posted
    const attempts = delivery.progress.attempts + 1
    const attempted = { attempts, attemptedAt, status, error, millis, nextAt: attemptedAt }
    if (isDelivered) return { ...attempted, state: 'delivered' }
    if (attempts >= MOST_ATTEMPTS || status === 410) return { ...attempted, state: 'failed' }
    const wait = Math.max(this.#retrySchedule.afterAttempt(attempts), retryAfterMillis ?? 0)
    return { ...attempted, state: 'pending', nextAt: attemptedAt + wait }
  }

  finished({ event, progress }: DeliveryChange, posted: Posted, now: number): void {
    this.#sending -= 1
    if (posted.isDelivered) this.#succeeded(now)
    else this.#failed(posted, now)
    const [task, line] = this.#lineOf(event)
    if (task === undefined || line === undefined) return
    if (progress?.state === 'pending') {
      this.#lines.set(task, { ...line, delivery: { ...line.delivery, progress }, until: progress.nextAt })
    } else if (line.hasMore) this.#toRead.set(task, event)
    else this.#lines.delete(task)
  }

  #lineOf(event: number): [string, Line] | [] {
    for (const entry of this.#lines) if (entry[1].delivery.event === event) return entry
    return []
  }

  #succeeded(now: number): void {
    this.#window = Math.min(WIDEST_WINDOW, this.#window + 1)
    // It is back: what failed because of it need not wait any longer.
    if (this.isBroken)
      for (const line of this.#lines.values()) if (line.until !== null) line.until = Math.min(line.until, now)
    this.#failures = 0
    this.#openUntil = 0
  }

  #failed({ retryAfterMillis }: Posted, now: number): void {
    this.#window = 1
    this.#failures += 1
    const over = this.#failures - FAILURES_TO_BREAK + 1
    if (over > 0) this.#openUntil = now + this.#retrySchedule.afterFailures(over)
    if (retryAfterMillis !== null) this.#openUntil = Math.max(this.#openUntil, now + retryAfterMillis)
  }

  #dueLine(now: number): StoredDelivery | undefined {
    for (const { until, delivery } of this.#lines.values())
      if (until !== null && until <= now) return delivery
    return undefined
  }

  async #nextOfLine(read: ReadPending): Promise<StoredDelivery | undefined> {
    for (const [task, after] of this.#toRead) {
      const [delivery] = await read(task, after, 1)
      this.#toRead.delete(task)
      if (delivery !== undefined) return delivery
      this.#lines.delete(task)
    }
    return undefined
  }

  async #nextNew(now: number, read: ReadPending): Promise<StoredDelivery | undefined> {
    while (true) {
      for (let delivery = this.#ready.shift(); delivery !== undefined; delivery = this.#ready.shift()) {
        const { taskId, progress } = delivery
        const line = this.#lines.get(taskId)
        if (line !== undefined) line.hasMore = true
        else if (progress.nextAt <= now) return delivery
        else this.#lines.set(taskId, { delivery, until: progress.nextAt, hasMore: false })
      }
      if (this.#isExhausted || this.#lines.size >= MOST_LINES) return undefined
      const page = await read(null, this.#position, PAGE)
      this.#position = page.at(-1)?.event ?? this.#position
      this.#isExhausted = page.length < PAGE
      this.#ready = [...page]
    }
  }
}
