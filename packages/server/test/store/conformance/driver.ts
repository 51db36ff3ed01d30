import type { CalledBackPartition } from '@baton/protocol'
import { type LeaseRef, parseLeaseId } from '../../../src/handoff/lease-id.ts'
import type { PulledPartition } from '../../../src/handoff/partition.ts'
import {
  type ControlRequest,
  type ControlResult,
  nextStep,
  type RetryControl,
} from '../../../src/handoff/rules/control.ts'
import type { PartitionState } from '../../../src/handoff/rules/life-cycle.ts'
import type { RefusalCode, ReportedOutcome } from '../../../src/handoff/rules/settlement.ts'
import { type TaskState, taskState } from '../../../src/handoff/rules/task.ts'
import type {
  BatchedPull,
  CallBackResult,
  HandOffAnswers,
  HandOffBatch,
  MaintenanceResult,
  PullResult,
  RenewResult,
  Store,
  SweepResult,
} from '../../../src/handoff/store.ts'
import type { PartitionDetails, PartitionPosition, TaskDetails } from '../../../src/handoff/views/queries.ts'
import { partitionView } from '../../../src/handoff/views/view-state.ts'
import { DAY, type StoreUnderTest, type TestClock } from './harness.ts'

const nothing: HandOffBatch = { settles: [], renews: [], undos: [], callBacks: [], pulls: [] }

type DrivenStore = Omit<StoreUnderTest, 'recount'> & Partial<Pick<StoreUnderTest, 'recount'>>

/** Calls a store with the protocol's verbs, one request at a time by default. */
export class Driver {
  readonly clock: TestClock
  readonly #under: DrivenStore

  constructor(under: DrivenStore, clock: TestClock) {
    this.#under = under
    this.clock = clock
  }

  get store(): Store {
    return this.#under.store
  }

  reopen: StoreUnderTest['reopen'] = (policy) => this.#under.reopen(policy)

  recount(): Promise<readonly string[]> {
    const { recount } = this.#under
    if (recount === undefined) throw new Error('this store is recounted by its own test')
    return recount()
  }

  batch(batch: Partial<HandOffBatch>): Promise<HandOffAnswers> {
    return this.store.runBatch({ ...nothing, ...batch })
  }

  async callBack(
    taskId: string,
    partitions: readonly CalledBackPartition[],
    producer: string | null = null,
  ): Promise<CallBackResult> {
    const { callBacks } = await this.batch({ callBacks: [batchedCallBack(taskId, partitions, producer)] })
    return only(callBacks)
  }

  async pull(pull: Partial<BatchedPull> = {}): Promise<PullResult> {
    const { pulls } = await this.batch({ pulls: [batchedPull(pull)] })
    return only(pulls)
  }

  /** Pulls one partition and expects to get it. */
  async pullOne(pull: Partial<BatchedPull> = {}): Promise<PulledPartition & { readonly leaseId: string }> {
    const { partitions } = await this.pull(pull)
    const partition = only(partitions)
    if (partition.lease === null) throw new Error('the partition came without a lease')
    return { ...partition, leaseId: partition.lease.id }
  }

  /** Pulls until nothing is left, and returns the names in order. */
  async pullAll(batch = 100): Promise<PulledPartition[]> {
    const all: PulledPartition[] = []
    while (true) {
      const { partitions } = await this.pull({ batch })
      if (partitions.length === 0) return all
      all.push(...partitions)
    }
  }

  async settle(leaseId: string, reported: Partial<ReportedOutcome> = {}): Promise<RefusalCode | null> {
    const settlements = [{ lease: leaseOf(leaseId), reported: settlement(reported) }]
    const { settles } = await this.batch({ settles: [{ instance: null, settlements }] })
    return only(only(settles))
  }

  /** Settles all of these in the same way, in one transaction with more requests. */
  settleAll(
    handedOut: readonly { readonly lease: { readonly id: string } | null }[],
    reported: Partial<ReportedOutcome> = {},
    more: Partial<HandOffBatch> = {},
  ): Promise<HandOffAnswers> {
    const settlements = handedOut.map(({ lease }) => ({
      lease: leaseOf(lease?.id ?? ''),
      reported: settlement(reported),
    }))
    return this.batch({ settles: [{ instance: null, settlements }], ...more })
  }

  async renew(...leaseIds: string[]): Promise<RenewResult> {
    const { renews } = await this.batch({ renews: [{ leases: leaseIds.map(leaseOf) }] })
    return only(renews)
  }

  async undo(...leaseIds: string[]): Promise<number> {
    return (await this.batch({ undos: leaseIds.map(leaseOf) })).undone
  }

  /** Advances the clock and sweeps. */
  async pass(millis: number): Promise<SweepResult> {
    this.clock.advance(millis)
    return this.sweep()
  }

  sweep(limit = 10_000, expireLeases = true): Promise<SweepResult> {
    return this.store.sweep({ limit, mayExpireLeases: () => expireLeases })
  }

  maintain(retentionMillis = 7 * DAY): Promise<MaintenanceResult> {
    return this.store.maintain({ retentionMillis, auditMillis: 90 * DAY })
  }

  /** Runs retention until nothing is left to do. */
  async maintainAll(retentionMillis?: number): Promise<void> {
    while ((await this.maintain(retentionMillis)).more);
  }

  /** Repeats a control request until it has no further step, as the hand-off does. */
  async control(request: ControlRequest): Promise<ControlResult> {
    let changed = 0
    for (let step = { by: { name: 'tests', address: null, body: null }, ...request }; ; ) {
      const result = await this.store.control(step)
      if (result.kind !== 'applied') return result
      changed += result.changed
      if (!result.more) return { ...result, changed }
      step = nextStep(step, result) as typeof step
    }
  }

  retry(
    taskId: string,
    request: Partial<Omit<RetryControl, 'verb' | 'taskId'>> = {},
  ): Promise<ControlResult> {
    return this.control({ verb: 'retry', taskId, level: null, partitions: null, done: false, ...request })
  }

  async task(taskId: string): Promise<TaskDetails> {
    const record = await this.store.task(taskId)
    if (record === null) throw new Error(`task ${taskId} is unknown`)
    return record
  }

  async state(taskId: string): Promise<TaskState> {
    const { facts, openLane } = await this.task(taskId)
    return taskState(facts, openLane)
  }

  async partitions(taskId: string): Promise<PartitionDetails[]> {
    const all: PartitionDetails[] = []
    let after: PartitionPosition | null = null
    do {
      const page = await this.store.partitions({ taskId, state: null, level: null, after, limit: 1000 })
      if (page === null) throw new Error(`task ${taskId} is unknown`)
      all.push(...page.partitions)
      after = page.next
    } while (after !== null)
    return all
  }

  async partition(taskId: string, level: number, index: number): Promise<PartitionDetails> {
    const found = (await this.partitions(taskId)).find((one) => one.level === level && one.index === index)
    if (found === undefined) throw new Error(`${taskId}-${level}-${index} is unknown`)
    return found
  }

  /** The states shown in views, by `<level>-<index>`. */
  async states(taskId: string): Promise<Record<string, PartitionState>> {
    const { facts } = await this.task(taskId)
    const shown = (await this.partitions(taskId)).map((record): [string, PartitionState] => [
      `${record.level}-${record.index}`,
      partitionView(facts, record).state,
    ])
    return Object.fromEntries(shown)
  }
}

export function batchedCallBack(
  taskId: string,
  partitions: readonly CalledBackPartition[],
  producer: string | null = null,
) {
  const recordTotal = partitions.reduce((sum, { recordCount }) => sum + recordCount, 0)
  return { callBack: { taskId, recordTotal, partitions: [...partitions] }, producer }
}

export const batchedPull = (pull: Partial<BatchedPull> = {}): BatchedPull => ({
  instance: null,
  batch: 1,
  records: null,
  key: null,
  tables: null,
  tasks: null,
  ...pull,
})

export const settlement = (reported: Partial<ReportedOutcome> = {}): ReportedOutcome => ({
  outcome: 'done',
  reason: null,
  retryAfterMillis: null,
  final: false,
  records: null,
  ...reported,
})

export function leaseOf(leaseId: string): LeaseRef {
  const lease = parseLeaseId(leaseId)
  if (lease === undefined) throw new Error(`${leaseId} is not a lease id`)
  return lease
}

export const one = (
  level: number,
  index: number,
  changes: Partial<CalledBackPartition> = {},
): CalledBackPartition => ({
  level,
  index,
  recordCount: 100,
  computeTableName: 'results.orders',
  spelling: null,
  ...changes,
})

/** `count` partitions of one level with indexes from `first` on. */
export const some = (
  level: number,
  count: number,
  changes: Partial<CalledBackPartition> = {},
  first = 0,
): CalledBackPartition[] => Array.from({ length: count }, (_, at) => one(level, first + at, changes))

export const nameOf = ({ taskId, level, index }: PulledPartition): string => `${taskId}-${level}-${index}`

function only<T>(list: readonly T[]): T {
  const [first] = list
  if (list.length !== 1 || first === undefined) throw new Error(`expected one entry, got ${list.length}`)
  return first
}
