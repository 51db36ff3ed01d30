import { partitionName } from '@baton/protocol'
import type { AuditPage, AuditQuery } from '../audit.ts'
import type { Disk } from '../disk.ts'
import type { Heartbeat } from '../heartbeats.ts'
import type { DeliveryAnswer, DeliveryRequest, SubscriptionRequest, SubscriptionResult } from '../outbox.ts'
import type { StoredPartition } from '../partition.ts'
import type { ControlRequest, ControlResult } from '../rules/control.ts'
import type { Policy } from '../rules/policy.ts'
import {
  type HandOffAnswers,
  type HandOffBatch,
  type MaintenanceRequest,
  type MaintenanceResult,
  type NamedLease,
  type NotReleased,
  type PauseRequest,
  type ReleaseRequest,
  type ReleaseResult,
  type Store,
  type SweepRequest,
  type SweepResult,
  storeClosed,
  type TableChange,
  type TableChanged,
} from '../store.ts'
import type {
  ActiveInstancesQuery,
  ChangePage,
  ChangeQuery,
  GridDetails,
  GridQuery,
  HeldLeasesPage,
  HeldLeasesQuery,
  InstanceAttempts,
  InstanceDetails,
  InstancePage,
  InstanceQuery,
  PartitionPage,
  PartitionQuery,
  SettingsOfTask,
  TableDetails,
  TablePage,
  TableQuery,
  TaskDetails,
  TaskFeed,
  TaskPage,
  TaskQuery,
  ThroughputHistory,
  ThroughputQuery,
} from '../views/queries.ts'
import { type EngineOptions, Runner } from './runner.ts'
import { BATCHING, SharedBatches } from './shared-batches.ts'
import { ChangeLog } from './state/change-log.ts'
import { EndedAttempts } from './state/ended-attempts.ts'
import type { Memory } from './state/memory.ts'
import { concludeTasks, moveBarriers } from './task-updates.ts'
import type { Transaction } from './transaction.ts'
import { BackgroundWork } from './verbs/background-work.ts'
import { control } from './verbs/control.ts'
import { endDue, findLeased, revoke } from './verbs/expire.ts'
import { viewAudit, viewFeed } from './verbs/feed.ts'
import { viewGrid } from './verbs/grid-view.ts'
import { heldLeases, viewInstance, viewInstances } from './verbs/instances.ts'
import { LargeCallBacks } from './verbs/large-call-back.ts'
import { recount } from './verbs/recount.ts'
import { namedOf } from './verbs/settle.ts'
import { Subscriptions } from './verbs/subscriptions.ts'
import { pausedTables, setTable, viewTable, viewTables } from './verbs/tables.ts'
import {
  viewPartitions,
  viewSettings,
  viewTask,
  viewTasks,
  viewTasksById,
  viewThroughput,
} from './verbs/views.ts'

export async function openEngine(options: EngineOptions): Promise<EngineStore> {
  const store = new EngineStore(options)
  await store.open()
  return store
}

/** Implements the store: the engine decides in memory, and a disk makes the decisions durable. */
class EngineStore implements Store {
  readonly batching = BATCHING
  readonly #disk: Disk
  readonly #policy: Policy
  readonly #runner: Runner
  readonly #largeCallBacks: LargeCallBacks
  readonly #batches: SharedBatches
  readonly #backgroundWork: BackgroundWork
  readonly #outbox: Subscriptions
  readonly #changes: ChangeLog
  readonly #endedAttempts = new EndedAttempts()
  /** When this node began to lead, possibly again. */
  #leadsSince = 0
  /** The last work in the queue. New work starts after it has succeeded or failed. */
  #last: Promise<unknown> = Promise.resolve()
  #closed = false
  /** The memory epoch for which rows of incomplete call-backs were removed. */
  #cleanedFor = -1
  /** No back-off ends before this time. */
  #backoffsEndAt = 0

  constructor(options: EngineOptions) {
    this.#disk = options.disk
    this.#policy = options.policy
    this.#runner = new Runner(options, (tx) => this.#committed(tx))
    // Uses `#queue`, so that a large call-back that has started also completes while the store is being
    // closed.
    this.#largeCallBacks = new LargeCallBacks(options.disk, this.#runner, (work) => this.#queue(work))
    const exclusively = <Result>(work: () => Promise<Result>) => this.#exclusively(work)
    this.#batches = new SharedBatches(options.disk, this.#runner, this.#largeCallBacks, exclusively)
    this.#outbox = new Subscriptions(options.disk.outbox, this.#runner, exclusively, (read) =>
      this.#view(read),
    )
    const flushed = <Result>(work: () => Promise<Result>) => this.#withRowsFlushed(work)
    this.#backgroundWork = new BackgroundWork(options.disk, this.#runner, flushed, this.#outbox)
    this.#changes = new ChangeLog(options.secret().slice(0, 8).replaceAll('-', '_'))
  }

  async open(): Promise<void> {
    await this.#exclusively(async () => undefined)
  }

  handOff(batch: HandOffBatch): Promise<HandOffAnswers> {
    return this.#closed ? Promise.reject(storeClosed()) : this.#batches.run(batch)
  }

  sweep({ limit, mayExpireLeases }: SweepRequest): Promise<SweepResult> {
    return this.#exclusivelyWhenFlushed(async () => {
      // Back-offs are found on disk, so rows must be flushed first.
      const hasBackoffs = this.#backoffsEndAt <= this.#runner.now
      if (hasBackoffs) await this.#runner.flush()
      const sweep = this.#runner.transact(
        async (tx) => {
          // What has ended is found here, because a large call-back that failed may have dropped the memory
          // from before.
          const { leases } = tx.memory
          const expireLeases = mayExpireLeases()
          const ended = expireLeases ? leases.ended(tx.now, limit) : []
          const backoffs = hasBackoffs ? await this.#endedBackoffs(tx.now, limit) : []
          const { woken: wokenAtFirst, expired, parked } = await endDue(tx, ended, backoffs)
          const before = tx.readied.count
          await moveBarriers(tx)
          await concludeTasks(tx)
          return {
            woken: Math.max(wokenAtFirst, before) + tx.readied.count - before,
            readiedOf: tx.readied.kinds,
            expired,
            parked,
            more: ended.length === limit || backoffs.length === limit,
            nextLeaseEnd: (expireLeases ? leases.nextEnd : null) ?? Number.POSITIVE_INFINITY,
            now: tx.now,
          }
        },
        () => false,
      )
      const { nextLeaseEnd, now, ...swept } = await sweep.catch((error: unknown) => {
        // Back-offs that it found have not ended.
        this.#backoffsEndAt = 0
        throw error
      })
      const nextAt = Math.min(nextLeaseEnd, this.#backoffsEndAt)
      return { ...swept, nextDueInMillis: Number.isFinite(nextAt) ? Math.max(0, nextAt - now) : null }
    })
  }

  async #endedBackoffs(now: number, limit: number): Promise<readonly StoredPartition[]> {
    const { due, nextAt } = await this.#disk.dueBackoffs(now, limit)
    this.#backoffsEndAt = due.length === limit ? 0 : (nextAt ?? Number.POSITIVE_INFINITY)
    return due
  }

  maintain(request: MaintenanceRequest): Promise<MaintenanceResult> {
    return this.#backgroundWork.run(request)
  }

  control(request: ControlRequest): Promise<ControlResult> {
    // These verbs find partitions by their state, so rows must be flushed first.
    const looks = request.verb === 'retry' || request.verb === 'skip-parked'
    const exclusively = <Result>(work: () => Promise<Result>) =>
      looks ? this.#withRowsFlushed(work) : this.#exclusively(work)
    return exclusively(async () => {
      const lastSettledAt =
        request.verb === 'retry' && request.done ? await this.#lastSettledAt(request.taskId) : 0
      return this.#runner.transact((tx) => control(tx, request, lastSettledAt))
    })
  }

  setTable(change: TableChange): Promise<TableChanged> {
    return this.#exclusively(() => this.#runner.transact(async (tx) => setTable(tx, change)))
  }

  table(name: string): Promise<TableDetails | null> {
    return this.#fromMemory(({ order }, now) => viewTable(order.tables, name, now))
  }

  tables(query: TableQuery): Promise<TablePage> {
    return this.#fromMemory(({ order }, now) => viewTables(order.tables, query, now))
  }

  releaseInstance({ instanceId, limit, by }: ReleaseRequest): Promise<ReleaseResult> {
    return this.#exclusively(async () =>
      this.#runner.transact(async (tx) => {
        const revoked = await revoke(tx, tx.memory.leases.heldBy(instanceId, limit))
        if (revoked.released > 0)
          tx.audit(by, { action: 'release', target: instanceId, changed: revoked.released })
        await moveBarriers(tx)
        await concludeTasks(tx)
        return { ...revoked, readied: tx.readied.count, more: revoked.released === limit }
      }),
    )
  }

  releasePartition(lease: NamedLease): Promise<ReleaseResult | NotReleased> {
    return this.#exclusively(async () =>
      this.#runner.transact(async (tx) => {
        const leased = await findLeased(tx, lease)
        if (leased !== null && 'unknown' in leased) return leased
        const revoked = await revoke(tx, leased === null ? [] : [leased])
        if (leased !== null) {
          const { taskId, by } = lease
          const { level, index, spelling } = namedOf(leased)
          const target = spelling ?? partitionName(taskId, level, index)
          tx.audit(by, { action: 'release', taskId, target, changed: 1 })
        }
        await moveBarriers(tx)
        await concludeTasks(tx)
        return { ...revoked, readied: tx.readied.count, more: false }
      }),
    )
  }

  pauseInstance({ instanceId, role, paused, by }: PauseRequest): Promise<number | null> {
    return this.#exclusively(async () =>
      this.#runner.transact(async (tx) => {
        const was = tx.memory.pausedInstances.has(instanceId)
        const pausedAt = tx.pauseInstance(instanceId, role, paused)
        if (was !== paused)
          tx.audit(by, { action: paused ? 'pause' : 'resume', target: instanceId, changed: 1 })
        return pausedAt
      }),
    )
  }

  async #lastSettledAt(taskId: string): Promise<number> {
    const tasks = await this.#disk.tasksNamed([taskId])
    const [summary] = await this.#disk.taskSummaries(tasks.map(({ id }) => id))
    const newest = (summary?.pace[0]?.second ?? 0) * 1000
    return newest > this.#runner.now ? newest + 999 : 0
  }

  task(taskId: string): Promise<TaskDetails | null> {
    return this.#view((now, memory) => viewTask(this.#disk, taskId, now, this.#policy, pausedTables(memory)))
  }

  taskSettings(taskId: string): Promise<SettingsOfTask | null> {
    return this.#view(() => viewSettings(this.#disk, taskId))
  }

  tasks(query: TaskQuery): Promise<TaskPage> {
    return this.#view((now, memory) => viewTasks(this.#disk, query, now, this.#policy, pausedTables(memory)))
  }

  partitions(query: PartitionQuery): Promise<PartitionPage | null> {
    return this.#view((_now, memory) => viewPartitions(this.#disk, query, pausedTables(memory)))
  }

  throughput(query: ThroughputQuery): Promise<ThroughputHistory | null> {
    return this.#view((now) => viewThroughput(this.#disk, query, now))
  }

  audited(query: AuditQuery): Promise<AuditPage> {
    return this.#view(() => viewAudit(this.#disk, query))
  }

  feed(taskId: string): Promise<TaskFeed | null> {
    return this.#view(() => viewFeed(this.#disk, taskId))
  }

  grid(query: GridQuery): Promise<GridDetails | null> {
    return this.#view((_now, memory) => viewGrid(this.#disk, query, pausedTables(memory)))
  }

  changes(query: ChangeQuery): Promise<ChangePage> {
    return this.#view(async (now, memory) => {
      const { tasks, ...page } = this.#changes.page(query)
      return {
        ...page,
        now,
        tasks: await viewTasksById(this.#disk, tasks, this.#policy, pausedTables(memory), now),
      }
    })
  }

  subscriptions(request: SubscriptionRequest): Promise<SubscriptionResult> {
    return this.#outbox.answer(request)
  }

  deliver(request: DeliveryRequest): Promise<DeliveryAnswer> {
    return this.#outbox.deliver(request)
  }

  recordHeartbeats(heartbeats: readonly Heartbeat[]): Promise<void> {
    return this.#exclusively(() => this.#disk.recordInstances(heartbeats, this.#runner.now))
  }

  instance(instanceId: string): Promise<InstanceDetails | null> {
    return this.#view((now, memory) => viewInstance(this.#instanceSource(memory, now), instanceId))
  }

  instances(query: InstanceQuery): Promise<InstancePage> {
    return this.#view((now, memory) => viewInstances(this.#instanceSource(memory, now), query))
  }

  #instanceSource(memory: Memory, now: number) {
    return { disk: this.#disk, memory, policy: this.#policy, now }
  }

  activeInstances({ activeMillis, limit }: ActiveInstancesQuery): Promise<string[]> {
    return this.#view((now) => this.#disk.activeInstances(now - activeMillis, limit))
  }

  instanceLeases(query: HeldLeasesQuery): Promise<HeldLeasesPage> {
    return this.#exclusively(async () => heldLeases(await this.#runner.open(), query, this.#runner.now))
  }

  instanceAttempts(instanceId: string): Promise<InstanceAttempts> {
    return this.#exclusively(async () => ({
      since: this.#leadsSince,
      attempts: this.#endedAttempts.of(instanceId),
    }))
  }

  probe(): Promise<void> {
    return this.#exclusively(() => this.#disk.probe(this.#runner.now))
  }

  /** Reads exclusively: while rows are being flushed, counters and rows differ. */
  audit(): Promise<string[]> {
    return this.#withRowsFlushed(() => recount(this.#disk))
  }

  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    await this.#largeCallBacks.whenAllEnded()
    await this.#last.catch(() => undefined)
    await this.#runner.close()
  }

  #exclusively<Result>(work: () => Promise<Result>): Promise<Result> {
    return this.#closed ? Promise.reject(storeClosed()) : this.#queue(work)
  }

  /** Runs exclusively, after all rows are flushed. */
  #withRowsFlushed<Result>(work: () => Promise<Result>): Promise<Result> {
    return this.#exclusivelyWhenFlushed(async () => {
      await this.#runner.flush()
      return work()
    })
  }

  /**
   * For work that needs flushed rows. If there are many, most are written before it starts, so that other
   * work is not blocked.
   */
  #exclusivelyWhenFlushed<Result>(work: () => Promise<Result>): Promise<Result> {
    if (!this.#runner.isFarBehind) return this.#exclusively(work)
    return this.#runner.flushAhead().then(() => this.#exclusively(work))
  }

  /** Runs one after the other, in call order. If memory was dropped, it is read from the disk first. */
  #queue<Result>(work: () => Promise<Result>): Promise<Result> {
    const before = this.#last
    const result = (async () => {
      await before.catch(() => undefined)
      await this.#ready()
      return work()
    })()
    this.#last = result
    return result
  }

  async #ready(): Promise<void> {
    await this.#runner.open()
    if (this.#cleanedFor === this.#runner.epoch) return
    const { epoch } = this.#runner
    await this.#largeCallBacks.removeAbandonedRows()
    this.#backoffsEndAt = 0
    if (this.#cleanedFor === -1) this.#leadsSince = this.#runner.now
    this.#cleanedFor = epoch
  }

  /** Flushes rows first. Reading them is not exclusive, so a slow view does not block other work. */
  async #view<Result>(read: (now: number, memory: Memory) => Promise<Result>): Promise<Result> {
    const memory = await this.#withRowsFlushed(() => this.#runner.open())
    const result = await read(this.#runner.now, memory)
    await this.#runner.yieldToEventLoop()
    return result
  }

  /** Views of open work that rows do not have. */
  #fromMemory<Result>(read: (memory: Memory, now: number) => Result): Promise<Result> {
    return this.#exclusively(async () => read(await this.#runner.open(), this.#runner.now))
  }

  #committed(tx: Transaction): void {
    const { earliestBackoffEnd } = tx
    if (earliestBackoffEnd !== null) this.#backoffsEndAt = Math.min(this.#backoffsEndAt, earliestBackoffEnd)
    this.#changes.add(
      Array.from(tx.touchedTasks, ({ id }) => id),
      tx.parkedNotices(),
    )
    for (const [holder, attempt] of tx.endedAttempts) this.#endedAttempts.add(holder, attempt)
  }
}
