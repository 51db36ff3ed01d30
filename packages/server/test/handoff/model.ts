import type { CallBack } from '@baton/protocol'
import type { PulledPartition } from '../../src/handoff/partition.ts'
import type { Policy } from '../../src/handoff/rules/policy.ts'
import type { ReportedOutcome } from '../../src/handoff/rules/settlement.ts'
import type { BatchedPull, PullResult } from '../../src/handoff/store.ts'
import { claim, disagree } from './model-disagreement.ts'
import { Eligible } from './model-eligible.ts'
import { amendExpiry, notAttempted, recordEnd, recordExpiry, withdrawExpiry } from './model-history.ts'
import { ModelKeys } from './model-keys.ts'
import { isSameDescriptor } from './model-partition.ts'
import { type ModelLease, type ModelPartition, ModelTask } from './model-task.ts'

/**
 * The hand-off as the design describes it, in memory and as simple as possible: written from the design
 * document and not from the code. It knows nothing about fairness tags: of the order it checks only levels
 * and, within a lane, the order of arrival of partitions that were never handed out.
 *
 * It calls a store on any disk through the store's verbs, gets every answer, and checks the views.
 * `test/simulate/model/model.ts` is a second model: answers get lost there, so it has to follow the stored
 * rows, and it checks lines, terms and fairness, too. What both models need in the same form is in
 * `model-partition.ts`, `model-keys.ts`, `model-history.ts` and `model-disagreement.ts`.
 */
export class Model {
  readonly tasks = new Map<string, ModelTask>()
  /** Of tasks that may not be known yet. */
  readonly settings = new Map<string, ModelTask['settings']>()
  readonly #leases = new Map<string, ModelPartition>()
  readonly #keys = new ModelKeys()
  readonly #policy: Policy
  readonly #now: () => number
  #arrivals = 0

  constructor(policy: Policy, now: () => number) {
    this.#policy = policy
    this.#now = now
  }

  all(): ModelPartition[] {
    return [...this.tasks.values()].flatMap((task) => task.all())
  }

  commit(): void {
    for (const task of this.tasks.values()) task.commit(this.#now())
  }

  callBack({ taskId, partitions }: CallBack): { kind: string; accepted?: number; duplicates?: number } {
    const task = this.tasks.get(taskId) ?? new ModelTask(taskId, this.#policy.levelBarrier)
    const fresh = partitions.filter(({ level, index }) => task.find(level, index) === undefined)
    const conflicts = partitions.filter((descriptor) => {
      const known = task.find(descriptor.level, descriptor.index)
      return known !== undefined && !known.purged && !isSameDescriptor(known.descriptor, descriptor)
    })
    if (conflicts.length > 0) return { kind: 'conflict' }
    if (fresh.length > 0 && task.cancelled) return { kind: 'task_cancelled' }
    if (fresh.length > 0 && task.sealed) return { kind: 'task_sealed' }
    if (fresh.length > 0 && task.partitions.size > 0 && task.finishedAt !== null) {
      task.generation += 1
      task.purged = false
      task.finishedAt = null
    }
    task.settings = this.settings.get(taskId) ?? {}
    this.tasks.set(taskId, task)
    for (const descriptor of fresh) this.#arrive(task, descriptor)
    return { kind: 'stored', accepted: fresh.length, duplicates: partitions.length - fresh.length }
  }

  /** Checks what was handed out and adopts it. */
  pulled(pull: BatchedPull, result: PullResult): void {
    if (this.#keys.isRepeat(pull, result, this.#now(), (id) => this.#isAlive(id))) return
    const { partitions } = result
    const eligible = new Eligible(this.tasks.values(), pull)
    let records = 0
    for (const [position, handedOut] of partitions.entries()) {
      claim(position < pull.batch, 'a pull got more than it asked for')
      claim(position === 0 || records < (pull.records ?? Infinity), 'a pull got more than its budget')
      this.#handOut(handedOut, eligible, pull.instance)
      records += handedOut.recordCount
    }
    const isFull = partitions.length === pull.batch
    const isSated = pull.records !== null && partitions.length > 0 && records >= pull.records
    claim(isFull || isSated || eligible.isEmpty, 'a pull got less than there was')
    this.#keys.remember(pull.key, partitions)
  }

  settle(leaseId: string, reported: ReportedOutcome): string | null {
    const partition = this.#newest(leaseId)
    if (partition === undefined) return this.#refusal(leaseId)
    const { lease, task } = partition
    if (lease.outcome !== null && lease.outcome !== 'expired' && lease.outcome !== 'revoked')
      return lease.outcome === reported.outcome ? null : 'lease_settled'
    if (task.cancelled) return 'task_cancelled'
    const isLate = lease.outcome !== null
    if (reported.outcome === 'done') {
      lease.outcome = 'done'
      partition.place = 'done'
      partition.reported = reported.records
      partition.settledAt = this.#now()
      if (isLate) withdrawExpiry(partition)
      // An expiry has counted the attempt, unless an operator has reset it since.
      partition.attempts = isLate ? Math.max(1, partition.attempts) : partition.attempts + 1
    } else if (reported.outcome === 'failed' && isLate) {
      lease.outcome = 'failed'
      amendExpiry(partition, reported.reason)
      if (reported.final) partition.place = 'parked'
    } else if (reported.outcome === 'failed') {
      lease.outcome = 'failed'
      recordEnd(partition, 'failed', reported.reason, this.#now())
      this.#useAttempt(partition, reported.final, reported.retryAfterMillis)
    } else if (!isLate) {
      recordEnd(partition, 'released', reported.reason, this.#now())
      this.#release(partition, reported.retryAfterMillis)
    }
    return null
  }

  renew(leaseId: string): string | null {
    const partition = this.#newest(leaseId)
    if (partition === undefined) return this.#refusal(leaseId)
    const { lease, task } = partition
    if (lease.outcome !== null && lease.outcome !== 'expired' && lease.outcome !== 'revoked')
      return 'lease_settled'
    if (task.cancelled) return 'task_cancelled'
    if (lease.outcome === 'revoked') return 'lease_lost'
    if (lease.outcome === 'expired') {
      partition.attempts = Math.max(0, partition.attempts - 1)
      withdrawExpiry(partition)
      task.wasted -= 1
    }
    lease.outcome = null
    partition.place = 'leased'
    partition.dueAt = this.#now() + this.#policy.leaseMillis
    return null
  }

  undo(leaseId: string): boolean {
    const partition = this.#newest(leaseId)
    if (partition?.place !== 'leased' || partition.task.cancelled) return false
    partition.lease.outcome = 'released'
    partition.place = 'waiting'
    return true
  }

  sweep(): void {
    const now = this.#now()
    for (const partition of this.all()) {
      if (partition.place !== 'leased' || partition.dueAt > now) continue
      if (partition.task.cancelled) partition.place = 'cancelled'
      else {
        if (partition.lease !== null) partition.lease.outcome = 'expired'
        recordExpiry(partition, null, now)
        this.#useAttempt(partition, false, null)
      }
    }
    for (const partition of this.all()) {
      if (partition.place !== 'delayed' || partition.dueBetween !== null || partition.dueAt > now) continue
      partition.place = partition.task.cancelled ? 'cancelled' : 'waiting'
    }
  }

  /** An operator revokes the leases of an instance: that counts like an expiry, without a back-off. */
  revoke(instanceId: string): { released: number; parked: number } {
    const held = this.all().filter(({ place, holder }) => place === 'leased' && holder === instanceId)
    for (const partition of held)
      if (partition.task.cancelled) partition.place = 'cancelled'
      else {
        if (partition.lease !== null) partition.lease.outcome = 'revoked'
        recordExpiry(partition, instanceId, this.#now())
        this.#countAttempt(partition)
        partition.place = this.#hasAttempts(partition) ? 'waiting' : 'parked'
      }
    return { released: held.length, parked: held.filter(({ place }) => place === 'parked').length }
  }

  maintain(retentionMillis: number): void {
    for (const task of this.tasks.values()) {
      if (task.finishedAt === null || task.finishedAt >= this.#now() - retentionMillis) continue
      if (task.all().some(({ place }) => place === 'leased' || place === 'delayed')) continue
      task.purged = true
      for (const partition of task.all()) partition.purged = true
    }
  }

  #arrive(task: ModelTask, descriptor: ModelPartition['descriptor']): void {
    this.#arrivals += 1
    task.partitions.set(`${descriptor.level}-${descriptor.index}`, {
      task,
      descriptor,
      arrival: this.#arrivals,
      place: 'waiting',
      attempts: 0,
      releases: 0,
      lease: null,
      dueAt: 0,
      dueBetween: null,
      wasHandedOut: false,
      ...notAttempted(),
      purged: false,
    })
  }

  #handOut(handedOut: PulledPartition, eligible: Eligible, holder: string | null): void {
    const { taskId, level, index, recordCount, computeTableName, lease } = handedOut
    const name = `${taskId}-${level}-${index}`
    const partition = this.tasks.get(taskId)?.find(level, index)
    if (partition === undefined || lease === null) disagree(`${name} was never called back`)
    eligible.take(partition, name)
    claim(recordCount === partition.descriptor.recordCount, `${name} came with ${recordCount} records`)
    claim(computeTableName === partition.descriptor.computeTableName, `${name} came with another table`)
    claim(lease.attempt === partition.attempts + 1, `${name} came as attempt ${lease.attempt}`)
    claim(!this.#leases.has(lease.id), `the lease ${lease.id} was given twice`)
    partition.place = 'leased'
    partition.wasHandedOut = true
    partition.holder = holder
    partition.leasedAt = this.#now()
    partition.dueAt = this.#now() + this.#policy.leaseMillis
    claim(lease.expiresAt === partition.dueAt, `the lease of ${name} ends at ${lease.expiresAt}`)
    partition.lease = { id: lease.id, outcome: null }
    this.#leases.set(lease.id, partition)
  }

  /** The partition whose newest lease this is. */
  #newest(leaseId: string): (ModelPartition & { readonly lease: ModelLease }) | undefined {
    const partition = this.#leases.get(leaseId)
    if (partition === undefined || partition.purged || partition.lease?.id !== leaseId) return undefined
    return partition as ModelPartition & { lease: ModelLease }
  }

  #refusal(leaseId: string): string {
    const partition = this.#leases.get(leaseId)
    if (partition === undefined || partition.purged) return 'lease_unknown'
    return partition.task.cancelled ? 'task_cancelled' : 'lease_lost'
  }

  #isAlive(leaseId: string): boolean {
    const partition = this.#newest(leaseId)
    if (partition === undefined || partition.task.cancelled) return false
    return partition.place === 'leased' && partition.dueAt > this.#now()
  }

  #useAttempt(partition: ModelPartition, final: boolean, askedMillis: number | null): void {
    this.#countAttempt(partition)
    if (final || !this.#hasAttempts(partition)) partition.place = 'parked'
    else if (askedMillis === null) this.#delay(partition, partition.attempts, 0)
    else this.#delayUntil(partition, askedMillis, askedMillis)
  }

  #countAttempt(partition: ModelPartition): void {
    partition.attempts += 1
    partition.releases = 0
    partition.task.wasted += 1
  }

  #hasAttempts({ attempts, task }: ModelPartition): boolean {
    return attempts < (task.settings.maxAttempts ?? this.#policy.maxAttempts)
  }

  #release(partition: ModelPartition, askedMillis: number | null): void {
    if (partition.lease !== null) partition.lease.outcome = 'released'
    partition.releases += 1
    if (partition.releases > 2) this.#delay(partition, partition.releases - 2, askedMillis ?? 0)
    else if (askedMillis !== null && askedMillis > 0) this.#delayUntil(partition, askedMillis, askedMillis)
    else partition.place = 'waiting'
  }

  #delay(partition: ModelPartition, doubling: number, atLeastMillis: number): void {
    const { backoffMillis, backoffMaxMillis } = this.#policy
    const longest = Math.min(backoffMillis * 2 ** (doubling - 1), backoffMaxMillis)
    this.#delayUntil(partition, Math.max(longest / 2, atLeastMillis), Math.max(longest, atLeastMillis))
  }

  #delayUntil(partition: ModelPartition, shortestMillis: number, longestMillis: number): void {
    partition.place = 'delayed'
    partition.dueBetween = { first: this.#now() + shortestMillis, last: this.#now() + longestMillis }
  }
}
