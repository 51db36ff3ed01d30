import { definitionChanges } from '../handoff/defined-subscriptions.ts'
import type { Log } from '../handoff/log.ts'
import {
  type DefinedSubscription,
  type DeliveryAnswer,
  type DeliveryChange,
  MAX_SUBSCRIPTIONS,
  type StoredDelivery,
} from '../handoff/outbox.ts'
import { PeriodicJob } from '../handoff/periodic-job.ts'
import { type Store, StoreUnavailable } from '../handoff/store.ts'
import type { Posted, Poster } from './posting.ts'
import { CLOUD_EVENT_TYPE, cloudEvent, signatureOf } from './signed-event.ts'
import { type RetrySchedule, Target } from './target.ts'

/** How often the deliverer polls for new events. */
const POLL_MILLIS = 100
/** The interval when there are no subscriptions, or another node leads. */
const IDLE_MILLIS = 1000
/** Besides one for each target, so that receivers that do not answer only delay themselves. */
const MOST_SHARED = 64
/** How long running requests may take to finish when the service stops. */
const STOP_MILLIS = 3000

interface DelivererOptions {
  readonly store: Pick<Store, 'deliver'>
  /** Called when there is something to send, because its modules take time to load. */
  readonly openPoster: () => Promise<Poster>
  readonly retrySchedule: RetrySchedule
  readonly source: string
  readonly userAgent: string
  readonly log: Log
  /** The current subscriptions of the subscriptions file. */
  readonly file?: { readonly current: readonly DefinedSubscription[] } | null
}

interface DeliveryCounts {
  delivered: number
  retried: number
  failed: number
}

interface Finished {
  readonly target: Target
  readonly change: DeliveryChange
  readonly posted: Posted
}

/**
 * Sends events to the receivers of subscriptions; only the leader does so. Its state is read from the store,
 * and the outcome of a delivery is recorded there before the next event of the same task is sent. After a
 * crash, or on another node, delivery continues from there, and an event that was sent but not recorded may
 * be sent again.
 */
export class Deliverer {
  readonly counts: DeliveryCounts = { delivered: 0, retried: 0, failed: 0 }
  readonly #options: DelivererOptions
  readonly #targets = new Map<string, Target>()
  readonly #recurring = new PeriodicJob(() => this.#run())
  #finished: Finished[] = []
  readonly #underWay = new Set<Promise<void>>()
  #abort = new AbortController()
  #nextEvent = 0
  #revisions: ReadonlyMap<string, number> = new Map()
  /** The store's clock at its last answer. */
  #now = 0
  #isStopping = false
  /** Names of the file's subscriptions for which there is no room. */
  #omitted = ''
  #poster: Promise<Poster> | undefined

  constructor(options: DelivererOptions) {
    this.#options = options
  }

  /** The number of targets whose circuit is open after too many failures. */
  get broken(): number {
    return [...this.#targets.values()].filter(({ isBroken }) => isBroken).length
  }

  async start(): Promise<void> {
    // The subscriptions of the file receive all events from the first request on.
    if (this.#options.file != null) await this.#syncSubscriptions().catch(() => undefined)
    this.#recurring.start()
  }

  /** Called when the file has changed. */
  pollNow(): void {
    this.#recurring.dueIn(0)
  }

  /** Waits briefly for running deliveries and records their outcomes. */
  async stop(): Promise<void> {
    this.#isStopping = true
    await this.#recurring.stop()
    const late = setTimeout(() => this.#abort.abort(), STOP_MILLIS)
    await Promise.all(this.#underWay)
    clearTimeout(late)
    await this.#record().catch(() => undefined)
    ;(await this.#poster)?.close()
  }

  async #run(): Promise<number> {
    try {
      await this.#record()
      const answer = await this.#syncSubscriptions()
      if (answer === null) return this.#rest()
      this.#now = answer.now
      this.#adopt(answer)
      if (this.#targets.size === 0) return IDLE_MILLIS
      await this.#send(answer.now)
      return POLL_MILLIS
    } catch (error) {
      if (!(error instanceof StoreUnavailable))
        this.#options.log.error({ err: error }, 'delivering webhooks failed')
      return this.#rest()
    }
  }

  /** Stores the subscriptions of the file if they have changed, and reads all. Null if another node leads. */
  async #syncSubscriptions(): Promise<DeliveryAnswer | null> {
    const { store, file } = this.#options
    const answer = await store.deliver({ ask: 'targets', openCircuits: this.#openCircuits() })
    if (answer === null || file == null) return answer
    const { made, changed, omitted } = definitionChanges(answer.subscriptions, file.current, answer.now)
    this.#noteOmitted(omitted.map(({ name }) => name))
    if (made.length + changed.length === 0) return answer
    return store.deliver({ ask: 'define', subscriptions: file.current })
  }

  #noteOmitted(names: readonly string[]): void {
    const omitted = names.join(', ')
    if (omitted !== this.#omitted && omitted !== '')
      this.#options.log.warn(
        { omitted },
        `subscriptions of the file were not created: the service already has ${MAX_SUBSCRIPTIONS}; remove some`,
      )
    this.#omitted = omitted
  }

  #openCircuits(): ReadonlyMap<string, number> {
    const open = new Map<string, number>()
    for (const [id, target] of this.#targets) {
      const until = target.openUntil(this.#now)
      if (until !== null) open.set(id, until)
    }
    return open
  }

  /** Another node leads, or the store is unavailable: the state here is out of date. */
  #rest(): number {
    if (this.#targets.size === 0) return IDLE_MILLIS
    this.#abort.abort()
    this.#abort = new AbortController()
    this.#targets.clear()
    this.#finished = []
    this.#nextEvent = 0
    return POLL_MILLIS
  }

  async #record(): Promise<void> {
    const finished = this.#finished
    if (finished.length === 0) return
    this.#finished = []
    const gone = new Set(finished.filter(({ posted }) => posted.isGone).map(({ target }) => target))
    const answer = await this.#options.store.deliver({
      ask: 'record',
      changes: finished.map(({ change }) => change),
      disable: [...gone].map(({ subscription: { id } }) => ({
        id,
        reason: 'the receiver answered 410 Gone, which disables the subscription',
      })),
    })
    if (answer === null) return
    for (const { target, change, posted } of finished) {
      target.finished(change, posted, answer.now)
      this.#count(target, change, posted)
    }
  }

  #count({ subscription }: Target, { event, progress }: DeliveryChange, { error }: Posted): void {
    if (progress?.state === 'delivered') this.counts.delivered += 1
    else if (progress?.state === 'pending') this.counts.retried += 1
    else {
      this.counts.failed += 1
      const { id, url } = subscription
      this.#options.log.warn(
        { subscription: id, url, event, error },
        'a webhook failed after its last attempt',
      )
    }
  }

  #adopt({ subscriptions, nextEvent, revisions }: DeliveryAnswer): void {
    const active = subscriptions.filter(({ state, url }) => state === 'active' && url !== null)
    const ids = new Set(active.map(({ id }) => id))
    for (const id of this.#targets.keys()) if (!ids.has(id)) this.#targets.delete(id)
    for (const subscription of active) {
      const target = this.#targets.get(subscription.id)
      if (target === undefined)
        this.#targets.set(subscription.id, new Target(subscription, this.#options.retrySchedule))
      else target.subscription = subscription
    }
    for (const [id, target] of this.#targets) {
      if (revisions.get(id) !== this.#revisions.get(id)) target.rewind()
      if (nextEvent !== this.#nextEvent) target.expectNewEvents()
    }
    this.#revisions = revisions
    this.#nextEvent = nextEvent
  }

  /** Round-robin, so that a target with many events does not block others. */
  async #send(now: number): Promise<void> {
    let waiting = [...this.#targets.values()]
    let shared = waiting.reduce((sum, { sending }) => sum + Math.max(sending - 1, 0), 0)
    while (waiting.length > 0 && !this.#isStopping) {
      const more: Target[] = []
      for (const target of waiting) {
        const isOwn = target.sending === 0
        if (!isOwn && shared >= MOST_SHARED) continue
        const delivery = await target.next(now, async (ofTask, after, limit) => {
          const subscription = target.subscription.id
          const request = { ask: 'pending' as const, subscription, ofTask, after, limit }
          return (await this.#options.store.deliver(request))?.deliveries ?? []
        })
        if (delivery === undefined) continue
        if (!isOwn) shared += 1
        this.#begin(target, delivery, now)
        more.push(target)
      }
      waiting = more
    }
  }

  #begin(target: Target, delivery: StoredDelivery, now: number): void {
    const { signal } = this.#abort
    const began = performance.now()
    const sending = this.#post(target, delivery, signal, now).then((posted) => {
      this.#underWay.delete(sending)
      if (signal.aborted) return
      const millis = Math.round(performance.now() - began)
      const { subscription, event } = delivery
      const progress = target.judge(delivery, posted, now + millis, millis)
      this.#finished.push({ target, posted, change: { subscription, event, progress } })
      this.#recurring.dueIn(0)
    })
    this.#underWay.add(sending)
  }

  async #post(target: Target, delivery: StoredDelivery, signal: AbortSignal, now: number): Promise<Posted> {
    const { openPoster, source, userAgent } = this.#options
    this.#poster ??= openPoster()
    const poster = await this.#poster
    const { url, secrets } = target.subscription
    const { id } = delivery.message
    const body = JSON.stringify(cloudEvent(delivery, source))
    // Receivers compare the timestamp with their own clocks.
    const timestamp = Math.floor(Date.now() / 1000)
    const signing = secrets.filter(({ until }) => until === null || until > now).map(({ secret }) => secret)
    const headers = {
      'content-type': CLOUD_EVENT_TYPE,
      'user-agent': userAgent,
      'webhook-id': id,
      'webhook-timestamp': String(timestamp),
      'webhook-signature': signatureOf(signing, { id, timestamp, body }),
    }
    return poster.post(url ?? '', headers, body, signal)
  }
}
