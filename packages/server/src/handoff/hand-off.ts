import type { CallBack } from '@baton/protocol'
import { Coalescer } from './coalescer.ts'
import type { ControlOrder, ControlResult } from './control.ts'
import { Events } from './events.ts'
import { type InstanceRecord, noTotals } from './instances.ts'
import { type LeaseRef, parseLeaseId } from './lease-id.ts'
import { Mentions } from './mentions.ts'
import type { Policy } from './policy.ts'
import type { RefusalCode, SettlementOrder } from './settlement.ts'
import { SIGHTING_INTERVAL_MILLIS, Sightings } from './sightings.ts'
import {
  type CallBackResult,
  type HandedOut,
  type HandOffAnswers,
  type PullOrder,
  type PullResult,
  type RenewResult,
  type Store,
  StoreUnavailable,
} from './store.ts'
import type { PartitionPage, PartitionQuery, TaskPage, TaskQuery, TaskRecord } from './task-record.ts'
import { Upkeep } from './upkeep.ts'
import { NOTHING, WaitingPulls } from './waiting-pulls.ts'

export interface HandOffOptions {
  readonly store: Store
  readonly policy: Policy
  readonly retentionMillis: number
  readonly node: { readonly instanceId: string; readonly version: string }
  readonly log: Log
}

/** The part of a pino logger that the hand-off uses. */
export interface Log {
  info(fields: object, text: string): void
  warn(fields: object, text: string): void
  error(fields: object, text: string): void
}

export interface PullRequest extends PullOrder {
  readonly waitMillis: number
}

export interface SettleRequest {
  readonly instance: string | null
  readonly settlements: readonly { readonly leaseId: string; readonly order: SettlementOrder }[]
  /** Also hand out the next partitions, in the same transaction. */
  readonly pull: PullRequest | null
}

export type CallBackAnswer = Exclude<CallBackResult, { readonly kind: 'store_full' }>

const NEARLY_FULL =
  'the disk under the data folder is nearly full, so no new partitions are accepted; pulls and settles go on. Free some space and call back again'

export interface Settled {
  readonly settled: readonly string[]
  readonly refused: readonly { readonly leaseId: string; readonly code: RefusalCode }[]
  readonly pulled: PullResult | null
}

export type Renewal = RenewResult[number] & { readonly leaseId: string }

/** The hand-off as its callers see it: the four verbs, the views, and control. Knows neither HTTP nor SQL. */
export class HandOff {
  readonly #store: Store
  readonly #policy: Policy
  readonly #node: HandOffOptions['node'] & { readonly startedAt: number }
  readonly #log: Log
  readonly #coalescer: Coalescer
  readonly #waiting: WaitingPulls
  readonly #upkeep: Upkeep
  readonly #sightings = new Sightings()
  /** What happens, for those who watch. */
  readonly events: Events
  #heartbeat: NodeJS.Timeout | undefined
  #draining = false
  #outage = false

  constructor({ store, policy, retentionMillis, node, log }: HandOffOptions) {
    this.#store = store
    this.#policy = policy
    this.#node = { ...node, startedAt: Date.now() }
    this.#log = log
    this.#coalescer = new Coalescer(store, {
      committed: (answers) => this.#committed(answers),
      failed: (error) => this.#failed(error),
    })
    this.#waiting = new WaitingPulls(async (order) => this.#tryPull(order))
    this.events = new Events(store, (error) => this.#failed(error))
    this.#upkeep = new Upkeep(store, policy, retentionMillis, {
      readied: (count) => this.#waiting.wake(count),
      lookAround: () => this.#waiting.wake(this.#waiting.size),
      parked: (count) =>
        log.warn({ parked: count }, 'partitions were parked: their leases expired too often'),
      failed: (error) => this.#failed(error),
    })
    store.onHint?.((readied) => this.#waiting.wake(readied))
  }

  async start(): Promise<void> {
    await this.#beat()
    this.#upkeep.start()
    this.#heartbeat = setInterval(() => void this.#beat(), SIGHTING_INTERVAL_MILLIS)
  }

  async callBack(callBack: CallBack, producer: string | null): Promise<CallBackAnswer> {
    const { callBack: result } = await this.#coalescer.ask({ callBack: { callBack, producer } })
    if (result === undefined) throw new Error('a call-back came back without its answer')
    if (result.kind === 'store_full') throw new StoreUnavailable('store_full', NEARLY_FULL)
    const calledBack = result.kind === 'stored' ? result.accepted : 0
    this.#sightings.note(producer, 'producer', { callBacks: 1, calledBack })
    return result
  }

  async pull(request: PullRequest, signal?: AbortSignal): Promise<PullResult> {
    const { waitMillis, ...order } = request
    if (this.#draining) return NOTHING
    const epoch = this.#waiting.epoch
    const first = await this.#tryPull(order)
    const answered = first.partitions.length > 0 || first.repeated || waitMillis <= 0
    const result = answered ? first : await this.#waiting.wait(order, waitMillis, signal, epoch)
    this.#notePull(request, result)
    return result
  }

  async settle(request: SettleRequest, signal?: AbortSignal): Promise<Settled> {
    const mentions = new Mentions(request.settlements)
    const { settlements } = mentions
    const wanted = this.#draining ? null : request.pull
    const epoch = this.#waiting.epoch
    const answer = await this.#coalescer.ask({
      settle: { instance: request.instance, settlements },
      ...(wanted === null ? {} : { pull: orderOf(wanted) }),
    })
    mentions.judged(answer.settle ?? [])
    const settled: string[] = []
    const refused: { leaseId: string; code: RefusalCode }[] = []
    const totals = { done: 0, failed: 0, released: 0 }
    for (const { leaseId, order } of request.settlements) {
      const code = mentions.codeFor(leaseId, order)
      if (code !== null) refused.push({ leaseId, code })
      else {
        settled.push(leaseId)
        totals[order.outcome] += 1
      }
    }
    this.#sightings.note(request.instance, 'worker', totals)
    const pulled =
      request.pull === null ? null : await this.#afterSettle(request.pull, answer.pull, signal, epoch)
    return { settled, refused, pulled }
  }

  async renew(leaseIds: readonly string[], instance: string | null): Promise<Renewal[]> {
    const known = leaseIds.map((leaseId) => ({ leaseId, lease: parseLeaseId(leaseId) }))
    const leases = known.flatMap(({ lease }) => (lease === undefined ? [] : [lease]))
    const answer = leases.length === 0 ? undefined : await this.#coalescer.ask({ renew: { leases } })
    this.#sightings.note(instance, 'worker')
    const verdicts = (answer?.renew ?? []).values()
    return known.map(({ leaseId, lease }) => {
      const verdict = lease === undefined ? undefined : verdicts.next().value
      return { leaseId, ...(verdict ?? { refused: 'lease_unknown' as const }) }
    })
  }

  /** Takes back leases whose puller is known to have received nothing. Best effort. */
  undo(partitions: readonly HandedOut[]): void {
    const leases = partitions
      .map(({ lease }) => (lease === null ? undefined : parseLeaseId(lease.id)))
      .filter((lease): lease is LeaseRef => lease !== undefined)
    if (leases.length === 0) return
    this.#coalescer.ask({ undo: leases }).catch((error: unknown) => this.#failed(error))
  }

  task(taskId: string): Promise<TaskRecord | null> {
    return this.#store.task(taskId)
  }

  tasks(query: TaskQuery): Promise<TaskPage> {
    return this.#store.tasks(query)
  }

  partitions(query: PartitionQuery): Promise<PartitionPage | null> {
    return this.#store.partitions(query)
  }

  /** In force with the first step; the answer comes when all steps are done. */
  async control(order: ControlOrder): Promise<ControlResult> {
    if (order.verb === 'level-barrier' && order.enabled && this.#policy.delivery === 'at-most-once') {
      return { kind: 'barrier_without_leases' }
    }
    let changed = 0
    while (true) {
      const result = await this.#store.control(order)
      if (result.kind !== 'applied') return result
      changed += result.changed
      this.#waiting.wake(result.readied)
      if (!result.more) {
        this.#upkeep.tidySoon(0)
        return { ...result, changed }
      }
    }
  }

  /** `null` asks for the node that answers. */
  async instance(instanceId: string | null): Promise<InstanceRecord | null> {
    const id = instanceId ?? this.#node.instanceId
    const stored = await this.#store.instance(id)
    return this.#sightings.merge(id, stored, stored?.now ?? Date.now())
  }

  async instances(query: { after: string | null; limit: number }): Promise<InstanceRecord[]> {
    await this.#beat()
    return this.#store.instances(query)
  }

  get waitingPulls(): number {
    return this.#waiting.size
  }

  get isDraining(): boolean {
    return this.#draining
  }

  /** Rejects with the reason while the store cannot commit. */
  probe(): Promise<void> {
    return this.#store.probe()
  }

  /** From here on nothing is handed out; waiting pulls are answered empty. Settling goes on. */
  drain(): void {
    this.#draining = true
    this.#waiting.close()
    void this.#beat()
  }

  async stop(): Promise<void> {
    this.drain()
    this.events.stop()
    clearInterval(this.#heartbeat)
    await this.#upkeep.stop()
    await this.#beat()
    await this.#store.close()
  }

  async #tryPull(order: PullOrder): Promise<PullResult> {
    if (this.#draining) return NOTHING
    const { pull } = await this.#coalescer.ask({ pull: order })
    return pull ?? NOTHING
  }

  async #afterSettle(
    request: PullRequest,
    first: PullResult | undefined,
    signal: AbortSignal | undefined,
    epoch: number,
  ): Promise<PullResult> {
    const found = first ?? NOTHING
    const answered =
      found.partitions.length > 0 || found.repeated || request.waitMillis <= 0 || this.#draining
    const result = answered
      ? found
      : await this.#waiting.wait(orderOf(request), request.waitMillis, signal, epoch)
    this.#notePull(request, result)
    return result
  }

  #notePull(request: PullRequest, { partitions, repeated }: PullResult): void {
    const records = partitions.reduce((sum, { recordCount }) => sum + recordCount, 0)
    const given = repeated ? {} : { partitions: partitions.length, records }
    this.#sightings.note(request.instance, 'worker', { pulls: 1, ...given })
  }

  #committed({ readied, nextDueInMillis }: HandOffAnswers): void {
    if (this.#outage) {
      this.#outage = false
      this.#log.info({}, 'the store is back; leases are not taken until their holders had time to renew')
    }
    this.#waiting.wake(readied)
    if (nextDueInMillis !== null) this.#upkeep.dueIn(nextDueInMillis)
  }

  #failed(error: unknown): void {
    if (error instanceof StoreUnavailable) {
      if (!this.#outage) this.#log.error({ err: error, code: error.code }, 'the store cannot commit')
      this.#outage = true
      this.#upkeep.beginGrace()
    } else this.#log.error({ err: error }, 'the hand-off failed')
  }

  async #beat(): Promise<void> {
    const { instanceId, version, startedAt } = this.#node
    const sightings = this.#sightings.take()
    const node = { version, startedAt, draining: this.#draining }
    const self = { instanceId, role: 'service' as const, totals: noTotals(), node }
    try {
      await this.#store.recordSightings([...sightings, self])
    } catch (error) {
      this.#sightings.restore(sightings)
      this.#failed(error)
    }
  }
}

function orderOf({ instance, batch, records, key }: PullRequest): PullOrder {
  return { instance, batch, records, key }
}
