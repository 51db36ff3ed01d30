import { definitionChanges } from '../../defined-subscriptions.ts'
import {
  type DefinedSubscription,
  type DeliveryAnswer,
  type DeliveryRequest,
  MAX_SUBSCRIPTIONS,
  type OutboxDisk,
  progressOf,
  type StoredDelivery,
  type StoredSubscription,
  type SubscriptionRequest,
  type SubscriptionResult,
} from '../../outbox.ts'
import type { Exclusive } from '../exclusive.ts'
import type { Runner } from '../runner.ts'
import type { Memory } from '../state/memory.ts'
import type { Transaction } from '../transaction.ts'
import { skipPastEvents } from '../webhook-events.ts'

const DELETED_PER_STEP = 500

/** Subscriptions and their deliveries, for operators and for the node that delivers. */
export class Subscriptions {
  readonly #disk: OutboxDisk
  readonly #runner: Runner
  readonly #exclusive: Exclusive
  readonly #revisions = new Map<string, number>()
  /** Reported by the deliverer of this node. */
  #openCircuits: ReadonlyMap<string, number> = new Map()

  constructor(disk: OutboxDisk, runner: Runner, exclusive: Exclusive) {
    this.#disk = disk
    this.#runner = runner
    this.#exclusive = exclusive
  }

  async answer(request: SubscriptionRequest): Promise<SubscriptionResult> {
    switch (request.ask) {
      case 'list': {
        const subscriptions = (await this.#subscriptions()).filter(isListed)
        const ids = subscriptions.map(({ id }) => id)
        const backlogs = await this.#exclusive.view(() => this.#disk.backlogs(ids))
        return {
          kind: 'subscriptions',
          subscriptions: subscriptions.map((subscription, index) => ({
            subscription,
            backlog: backlogs[index] ?? { pending: 0, oldestAt: null },
            circuitOpenUntil: this.#openCircuits.get(subscription.id) ?? null,
          })),
        }
      }
      case 'deliveries': {
        const subscription = (await this.#subscriptions()).find(({ id }) => id === request.id)
        if (subscription === undefined || !isListed(subscription)) return { kind: 'subscription_unknown' }
        const { id, after, newestFirst, limit } = request
        const query = { ...ofSubscription(id), after, newestFirst, limit }
        const deliveries = await this.#exclusive.view(() => this.#disk.deliveries(query))
        return { kind: 'deliveries', subscription, deliveries }
      }
      case 'redeliver':
        return this.#redeliver(request)
      default:
        return this.#change(request, (tx) => change(tx, request))
    }
  }

  async deliver(request: DeliveryRequest): Promise<DeliveryAnswer> {
    let deliveries: readonly StoredDelivery[] = []
    if (request.ask === 'pending') {
      const { subscription, ofTask, after, limit } = request
      const query = { ...ofSubscription(subscription), pending: true, ofTask, after, limit }
      deliveries = await this.#exclusive.view(() => this.#disk.deliveries(query))
    } else if (request.ask === 'targets') this.#openCircuits = request.openCircuits
    else if (request.ask === 'record') await this.#exclusive.run(() => this.#record(request))
    else await this.#exclusive.run(() => this.#define(request.subscriptions))
    return this.#exclusive.run(async () => {
      const { subscriptions, nextIds } = await this.#runner.open()
      return {
        subscriptions: [...subscriptions.values()],
        nextEvent: nextIds.event,
        revisions: new Map(this.#revisions),
        deliveries,
        now: this.#runner.now,
      }
    })
  }

  /** Deletes what is past retention, or of a removed subscription. True while there may be more. */
  async maintain(olderThan: number): Promise<boolean> {
    const { subscriptions } = await this.#runner.open()
    const removed = [...subscriptions.values()].find(({ state }) => state === 'removed')
    if (removed !== undefined) return this.#removeRows(removed)
    for (const id of subscriptions.keys()) if (await this.#deleteOld(id, olderThan)) return true
    return false
  }

  async #deleteOld(subscription: string, olderThan: number): Promise<boolean> {
    const [oldest] = await this.#rowsOf(subscription, 1)
    if (oldest === undefined || oldest.at >= olderThan) return false
    const old = (await this.#rowsOf(subscription, DELETED_PER_STEP)).filter(({ at }) => at < olderThan)
    const deletedTo = old.at(-1)?.event ?? 0
    await this.#transact((tx) => {
      for (const { event } of old) tx.outbox.changes.push({ subscription, event, progress: null })
      const row = tx.memory.subscriptions.get(subscription)
      if (row !== undefined) put(tx, { ...row, deletedTo })
    })
    return true
  }

  async #removeRows({ id: subscription }: StoredSubscription): Promise<boolean> {
    const rows = await this.#rowsOf(subscription, DELETED_PER_STEP)
    await this.#transact((tx) => {
      for (const { event } of rows) tx.outbox.changes.push({ subscription, event, progress: null })
      if (rows.length === DELETED_PER_STEP) return
      tx.setSubscription(subscription, null)
      this.#revisions.delete(subscription)
    })
    return true
  }

  #rowsOf(subscription: string, limit: number): Promise<StoredDelivery[]> {
    return this.#disk.deliveries({ ...ofSubscription(subscription), limit })
  }

  #subscriptions(): Promise<StoredSubscription[]> {
    return this.#exclusive.run(async () => [...(await this.#runner.open()).subscriptions.values()])
  }

  async #redeliver(request: Extract<SubscriptionRequest, { ask: 'redeliver' }>): Promise<SubscriptionResult> {
    const { id: subscription, event } = request
    const query = { ...ofSubscription(subscription), after: event - 1, limit: 1 }
    const [found] = await this.#exclusive.view(() => this.#disk.deliveries(query))
    return this.#change(request, (tx) => {
      const row = listed(tx.memory, subscription)
      if (row === undefined) return { kind: 'subscription_unknown' }
      if (found?.event !== event) return { kind: 'delivery_unknown' }
      if (row.url === null) return { kind: 'subscription_has_no_url' }
      const progress = { ...progressOf(found), state: 'pending' as const, attempts: 0, nextAt: tx.now }
      tx.outbox.changes.push({ subscription, event, progress })
      return { kind: 'delivery', delivery: { ...found, progress } }
    })
  }

  #change(
    { ask, by }: SubscriptionRequest,
    work: (tx: Transaction) => SubscriptionResult,
  ): Promise<SubscriptionResult> {
    return this.#exclusive.transact(async (tx) => {
      const result = work(tx)
      const changed = changedBy(result)
      if (changed === undefined) return result
      this.#revise(changed)
      tx.audit(by, { action: actions[ask] ?? ask, target: changed, changed: 1 })
      return result
    })
  }

  #revise(subscription: string): void {
    this.#revisions.set(subscription, (this.#revisions.get(subscription) ?? 0) + 1)
  }

  /** Also disables subscriptions whose receiver rejects further deliveries. */
  #record({ changes, disable }: Extract<DeliveryRequest, { ask: 'record' }>): Promise<void> {
    return this.#transact((tx) => {
      for (const one of changes)
        if (tx.memory.subscriptions.has(one.subscription)) tx.outbox.changes.push(one)
      for (const { id, reason } of disable) {
        const row = tx.memory.subscriptions.get(id)
        if (row?.state === 'active') put(tx, { ...row, state: 'disabled', reason })
      }
    })
  }

  #define(defined: readonly DefinedSubscription[]): Promise<void> {
    return this.#transact((tx) => {
      const { made, changed } = definitionChanges(tx.memory.subscriptions.values(), defined, tx.now)
      for (const row of changed) {
        put(tx, row)
        this.#revise(row.id)
      }
      for (const one of made) put(tx, { ...newSubscription(tx, one), name: one.name })
    })
  }

  /** For work that needs only memory. */
  #transact<Result>(work: (tx: Transaction) => Result): Promise<Result> {
    return this.#runner.transact(async (tx) => work(tx))
  }
}

/** All deliveries of a subscription, from the first on. */
const ofSubscription = (subscription: string) => ({
  subscription,
  pending: false,
  ofTask: null,
  after: 0,
  newestFirst: false,
})

/** As the audit names them. */
const actions: Partial<Record<SubscriptionRequest['ask'], string>> = {
  create: 'subscribe',
  remove: 'unsubscribe',
  enable: 'enable-subscription',
  rotate: 'rotate-secret',
}

function changedBy(result: SubscriptionResult): string | undefined {
  if (result.kind === 'subscription') return result.subscription.id
  return result.kind === 'delivery' ? result.delivery.subscription : undefined
}

type ChangeRequest = Extract<SubscriptionRequest, { ask: 'create' | 'remove' | 'enable' | 'rotate' }>

function change(tx: Transaction, request: ChangeRequest): SubscriptionResult {
  if (request.ask === 'create') {
    const isFull = [...tx.memory.subscriptions.values()].filter(isListed).length >= MAX_SUBSCRIPTIONS
    return isFull ? { kind: 'too_many_subscriptions' } : put(tx, newSubscription(tx, request))
  }
  const row = listed(tx.memory, request.id)
  if (row === undefined) return { kind: 'subscription_unknown' }
  if (request.ask !== 'enable' && row.name !== undefined && !request.mayBeOfFile)
    return { kind: 'subscription_in_file', name: row.name }
  switch (request.ask) {
    case 'remove':
      return put(tx, { ...row, state: 'removed' })
    case 'enable':
      return put(tx, { ...row, state: 'active', reason: null })
    case 'rotate': {
      const [current] = row.secrets
      const until = tx.now + request.overlapMillis
      const before = current === undefined || request.overlapMillis === 0 ? [] : [{ ...current, until }]
      return put(tx, { ...row, secrets: [{ secret: request.secret, until: null }, ...before] })
    }
  }
}

function newSubscription(
  tx: Transaction,
  { url, types, taskPrefix, secret }: Extract<ChangeRequest, { ask: 'create' }> | DefinedSubscription,
): StoredSubscription {
  return {
    id: `sub_${tx.secret()}`,
    url,
    types,
    taskPrefix,
    secrets: [{ secret, until: null }],
    state: 'active',
    reason: null,
    createdAt: tx.now,
    deletedTo: 0,
  }
}

function put(tx: Transaction, subscription: StoredSubscription): SubscriptionResult {
  if (tx.memory.subscriptions.size === 0) skipPastEvents(tx.memory)
  tx.setSubscription(subscription.id, subscription)
  return { kind: 'subscription', subscription }
}

const isListed = ({ state }: StoredSubscription): boolean => state !== 'removed'

function listed(memory: Memory, id: string): StoredSubscription | undefined {
  const row = memory.subscriptions.get(id)
  return row !== undefined && isListed(row) ? row : undefined
}
