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
import type { CallOptions, PageOptions } from './client-options.ts'
import { type JsonRequestSpec, jsonText } from './transport.ts'

/** Where to continue, and the most events to return. */
export interface EventPageOptions extends CallOptions {
  /** The `next` of the previous page. The default is the first event that is kept. */
  readonly after?: string | undefined
  readonly limit?: number | undefined
}

type Call = (spec: JsonRequestSpec, options: CallOptions) => Promise<unknown>

/** Subscriptions to events of tasks, delivered by webhook or read by the client: `client.subscriptions`. */
export class Subscriptions {
  readonly #call: Call

  constructor(call: Call) {
    this.#call = call
  }

  async list(options: CallOptions = {}): Promise<SubscriptionStatus[]> {
    const spec = { method: 'GET', path: '/subscriptions', field: 'subscriptions' } as const
    const list = (await this.#call(spec, options)) as SubscriptionList
    return list.subscriptions
  }

  /**
   * Tried once unless `retryForSeconds` is given, because a repetition would create a second subscription.
   */
  async create(request: SubscribeRequest = {}, options: CallOptions = {}): Promise<SubscriptionSecret> {
    const { retryForSeconds = 0 } = options
    const answer = await this.#post('/subscriptions', request, { ...options, retryForSeconds })
    return answer as SubscriptionSecret
  }

  /** Removes a subscription, including its undelivered events. */
  async remove(id: string, options: CallOptions = {}): Promise<UnsubscribeAnswer> {
    const spec = { method: 'DELETE', path: pathOf(id), field: 'id' } as const
    return (await this.#call(spec, options)) as UnsubscribeAnswer
  }

  /** Enables a disabled subscription again. */
  async enable(id: string, options: CallOptions = {}): Promise<Subscription> {
    return (await this.#post(`${pathOf(id)}/enable`, {}, options)) as Subscription
  }

  /** Tried once unless `retryForSeconds` is given, because a repetition would create another secret. */
  async rotateSecret(
    id: string,
    request: RotateSecretRequest = {},
    options: CallOptions = {},
  ): Promise<SubscriptionSecret> {
    const { retryForSeconds = 0 } = options
    const answer = await this.#post(`${pathOf(id)}/rotate-secret`, request, { ...options, retryForSeconds })
    return answer as SubscriptionSecret
  }

  /** The deliveries of its events, newest first. */
  async deliveries(id: string, options: PageOptions = {}): Promise<DeliveryList> {
    const { cursor, limit } = options
    const spec = {
      method: 'GET',
      path: `${pathOf(id)}/deliveries`,
      query: { cursor, limit },
      field: 'deliveries',
    } as const
    return (await this.#call(spec, options)) as DeliveryList
  }

  /** Sends an event again. */
  async redeliver(id: string, event: number, options: CallOptions = {}): Promise<Delivery> {
    return (await this.#post(`${pathOf(id)}/deliveries/${event}/redeliver`, {}, options)) as Delivery
  }

  /** Its events after a position, oldest first. Empty if there are no more yet. */
  async events(id: string, options: EventPageOptions = {}): Promise<EventPage> {
    const { after, limit } = options
    const spec = {
      method: 'GET',
      path: `${pathOf(id)}/events`,
      query: { after, limit },
      field: 'events',
    } as const
    return (await this.#call(spec, options)) as EventPage
  }

  #post(path: string, body: object, options: CallOptions): Promise<unknown> {
    return this.#call({ method: 'POST', path, body: jsonText(body, 'the request'), field: 'id' }, options)
  }
}

const pathOf = (id: string): string => `/subscriptions/${encodeURIComponent(id)}`
