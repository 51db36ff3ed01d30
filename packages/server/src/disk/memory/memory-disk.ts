import type {
  Appended,
  Disk,
  Due,
  ForgetThroughput,
  Images,
  IndexesOfLane,
  KnownOfLane,
  LeasedOrDelayedRow,
  Loaded,
  Needs,
  OpenedDisk,
  Recount,
  TaskDetail,
  TaskPageQuery,
  TaskSummary,
  TaskWithTables,
  ThroughputRowsQuery,
} from '../../handoff/disk.ts'
import type { Heartbeat } from '../../handoff/heartbeats.ts'
import type { OutboxDisk } from '../../handoff/outbox.ts'
import type { PartitionDescriptor } from '../../handoff/partition.ts'
import { storeClosed } from '../../handoff/store.ts'
import type { StagedIds, StoredKey, StoredTask } from '../../handoff/stored.ts'
import type { InstanceDetails, InstanceQuery, ThroughputRow } from '../../handoff/views/queries.ts'
import { dueFrom, dueKeysIn, knownIn, loadFrom, purgeableIn, recountOf, tasksIn } from './memory-load.ts'
import { MemoryMedium, type MemoryOutbox } from './memory-medium.ts'
import {
  activeInstancesIn,
  forgetInstancesIn,
  forgetThroughputIn,
  heldByIn,
  instanceIn,
  instancesIn,
  leasedOrDelayedIn,
  recordInstancesIn,
  taskDetailIn,
  taskPageIn,
  taskSummariesIn,
  tasksWithTablesIn,
  throughputIn,
} from './memory-views.ts'

/** One node's access to a medium, for tests and the simulation. Its own state is lost with it. */
export class MemoryDisk implements Disk {
  readonly #medium: MemoryMedium
  #term = 0
  /** The last entry flushed to rows, as far as this node knows. */
  #folded = 0
  #isClosed = false

  constructor(medium = new MemoryMedium()) {
    this.#medium = medium
  }

  async open(): Promise<OpenedDisk> {
    this.#checkOpen()
    const { term, folded, last } = this.#medium.takeOver()
    this.#term = term
    this.#folded = folded
    return { last, unflushed: this.#medium.unflushed(), nextIds: { ...this.#medium.nextIds } }
  }

  async load(needs: Needs): Promise<Loaded> {
    this.#checkOpen()
    return loadFrom(this.#medium, needs)
  }

  async append(entry: Appended): Promise<void> {
    this.#checkOpen()
    this.#medium.append(this.#term, entry)
  }

  async flush(images: Images, upTo: number): Promise<void> {
    this.#checkOpen()
    this.#medium.flush(this.#term, this.#folded, images, upTo)
    this.#folded = upTo
  }

  async stage(rows: readonly PartitionDescriptor[]): Promise<void> {
    this.#checkOpen()
    this.#medium.stage(this.#term, rows)
  }

  async unstage(ids: StagedIds): Promise<void> {
    this.#checkOpen()
    this.#medium.unstage(this.#term, ids)
  }

  async known(asked: readonly IndexesOfLane[]): Promise<KnownOfLane[]> {
    this.#checkOpen()
    return asked.map((one) => knownIn(this.#medium, one))
  }

  async due(now: number, limit: number, leases: boolean): Promise<Due> {
    this.#checkOpen()
    return dueFrom(this.#medium, now, limit, leases)
  }

  async leasedOrDelayed(limit: number): Promise<LeasedOrDelayedRow[]> {
    this.#checkOpen()
    return leasedOrDelayedIn(this.#medium, limit)
  }

  async heldBy(instanceId: string, limit: number): Promise<number[]> {
    this.#checkOpen()
    return heldByIn(this.#medium, instanceId, limit)
  }

  async dueKeys(now: number, limit: number): Promise<StoredKey[]> {
    this.#checkOpen()
    return dueKeysIn(this.#medium, now, limit)
  }

  async purgeable(finishedBefore: number): Promise<StoredTask | null> {
    this.#checkOpen()
    return purgeableIn(this.#medium, finishedBefore)
  }

  async tasksWithReruns(limit: number): Promise<StoredTask[]> {
    this.#checkOpen()
    return tasksIn(this.#medium, ({ reruns }) => reruns.length > 0).slice(0, limit)
  }

  async tasksWithStagedRows(): Promise<StoredTask[]> {
    this.#checkOpen()
    return tasksIn(this.#medium, ({ staging }) => staging !== null)
  }

  async taskDetail(taskId: string): Promise<TaskDetail | null> {
    this.#checkOpen()
    return taskDetailIn(this.#medium, taskId)
  }

  async taskPage(query: TaskPageQuery): Promise<TaskSummary[]> {
    this.#checkOpen()
    return taskPageIn(this.#medium, query)
  }

  async doneRows(task: number): Promise<number> {
    this.#checkOpen()
    const lanes = this.#medium.lanesOf.get(task) ?? []
    return lanes.reduce((sum, { partitions, purged }) => sum + Math.max(0, partitions.done - purged), 0)
  }

  async tasksWithTables(ids: readonly number[], tables: readonly string[]): Promise<TaskWithTables[]> {
    this.#checkOpen()
    return tasksWithTablesIn(this.#medium, ids, tables)
  }

  async taskSummaries(ids: readonly number[]): Promise<TaskSummary[]> {
    this.#checkOpen()
    return taskSummariesIn(this.#medium, ids)
  }

  async throughput(query: ThroughputRowsQuery): Promise<ThroughputRow[]> {
    this.#checkOpen()
    return throughputIn(this.#medium, query)
  }

  async forgetThroughput(request: ForgetThroughput): Promise<number> {
    this.#checkOpen()
    this.#medium.checkTerm(this.#term)
    return forgetThroughputIn(this.#medium, request)
  }

  async recordInstances(heartbeats: readonly Heartbeat[], now: number): Promise<void> {
    this.#checkOpen()
    recordInstancesIn(this.#medium, heartbeats, now)
  }

  async instance(instanceId: string, now: number): Promise<InstanceDetails | null> {
    this.#checkOpen()
    return instanceIn(this.#medium, instanceId, now)
  }

  async instances(query: InstanceQuery, now: number): Promise<InstanceDetails[]> {
    this.#checkOpen()
    return instancesIn(this.#medium, query, now)
  }

  async activeInstances(since: number, limit: number): Promise<string[]> {
    this.#checkOpen()
    return activeInstancesIn(this.#medium, since, limit)
  }

  async forgetInstances(unseenSince: number, endedSince: number, limit: number): Promise<number> {
    this.#checkOpen()
    this.#medium.checkTerm(this.#term)
    return forgetInstancesIn(this.#medium, unseenSince, endedSince, limit)
  }

  readonly outbox: OutboxDisk = {
    subscriptions: async () => this.#outbox().subscriptions(),
    deliveries: async (query) => this.#outbox().deliveries(query),
    backlogs: async (subscriptions) => this.#outbox().backlogs(subscriptions),
  }

  #outbox(): MemoryOutbox {
    this.#checkOpen()
    return this.#medium.outbox
  }

  async probe(): Promise<void> {
    this.#checkOpen()
  }

  hasSpace(): boolean {
    return true
  }

  async recount(): Promise<Recount[]> {
    this.#checkOpen()
    return recountOf(this.#medium)
  }

  async close(): Promise<void> {
    this.#isClosed = true
  }

  #checkOpen(): void {
    if (this.#isClosed) throw storeClosed()
  }
}
