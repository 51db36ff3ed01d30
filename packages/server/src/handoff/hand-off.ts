import type { CallBack } from '@baton/protocol'
import { DEFAULT_AUDIT_MILLIS } from './audit.ts'
import { Batcher, type BatchTracing } from './batcher.ts'
import { ChangeStream } from './change-stream.ts'
import { type Stopwatch, type WallClock, withTimeout } from './clock.ts'
import { HandOffCounts, StoreCounts } from './counts/counts.ts'
import { StoreReadings } from './counts/store-readings.ts'
import { DistinctSettlements } from './distinct-settlements.ts'
import { InstanceRegister, type Node } from './instance-register.ts'
import { type LeaseRef, parseLeaseId } from './lease-id.ts'
import type { Log } from './log.ts'
import { Maintenance } from './maintenance.ts'
import type { OpenWorkMeter } from './open-work-meter.ts'
import type { SubscriptionRequest, SubscriptionResult } from './outbox.ts'
import type { PulledPartition } from './partition.ts'
import { Pulls } from './pulls.ts'
import { type ControlRequest, type ControlResult, nextStep } from './rules/control.ts'
import { type Policy, settingThatNeedsLeases, type TableSettings } from './rules/policy.ts'
import type { Requester } from './rules/stamps.ts'
import {
  type BatchedCallBack,
  type CallBackOutcome,
  type NotRevoked,
  type PartitionRef,
  type Pulled,
  type PullRequest,
  type RenewalAnswer,
  type RenewalRequest,
  type RenewedLease,
  type Revoked,
  type Settled,
  type SettleRequest,
  type Store,
  StoreUnavailable,
  type StoreViews,
  type TableChange,
} from './store.ts'
import { DiskSpace, isDiskFull, StoreHealth } from './store-health.ts'
import type { InstanceDetails, InstancePage, InstanceQuery } from './views/queries.ts'
import { watchedStore } from './watched-store.ts'

interface HandOffOptions {
  readonly store: Store
  readonly policy: Policy
  readonly retentionMillis: number
  readonly auditMillis?: number
  readonly node: Node
  readonly log: Log
  /** Runs next to the hand-off on the same store. It is stopped while the hand-off drains. */
  readonly deliverer?: Deliverer
  readonly tracing?: BatchTracing | undefined
  /** The maximum number of waiting pulls. Further pulls are answered immediately. */
  readonly maxWaitingPulls?: number
  readonly openWork?: OpenWorkMeter
  /** Injected by tests to control the time. */
  readonly clock?: WallClock
  readonly stopwatch?: Stopwatch
}

interface Deliverer {
  start(): Promise<void>
  stop(): Promise<void>
}

/** Shorter than the usual timeout of readiness probes, so that they get an answer. */
const PROBE_MILLIS = 5000

/** More than a worker usually holds, so that one transaction is enough. */
const LEASES_REVOKED_AT_ONCE = 5000

const NEARLY_FULL =
  'the disk of the data folder is nearly full, so new partitions are refused; pulls and settles still work. Free disk space and call back again'

/** The hand-off for its callers: the four verbs, the views, and control. Independent of HTTP and SQL. */
export class HandOff {
  readonly #store: Store
  /** The settings of the service. Tasks may override them. */
  readonly policy: Policy
  readonly #batcher: Batcher
  readonly #pulls: Pulls
  readonly #maintenance: Maintenance
  readonly #instances: InstanceRegister
  /** Changes, for watchers. */
  readonly changeStream: ChangeStream
  /** Metrics of this node and its store. */
  readonly counts = new HandOffCounts()
  readonly storeCounts = new StoreCounts()
  readonly storeReadings: StoreReadings
  readonly openWork: OpenWorkMeter | undefined
  readonly #diskSpace: DiskSpace
  readonly #failed: (error: unknown) => void
  readonly #deliverer: Deliverer | undefined
  #delivererStopped: Promise<void> | undefined
  #draining = false
  /** Called when another node has taken over. */
  onLeadershipLost: () => void = () => undefined

  constructor(options: HandOffOptions) {
    const { store: given, policy, retentionMillis, node, log, deliverer } = options
    const { auditMillis = DEFAULT_AUDIT_MILLIS } = options
    this.#deliverer = deliverer
    this.openWork = options.openWork
    const { clock = () => Date.now(), stopwatch = () => performance.now() } = options
    const storeHealth = new StoreHealth(log, () => this.#maintenance.beginGrace())
    const store = watchedStore(given, this.storeCounts, storeHealth)
    this.#store = store
    this.policy = policy
    const diskSpace = new DiskSpace(log, stopwatch)
    this.#diskSpace = diskSpace
    const failed = (error: unknown) =>
      isDiskFull(error) ? diskSpace.refused(error) : storeHealth.failed(error)
    this.#failed = failed
    this.#batcher = new Batcher(
      store,
      {
        committed: ({ newlyReady, newlyReadyOf, nextDueInMillis }) => {
          this.#pulls.waiting.wake(newlyReady, newlyReadyOf)
          if (nextDueInMillis !== null) this.#maintenance.dueIn(nextDueInMillis)
        },
        failed: (error, asks) => {
          failed(error)
          // The workers that hold these leases could not renew or settle them.
          if (
            isDiskFull(error) &&
            asks.some(({ settle, renew }) => settle !== undefined || renew !== undefined)
          )
            this.#maintenance.beginGrace()
        },
      },
      options.tracing,
    )
    this.#pulls = new Pulls(
      this.#batcher,
      (instance, result) => {
        this.#instances.notePull(instance)
        this.counts.notePull(result)
      },
      options.maxWaitingPulls,
    )
    const hasNamesake = () =>
      log.warn(
        { instanceId: node.instanceId },
        'another node has the same name; give each node a unique name',
      )
    // A heartbeat is small: if there is no space for it, there is none for anything.
    const missed = (error: unknown) => storeHealth.failed(error)
    this.#instances = new InstanceRegister(store, node, { failed: missed, hasNamesake }, clock, stopwatch)
    this.changeStream = new ChangeStream(store, failed)
    this.storeReadings = new StoreReadings(
      { ...store, activeInstances: (query) => this.#instances.activeInstances(query) },
      failed,
    )
    this.#maintenance = new Maintenance(
      store,
      policy,
      { retentionMillis, auditMillis },
      {
        newlyReady: (count, newlyReadyOf) => this.#pulls.waiting.wake(count, newlyReadyOf),
        parked: (count) =>
          log.warn({ parked: count }, 'partitions were parked: their leases expired too often'),
        failed,
      },
    )
    store.cluster?.onLeadership((leads) => {
      // Leases may seem overdue only because workers had no node to renew them with.
      if (leads) this.#maintenance.beginGrace()
      else this.onLeadershipLost()
      // Partitions may have become ready unnoticed. Without leadership, waiting pulls fail here.
      this.#pulls.waiting.wakeAll()
    })
  }

  async start(): Promise<void> {
    await this.#instances.start()
    this.#maintenance.start()
    await this.#deliverer?.start()
  }

  async callBack(
    callBack: CallBack,
    producer: string | null,
    more: Omit<BatchedCallBack, 'callBack' | 'producer'> = {},
  ): Promise<CallBackOutcome> {
    const { callBack: result } = await this.#batcher.ask({ callBack: { callBack, producer, ...more } })
    if (result === undefined) throw new Error('the store returned no answer for a call-back')
    this.counts.noteCallBack(result)
    if (result.kind === 'store_full') {
      const refusal = new StoreUnavailable('store_full', NEARLY_FULL)
      this.#diskSpace.refused(refusal)
      throw refusal
    }
    if (result.kind === 'stored' && result.accepted > 0) this.#diskSpace.stored()
    this.#instances.noteSeen(producer, 'producer')
    return result
  }

  pull(request: PullRequest, signal?: AbortSignal): Promise<Pulled> {
    return this.#pulls.pull(request, signal)
  }

  async settle(request: SettleRequest, signal?: AbortSignal): Promise<Settled> {
    const { instance, settlements, pull, tables = null } = request
    const mentions = new DistinctSettlements(settlements)
    const { start } = this.#pulls
    const answer = await this.#batcher.ask({
      settle: { instance, settlements: mentions.settlements, tables },
      pull: this.#pulls.pullBeside(pull),
    })
    const outcome = mentions.outcome(answer.settle ?? [])
    const { settled, refused } = outcome
    this.counts.noteSettle(outcome)
    this.#instances.noteSeen(instance, 'worker')
    const pulled = pull === null ? null : await this.#pulls.afterSettling(pull, answer.pull, signal, start)
    // Those of all settles of the batch: each may have thousands.
    const allParked = answer.parked === undefined ? null : new Set(answer.parked)
    const parked = allParked === null ? [] : settled.filter((id) => allParked.has(id))
    return { settled, parked, refused, pulled }
  }

  /** `tables`: those that the caller is limited to. The first mention of a lease counts. */
  async renew(
    renewals: readonly RenewalRequest[],
    instance: string | null,
    tables: readonly string[] | null = null,
  ): Promise<RenewalAnswer[]> {
    const asked = new Map<string, RenewedLease>()
    for (const { leaseId, ...given } of renewals) {
      const lease = asked.has(leaseId) ? undefined : parseLeaseId(leaseId)
      if (lease !== undefined) asked.set(leaseId, { ...lease, ...given })
    }
    const leases = [...asked.values()]
    const answer = leases.length === 0 ? undefined : await this.#batcher.ask({ renew: { leases, tables } })
    this.#instances.noteSeen(instance, 'worker')
    const verdicts = new Map([...asked.keys()].map((leaseId, index) => [leaseId, answer?.renew?.[index]]))
    const renewed = renewals.map(({ leaseId }) => ({
      leaseId,
      ...(verdicts.get(leaseId) ?? { refused: 'lease_unknown' as const }),
    }))
    this.counts.noteRenewals(renewed)
    return renewed
  }

  /** Revokes leases whose client did not receive them. Best effort. */
  undo(partitions: readonly PulledPartition[]): void {
    const leases = partitions
      .map(({ lease }) => (lease === null ? undefined : parseLeaseId(lease.id)))
      .filter((lease): lease is LeaseRef => lease !== undefined)
    if (leases.length === 0) return
    this.#batcher.ask({ undo: leases }).catch(this.#failed)
  }

  /** Null: a limit requires leases. */
  async setTable(change: TableChange): Promise<TableSettings | null> {
    if (this.policy.delivery === 'at-most-once' && typeof change.maxLeases === 'number') return null
    const { settings, newlyReady, newlyReadyOf } = await this.#store.setTable(change)
    this.#pulls.waiting.wake(newlyReady, newlyReadyOf)
    return settings
  }

  /** `null` means this node. */
  instance(instanceId: string | null): Promise<InstanceDetails | null> {
    return this.#instances.instance(instanceId)
  }

  instances(query: InstanceQuery): Promise<InstancePage> {
    return this.#instances.instances(query)
  }

  /** Returns null if the instance does not exist, and `node` if it is one: nodes do not pull. */
  async pauseInstance(
    instanceId: string,
    paused: boolean,
    by?: Requester,
  ): Promise<InstanceDetails | 'node' | null> {
    const instance = await this.#instances.instance(instanceId)
    if (instance === null) return null
    if (instance.node !== null) return 'node'
    const { role } = instance
    const pausedAt = await this.#store.pauseInstance({ instanceId, role, paused, by })
    if (paused) this.#pulls.waiting.tryAgain(instanceId)
    return { ...instance, pausedAt }
  }

  async revokeLease(lease: PartitionRef): Promise<Revoked | NotRevoked> {
    const result = await this.#store.revokeLease(lease)
    if ('unknown' in result) return result
    const { revoked, parked, newlyReady } = result
    this.#pulls.waiting.wake(newlyReady)
    return { revoked, parked }
  }

  /** Revokes the leases of an instance. Returns null if the instance does not exist. */
  async revokeLeases(instanceId: string, by?: Requester): Promise<Revoked | null> {
    let [revoked, parked] = [0, 0]
    for (let more = true; more; ) {
      const step = await this.#store.revokeLeases({ instanceId, limit: LEASES_REVOKED_AT_ONCE, by })
      revoked += step.revoked
      parked += step.parked
      more = step.more
      this.#pulls.waiting.wake(step.newlyReady)
    }
    if (revoked === 0 && (await this.#instances.instance(instanceId)) === null) return null
    return { revoked, parked }
  }

  /** The request takes effect with the first step. Resolves when all steps are done. */
  async control(request: ControlRequest, by?: Requester): Promise<ControlResult> {
    if (this.policy.delivery === 'at-most-once') {
      const levelBarrier = request.verb === 'level-barrier' && request.enabled
      const setting = settingThatNeedsLeases(
        request.verb === 'settings' ? request.settings : { levelBarrier },
      )
      if (setting !== undefined) return { kind: 'needs_leases', setting }
    }
    let changed = 0
    for (let step: ControlRequest = { ...request, by }; ; ) {
      const result = await this.#store.control(step)
      if (result.kind !== 'applied') return result
      changed += result.changed
      this.#pulls.waiting.wake(result.newlyReady, result.newlyReadyOf)
      if (!result.more) {
        this.#maintenance.maintainNow()
        return { ...result, changed }
      }
      step = nextStep(step, result)
    }
  }

  subscriptions(request: SubscriptionRequest, by?: Requester): Promise<SubscriptionResult> {
    return this.#store.subscriptions({ ...request, by })
  }

  /** What the store shows. Instances have views of their own: what was not written yet counts, too. */
  get views(): StoreViews {
    return this.#store
  }

  get waitingPulls(): number {
    return this.#pulls.waiting.size
  }

  /** Whether this node is the leader. A single node always is. */
  get leads(): boolean {
    return this.#store.cluster?.leads() ?? true
  }

  get isDraining(): boolean {
    return this.#draining
  }

  /** Rejects with the reason if the store cannot commit. */
  probe(): Promise<void> {
    return withTimeout(this.#store.probe(), PROBE_MILLIS, () => {
      throw new StoreUnavailable(
        'store_unavailable',
        `the store has not answered for ${PROBE_MILLIS / 1000} seconds`,
      )
    })
  }

  /** Stops handing out, and stops the deliverer. Waiting pulls get an empty answer. Settling continues. */
  drain(): void {
    this.#draining = true
    this.#pulls.close()
    this.#instances.drain()
    this.#delivererStopped ??= this.#deliverer?.stop()
  }

  async stop(): Promise<void> {
    this.drain()
    this.changeStream.stop()
    await this.#delivererStopped
    await this.#maintenance.stop()
    await this.#instances.stop()
    await this.#store.close()
  }
}
