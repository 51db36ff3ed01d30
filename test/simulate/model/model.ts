import type { CallBack } from '@baton/protocol'
import { parseLeaseId } from '../../../packages/server/src/handoff/lease-id.ts'
import type { PulledPartition } from '../../../packages/server/src/handoff/partition.ts'
import type { Policy } from '../../../packages/server/src/handoff/rules/policy.ts'
import type {
  GivenCheckpoint,
  ReportedOutcome,
} from '../../../packages/server/src/handoff/rules/settlement.ts'
import type { BatchedPull, PullResult } from '../../../packages/server/src/handoff/store.ts'
import { disagree } from './disagreement.ts'
import { Fairness } from './fairness.ts'
import {
  amendExpiry,
  notAttempted,
  recordEnd,
  recordExpiry,
  recordRevocation,
  withdrawExpiry,
} from './history.ts'
import { ModelKeys } from './keys.ts'
import { type ModelLane, type ModelPartition, ModelTask, nameOf, type WaitingLine } from './model-task.ts'
import { type Filter, isSameDescriptor, isWanted, type Place } from './partition.ts'
import { isAtLimit, isBlocked, ModelTables } from './tables.ts'
import { WaitingPartitions } from './waiting-partitions.ts'

/**
 * The hand-off as the design describes it, written from the design document and not from the code, one step
 * after the other. It knows all answers, checks each answer against them, and adopts the choices that the
 * store is free to make.
 *
 * When an answer is lost, it learns from the stored rows what happened, so it knows lines, terms and lane
 * counts, and keeps indexes of them for the many steps of a simulation.
 */
export class Model {
  readonly tasks = new Map<string, ModelTask>()
  readonly tables = new ModelTables()
  /** Since when an instance is paused. */
  readonly pausedInstances = new Map<string, number>()
  readonly keys = new ModelKeys()
  /** What changed since it was last compared with what is stored. */
  readonly changed = new Set<ModelPartition>()
  readonly changedTasks = new Set<ModelTask>()
  /** Names of tables and of instances. */
  readonly changedTables = new Set<string>()
  readonly changedInstances = new Set<string>()
  /** Names of the tasks whose views were not compared since they changed. */
  readonly unseen = new Set<string>()
  /** Verbs of control that were applied, and `self-pause`. */
  readonly changes = new Set<string>()
  readonly leased = new Set<ModelPartition>()
  readonly delayed = new Set<ModelPartition>()
  readonly policy: Policy
  private readonly leases = new Map<string, ModelPartition>()
  private readonly lines = new WaitingPartitions(this.tables)
  private readonly touched = new Set<ModelTask>()
  private readonly fairness = new Fairness()
  /** Back-offs are randomized; here the random factor is constant. */
  private readonly spread: number
  now = 0

  constructor(policy: Policy, spread: number) {
    this.policy = policy
    this.spread = spread
  }

  /** Called at the end of each step. */
  conclude(): void {
    for (const task of this.touched) {
      this.changedTasks.add(task)
      this.unseen.add(task.taskId)
      const isOver = task.cancelled || (task.isDone && !task.rerunning)
      task.finishedAt = isOver ? (task.finishedAt ?? this.now) : null
      this.moveBarrier(task)
    }
    this.touched.clear()
  }

  moveBarrier(task: ModelTask): void {
    const openLevel = task.barrier ? task.lowestUnfinishedLevel() : null
    if (openLevel === task.openLevel) return
    task.openLevel = openLevel
    this.interrupt(task)
  }

  /** The lanes of a task become able or unable to serve. */
  interrupt(task: ModelTask): void {
    for (const lane of task.lanes.values()) lane.epoch += 1
  }

  touch(task: ModelTask): void {
    this.touched.add(task)
  }

  /** `answer` is the store's answer, if known: after a purge it may compare or not. */
  callBack(
    { taskId, partitions }: CallBack,
    answer: string | null,
  ): { kind: string; accepted?: number; duplicates?: number } {
    const task = this.tasks.get(taskId) ?? new ModelTask(taskId, this.policy.levelBarrier)
    let fresh = 0
    for (const descriptor of partitions) {
      const known = task.find(descriptor.level, descriptor.index)
      if (known === undefined) fresh += 1
      else if (!isSameDescriptor(known.descriptor, descriptor) && (!known.purged || answer === 'conflict'))
        return { kind: 'conflict' }
    }
    if (fresh > 0 && task.cancelled) return { kind: 'task_cancelled' }
    if (fresh > 0 && task.sealed) return { kind: 'task_sealed' }
    if (fresh > 0) {
      if (task.isKnown && task.isDone) {
        task.purged = false
        task.finishedAt = null
      }
      this.tasks.set(taskId, task)
      for (const descriptor of partitions)
        if (task.find(descriptor.level, descriptor.index) === undefined) this.arrive(task, descriptor)
      this.touched.add(task)
      // A lower level closes those above it before anything is pulled.
      this.moveBarrier(task)
    }
    return { kind: 'stored', accepted: fresh, duplicates: partitions.length - fresh }
  }

  private arrive(task: ModelTask, descriptor: ModelPartition['descriptor']): void {
    const lane = task.lane(descriptor.level)
    const table = this.tables.of(descriptor.computeTableName)
    table.lanes.add(lane)
    const partition: ModelPartition = {
      ...notAttempted(),
      lane,
      descriptor,
      table,
      id: 0,
      place: 'waiting',
      line: 'fresh',
      attempts: 0,
      releases: 0,
      leaseNumber: 0,
      fencingToken: null,
      leaseId: null,
      outcome: null,
      checkpoint: null,
      dueAt: 0,
      purged: false,
    }
    lane.partitions.set(descriptor.index, partition)
    lane.counts.waiting += 1
    task.counts.waiting += 1
    lane.largestCost = Math.max(lane.largestCost, descriptor.recordCount)
    this.lines.arrive(partition)
    this.changed.add(partition)
  }

  /** Checks what was handed out and adopts it. */
  pulled(pull: BatchedPull, result: PullResult): void {
    if (this.keys.isRepeat(pull, result, this.now, (id) => this.isAlive(id))) return
    const { partitions, because } = result
    const isPaused = pull.instance !== null && this.pausedInstances.has(pull.instance)
    if (isPaused !== (because?.code === 'instance_paused'))
      disagree(`a pull of ${pull.instance} was told ${because?.code}`)
    if (isPaused) {
      if (partitions.length > 0) disagree(`the paused ${pull.instance} got ${partitions.length} partitions`)
      return
    }
    let records = 0
    for (const [position, handedOut] of partitions.entries()) {
      if (position >= pull.batch) disagree('a pull got more than it asked for')
      if (position > 0 && records >= (pull.records ?? Infinity)) disagree('a pull got more than its budget')
      this.handOut(handedOut, pull)
      records += handedOut.recordCount
    }
    const isSated = pull.records !== null && partitions.length > 0 && records >= pull.records
    if (partitions.length < pull.batch && !isSated) {
      const left = this.lines.lowestOpen(pull)
      if (left !== null)
        disagree(
          `a pull got ${partitions.length} of ${pull.batch}, and level ${left.level} of ${left.task.taskId} has more`,
        )
    }
    this.keys.remember(pull.key, partitions)
  }

  private handOut(
    { taskId, level, index, recordCount, computeTableName, lease }: PulledPartition,
    pull: BatchedPull,
  ): void {
    const partition = this.tasks.get(taskId)?.find(level, index)
    if (partition === undefined || lease === null)
      disagree(`${taskId}-${level}-${index} was never called back`)
    const { descriptor } = partition
    if (recordCount !== descriptor.recordCount || computeTableName !== descriptor.computeTableName)
      disagree(`${nameOf(partition)} came as ${recordCount} records of ${computeTableName}`)
    if (lease.attempt !== partition.attempts + 1)
      disagree(`${nameOf(partition)} came as attempt ${lease.attempt}`)
    const expiresAt = this.now + this.policy.leaseMillis
    if (lease.expiresAt !== expiresAt)
      disagree(`the lease of ${nameOf(partition)} ends at ${lease.expiresAt} instead of ${expiresAt}`)
    if (!isWanted(taskId, computeTableName, pull))
      disagree(`${nameOf(partition)} went to a pull that did not want it`)
    if (lease.checkpoint !== partition.checkpoint)
      disagree(
        `${nameOf(partition)} came with the checkpoint ${lease.checkpoint}, not ${partition.checkpoint}`,
      )
    const latest = partition.fencingToken
    if (latest !== null && lease.fencingToken <= latest)
      disagree(`${nameOf(partition)} came with the fencing token ${lease.fencingToken} after ${latest}`)
    this.lease(partition, lease.id, pull.instance, pull)
    if (lease.fencingToken !== partition.fencingToken)
      disagree(`${nameOf(partition)} came with ${lease.fencingToken} instead of ${partition.fencingToken}`)
  }

  /**
   * Leases the next partition, or one of several that may be next. If the pull was not answered, it is
   * unknown when it ran and which pull it was: at least one pull must have wanted this task and this table.
   */
  lease(
    partition: ModelPartition,
    leaseId: string,
    holder: string | null,
    filter: Filter | null = null,
  ): void {
    const wanted = filter ?? {
      tables: [partition.descriptor.computeTableName],
      tasks: [partition.lane.task.taskId],
    }
    const { lane, place, purged } = partition
    if (place !== 'waiting' || purged)
      disagree(`${nameOf(partition)} was handed out while it was ${purged ? 'purged' : place}`)
    if (!lane.task.isOpen(lane.level))
      disagree(`${nameOf(partition)} was handed out while its lane was closed`)
    if (isBlocked(partition.table))
      disagree(`${nameOf(partition)} was handed out while ${partition.table.name} was paused or at its limit`)
    const lowest = this.lines.lowestOpen(wanted)
    if (lowest !== null && lowest.level < lane.level)
      disagree(`${nameOf(partition)} went before level ${lowest.level} of ${lowest.task.taskId}`)
    if (this.leases.has(leaseId)) disagree(`the lease ${leaseId} was given twice`)
    const { partition: id = 0, leaseNumber = 0 } = parseLeaseId(leaseId) ?? {}
    if (partition.id !== 0 && partition.id !== id)
      disagree(`${nameOf(partition)} changed its id from ${partition.id} to ${id}`)
    if (leaseNumber !== partition.leaseNumber + 1)
      disagree(`${nameOf(partition)} came with lease number ${leaseNumber} after ${partition.leaseNumber}`)
    partition.id = id
    this.lines.checkIsNext(partition, wanted)
    if (filter === null) lane.epoch += 1
    else if (filter.tables === null && filter.tasks === null)
      this.fairness.served(lane, Math.max(1, partition.descriptor.recordCount), this.lines.servable())
    this.move(partition, 'leased', 'returned')
    partition.leaseNumber = leaseNumber
    partition.fencingToken = Math.max((partition.fencingToken ?? 0) + 1, this.now)
    partition.leaseId = leaseId
    partition.outcome = null
    partition.holder = holder
    partition.dueAt = this.now + this.policy.leaseMillis
    partition.leasedAt = this.now
    this.leases.set(leaseId, partition)
  }

  settle(leaseId: string, reported: ReportedOutcome): string | null {
    const partition = this.newest(leaseId)
    if (partition === undefined) return this.refusal(leaseId)
    const { outcome } = partition
    if (outcome !== null && outcome !== 'expired' && outcome !== 'revoked') {
      if (outcome !== reported.outcome) return 'lease_settled'
      if (outcome !== 'done') this.save(partition, reported.checkpoint)
      return null
    }
    if (partition.lane.task.cancelled) return 'task_cancelled'
    this.save(partition, reported.outcome === 'done' ? null : reported.checkpoint)
    const isLate = outcome !== null
    if (reported.outcome === 'done') {
      // An expiry has counted the attempt, unless an operator has reset it since.
      partition.attempts = isLate ? Math.max(1, partition.attempts) : partition.attempts + 1
      if (isLate) withdrawExpiry(partition)
      partition.settledAt = this.now
      partition.reported = reported.records
      partition.releases = 0
      partition.outcome = 'done'
      if (!isLate) this.attemptEnded(partition, false)
      this.move(partition, 'done')
    } else if (reported.outcome === 'failed') {
      partition.outcome = 'failed'
      if (isLate) amendExpiry(partition, reported.reason)
      else recordEnd(partition, 'failed', reported.reason, this.now)
      if (!isLate) this.attemptEnded(partition, true)
      if (!isLate) this.useAttempt(partition, reported.final, reported.retryAfterMillis)
      else if (reported.final) this.move(partition, 'parked')
      this.changed.add(partition)
    } else if (!isLate) {
      recordEnd(partition, 'released', reported.reason, this.now)
      this.release(partition, reported.retryAfterMillis)
    }
    return null
  }

  renew(leaseId: string, checkpoint: GivenCheckpoint): string | null {
    const partition = this.newest(leaseId)
    if (partition === undefined) return this.refusal(leaseId)
    const { outcome } = partition
    if (outcome !== null && outcome !== 'expired' && outcome !== 'revoked') return 'lease_settled'
    if (partition.lane.task.cancelled) return 'task_cancelled'
    if (outcome === 'revoked') return 'lease_lost'
    const { task } = partition.lane
    if (outcome === 'expired' && (task.counts.leased >= task.maxLeases || isAtLimit(partition.table)))
      return 'limit_reached'
    if (outcome === 'expired') {
      partition.attempts = Math.max(0, partition.attempts - 1)
      withdrawExpiry(partition)
      task.attemptRevived()
    }
    partition.outcome = null
    this.move(partition, 'leased')
    partition.dueAt = this.now + this.policy.leaseMillis
    this.save(partition, checkpoint)
    return null
  }

  /** For its next lease. */
  private save(partition: ModelPartition, checkpoint: GivenCheckpoint): void {
    if (checkpoint === undefined) return
    partition.checkpoint = checkpoint
    this.changed.add(partition)
    this.touched.add(partition.lane.task)
  }

  undo(leaseId: string): boolean {
    const partition = this.newest(leaseId)
    if (partition?.place !== 'leased' || partition.lane.task.cancelled) return false
    partition.outcome = 'released'
    this.giveBack(partition)
    return true
  }

  /** Its lease has expired. */
  expire(partition: ModelPartition): void {
    if (partition.lane.task.cancelled) {
      this.move(partition, 'cancelled')
      return
    }
    partition.outcome = 'expired'
    recordExpiry(partition, this.now)
    this.attemptEnded(partition, true)
    this.useAttempt(partition, false, null)
  }

  /** Its task may pause itself. */
  private attemptEnded({ lane: { task } }: ModelPartition, hasFailed: boolean): void {
    const wasPaused = task.paused
    task.attemptEnded(hasFailed)
    if (task.paused === wasPaused) return
    this.interrupt(task)
    this.changes.add('self-pause')
  }

  /** An operator revokes its lease: that counts like an expiry, without a back-off. */
  revoke(partition: ModelPartition): void {
    if (partition.lane.task.cancelled) {
      this.move(partition, 'cancelled')
      return
    }
    partition.outcome = 'revoked'
    recordRevocation(partition, this.now)
    partition.attempts += 1
    partition.releases = 0
    partition.dueAt = this.now
    this.move(partition, this.hasAttempts(partition) ? 'waiting' : 'parked')
  }

  /** The time of its back-off has come. */
  wake(partition: ModelPartition): void {
    if (partition.lane.task.cancelled) this.move(partition, 'cancelled')
    else this.move(partition, 'waiting')
  }

  private useAttempt(partition: ModelPartition, final: boolean, askedMillis: number | null): void {
    partition.attempts += 1
    partition.releases = 0
    if (final || !this.hasAttempts(partition)) this.move(partition, 'parked')
    else this.delay(partition, partition.attempts, askedMillis)
  }

  private hasAttempts({ attempts, lane }: ModelPartition): boolean {
    return attempts < (lane.task.maxAttempts ?? this.policy.maxAttempts)
  }

  private release(partition: ModelPartition, askedMillis: number | null): void {
    partition.outcome = 'released'
    partition.releases += 1
    const backoff = partition.releases > 2 ? this.backoffMillis(partition.releases - 2) : 0
    const millis = Math.max(backoff, askedMillis ?? 0)
    if (millis > 0) this.delay(partition, 1, millis)
    else this.giveBack(partition)
  }

  private giveBack(partition: ModelPartition): void {
    partition.dueAt = this.now
    this.move(partition, 'waiting')
  }

  private delay(partition: ModelPartition, doubling: number, askedMillis: number | null): void {
    this.move(partition, 'delayed')
    partition.dueAt = this.now + (askedMillis ?? this.backoffMillis(doubling))
  }

  private backoffMillis(doubling: number): number {
    const { backoffMillis, backoffMaxMillis } = this.policy
    const full = Math.min(backoffMillis * 2 ** (doubling - 1), backoffMaxMillis)
    return Math.round(full * (0.5 + 0.5 * this.spread))
  }

  /** The only way in which a partition changes its state. */
  move(partition: ModelPartition, to: Place, line: WaitingLine = partition.line): void {
    const { lane, place: from } = partition
    const { task } = lane
    // A task at its maximum of leases cannot serve until one of them ends.
    const wasAtLimit = task.counts.leased >= task.maxLeases
    lane.counts[from] -= 1
    lane.counts[to] += 1
    lane.task.counts[from] -= 1
    lane.task.counts[to] += 1
    if (task.counts.leased >= task.maxLeases !== wasAtLimit) this.interrupt(task)
    if (to === 'done') {
      lane.everDone.partitions += 1
      lane.everDone.records += partition.descriptor.recordCount
    }
    if (from === 'waiting') this.lines.leave(partition)
    partition.place = to
    partition.line = line
    if (from === 'leased') this.leased.delete(partition)
    if (to === 'leased') this.leased.add(partition)
    if (from !== to && (from === 'leased' || to === 'leased'))
      this.tables.change(partition.table, () => {
        partition.table.leased += to === 'leased' ? 1 : -1
      })
    if (from === 'delayed') this.delayed.delete(partition)
    if (to === 'delayed') this.delayed.add(partition)
    if (to === 'waiting') this.lines.comeBack(partition)
    this.touched.add(lane.task)
    this.changed.add(partition)
    if (lane.task.barrier) this.moveBarrier(lane.task)
  }

  /** The partition whose newest lease this is. */
  private newest(leaseId: string): ModelPartition | undefined {
    const partition = this.leases.get(leaseId)
    return partition === undefined || partition.purged || partition.leaseId !== leaseId
      ? undefined
      : partition
  }

  private refusal(leaseId: string): string {
    const partition = this.leases.get(leaseId)
    if (partition === undefined || partition.purged) return 'lease_unknown'
    return partition.lane.task.cancelled ? 'task_cancelled' : 'lease_lost'
  }

  private isAlive(leaseId: string): boolean {
    const partition = this.newest(leaseId)
    if (partition === undefined || partition.lane.task.cancelled) return false
    return partition.place === 'leased' && partition.dueAt > this.now
  }

  /** A lane of the lowest level that has something to hand out to a pull without a filter. */
  firstOpenLane(): ModelLane | null {
    return this.lines.lowestOpen({ tables: null, tasks: null })
  }

  /** Whether it has something of this table to hand out. Null: of any table. */
  hasOf(lane: ModelLane, table: string | null): boolean {
    return this.lines.hasOf(lane, table)
  }

  knowsLease(leaseId: string): boolean {
    return this.leases.has(leaseId)
  }
}
