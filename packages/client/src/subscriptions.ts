import type {
  Delivery,
  DeliveryList,
  EventPage,
  RotateSecretRequest,
  SubscribeRequest,
  Subscription,
  SubscriptionList,
  SubscriptionSecret,
  SubscriptionStatus,
  UnsubscribeAnswer,
} from '@baton/protocol'
import type { CallOptions, PageOptions } from './call-options.ts'
import { jsonText, type RequestSpec } from './transport.ts'

/** Where to go on, and how many events to take at most. */
export interface EventPageOptions extends CallOptions {
  /** `next` of the page before; from the first event that is kept if it is left out. */
  readonly after?: string | undefined
  readonly limit?: number | undefined
}

type Call = (spec: RequestSpec, options: CallOptions) => Promise<unknown>

/** Who is told what happens to tasks, by webhooks or by reading: `client.subscriptions`. */
export class Subscriptions {
  readonly #call: Call

  constructor(call: Call) {
    this.#call = call
  }

  async list(options: CallOptions = {}): Promise<SubscriptionStatus[]> {
    const list = (await this.#call({ method: 'GET', path: '/subscriptions' }, options)) as SubscriptionList
    return list.subscriptions
  }

  /** Tried once unless `retryForSeconds` is given with the call: a repetition would make a second one. */
  async create(wish: SubscribeRequest = {}, options: CallOptions = {}): Promise<SubscriptionSecret> {
    const { retryForSeconds = 0 } = options
    const answer = await this.#post('/subscriptions', wish, { ...options, retryForSeconds })
    return answer as SubscriptionSecret
  }

  /** Removes a subscription, with what is not delivered yet. */
  async remove(id: string, options: CallOptions = {}): Promise<UnsubscribeAnswer> {
    return (await this.#call({ method: 'DELETE', path: pathOf(id) }, options)) as UnsubscribeAnswer
  }

  /** Goes on with one that was disabled. */
  async enable(id: string, options: CallOptions = {}): Promise<Subscription> {
    return (await this.#post(`${pathOf(id)}/enable`, {}, options)) as Subscription
  }

  /** Tried once unless `retryForSeconds` is given with the call: a repetition would make another secret. */
  async rotateSecret(
    id: string,
    wish: RotateSecretRequest = {},
    options: CallOptions = {},
  ): Promise<SubscriptionSecret> {
    const { retryForSeconds = 0 } = options
    const answer = await this.#post(`${pathOf(id)}/rotate-secret`, wish, { ...options, retryForSeconds })
    return answer as SubscriptionSecret
  }

  /** What became of its events, newest first. */
  async deliveries(id: string, options: PageOptions = {}): Promise<DeliveryList> {
    const { cursor, limit } = options
    const spec = { method: 'GET', path: `${pathOf(id)}/deliveries`, query: { cursor, limit } } as const
    return (await this.#call(spec, options)) as DeliveryList
  }

  /** Sends an event again. */
  async redeliver(id: string, event: number, options: CallOptions = {}): Promise<Delivery> {
    return (await this.#post(`${pathOf(id)}/deliveries/${event}/redeliver`, {}, options)) as Delivery
  }

  /** Its events, oldest first, from a place on. Empty when there are no more yet. */
  async events(id: string, options: EventPageOptions = {}): Promise<EventPage> {
    const { after, limit } = options
    const spec = { method: 'GET', path: `${pathOf(id)}/events`, query: { after, limit } } as const
    return (await this.#call(spec, options)) as EventPage
  }

  #post(path: string, body: object, options: CallOptions): Promise<unknown> {
    return this.#call({ method: 'POST', path, body: jsonText(body, 'the request') }, options)
  }
}

const pathOf = (id: string): string => `/subscriptions/${encodeURIComponent(id)}`
