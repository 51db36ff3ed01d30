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
import { subscriptionPath as pathOf } from './paths.ts'
import { type JsonRequestSpec, jsonText } from './transport.ts'

/** Where to continue, and the most events to return. */
export interface EventPageOptions extends CallOptions {
  /** The `next` of the previous page. The default is the first event that is kept. */
  readonly after?: string | undefined
  readonly limit?: number | undefined
}

type Call = <T>(spec: JsonRequestSpec, options: CallOptions) => Promise<T>

/** Subscriptions to events of tasks, delivered by webhook or read by the client: `client.subscriptions`. */
export class Subscriptions {
  readonly #call: Call

  constructor(call: Call) {
    this.#call = call
  }

  async list(options: CallOptions = {}): Promise<SubscriptionStatus[]> {
    const spec = { method: 'GET', path: '/subscriptions', field: 'subscriptions' } as const
    const list = await this.#call<SubscriptionList>(spec, options)
    return list.subscriptions
  }

  /**
   * Tried once unless `retryForSeconds` is given, because a repetition would create a second subscription.
   */
  async create(request: SubscribeRequest = {}, options: CallOptions = {}): Promise<SubscriptionSecret> {
    const { retryForSeconds = 0 } = options
    return this.#post<SubscriptionSecret>('/subscriptions', request, { ...options, retryForSeconds })
  }

  /** Removes a subscription, including its undelivered events. */
  async remove(id: string, options: CallOptions = {}): Promise<UnsubscribeAnswer> {
    const spec = { method: 'DELETE', path: pathOf(id), field: 'id' } as const
    return this.#call<UnsubscribeAnswer>(spec, options)
  }

  /** Enables a disabled subscription again. */
  async enable(id: string, options: CallOptions = {}): Promise<Subscription> {
    return this.#post<Subscription>(`${pathOf(id)}/enable`, {}, options)
  }

  /** Tried once unless `retryForSeconds` is given, because a repetition would create another secret. */
  async rotateSecret(
    id: string,
    request: RotateSecretRequest = {},
    options: CallOptions = {},
  ): Promise<SubscriptionSecret> {
    const { retryForSeconds = 0 } = options
    return this.#post<SubscriptionSecret>(`${pathOf(id)}/rotate-secret`, request, {
      ...options,
      retryForSeconds,
    })
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
    return this.#call<DeliveryList>(spec, options)
  }

  /** Sends an event again. */
  async redeliver(id: string, event: number, options: CallOptions = {}): Promise<Delivery> {
    return this.#post<Delivery>(`${pathOf(id)}/deliveries/${event}/redeliver`, {}, options)
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
    return this.#call<EventPage>(spec, options)
  }

  #post<T>(path: string, body: object, options: CallOptions): Promise<T> {
    return this.#call({ method: 'POST', path, body: jsonText(body, 'the request'), field: 'id' }, options)
  }
}
