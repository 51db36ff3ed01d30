import { MOST_AUDIT_RECORDS } from '../../audit.ts'
import type { Disk } from '../../disk.ts'
import { parseLeaseId } from '../../lease-id.ts'
import { KEY_GRACE_MILLIS } from '../../rules/policy.ts'
import { type MaintenanceRequest, type MaintenanceResult, StoreUnavailable } from '../../store.ts'
import type { StoredKey } from '../../stored.ts'
import type { Exclusive } from '../exclusive.ts'
import { addTasks, firstRows, lanesFrom } from '../read-rows.ts'
import type { Runner } from '../runner.ts'
import type { Lane, Partition, Task } from '../state/memory-rows.ts'
import { concludeTasks, moveBarriers } from '../task-updates.ts'
import { ThroughputRetention } from '../throughput.ts'
import type { Transaction } from '../transaction.ts'
import { advanceRerun } from './control.ts'
import { loadLeases } from './settle.ts'
import type { Subscriptions } from './subscriptions.ts'

/** Instances that were not seen for this long are deleted. */
const FORGET_INSTANCES_MILLIS = 7 * 86_400_000

/** Nodes that ended gracefully are deleted sooner: each start has a new name unless one is configured. */
const FORGET_ENDED_NODES_MILLIS = 3_600_000

/** Instances seen longest ago are deleted above this number, before their time has come. */
export const MOST_INSTANCES = 100_000

/** The most keys, instances, records or rows of partitions that one step deletes. */
const PER_STEP = 500
const HOUR_MILLIS = 3_600_000

/** Runs exclusively, after all rows are flushed, in small steps so that no pull waits for it. */
export class MaintenanceSteps {
  readonly #disk: Disk
  readonly #runner: Runner
  readonly #exclusive: Exclusive
  readonly #outbox: Subscriptions
  readonly #throughput: ThroughputRetention
  /** The task served last. Tasks alternate: a small rerun does not wait for a large one. */
  #lastRerun = 0
  /** The last hour in which old records of the audit were deleted. */
  #auditHour = -1

  constructor(disk: Disk, runner: Runner, exclusive: Exclusive, outbox: Subscriptions) {
    this.#disk = disk
    this.#runner = runner
    this.#exclusive = exclusive
    this.#outbox = outbox
    this.#throughput = new ThroughputRetention(disk)
  }

  /** Runs one step of each part. A part that fails does not prevent the others. */
  async run({ retentionMillis, auditMillis }: MaintenanceRequest): Promise<MaintenanceResult> {
    let [more, newlyReady] = [false, 0]
    let failure: unknown
    // Each returns whether there may be more to do.
    const parts = [
      async () => {
        const ready = await this.#rerun()
        newlyReady += ready ?? 0
        return ready !== null
      },
      () => this.#forgetKeys(),
      () => this.#forgetInstances(),
      () => this.#purge(retentionMillis),
      () => this.#outbox.maintain(this.#runner.now - retentionMillis),
      // Hourly rows are kept for the retention time, so a purged task has no history left.
      () => this.#throughput.maintain(this.#runner.now, retentionMillis),
      () => this.#forgetAudit(auditMillis),
    ]
    for (const step of parts) {
      try {
        if (await this.#exclusive.runFlushed(step)) more = true
      } catch (error) {
        if (error instanceof StoreUnavailable) throw error
        failure ??= error
      }
    }
    return { more, newlyReady, failure }
  }

  /** How many became ready; null if nothing is to be rerun. Waits while there are as many lanes as there may be. */
  async #rerun(): Promise<number | null> {
    const { lanesUsed, tasks } = await this.#runner.open()
    if (lanesUsed >= this.#runner.limits.lanes) return null
    const next = nextToRerun(tasks.values(), this.#lastRerun)
    if (next === undefined) return null
    this.#lastRerun = next.id
    return this.#runner.transact(async (tx) => {
      // A large call-back that failed may have dropped the memory from before.
      const task = tx.memory.tasks.get(next.id)
      if (task !== undefined) await advanceRerun(tx, task, 0)
      await moveBarriers(tx)
      await concludeTasks(tx)
      return tx.newlyReady.count
    })
  }

  async #forgetKeys(): Promise<boolean> {
    const due = await this.#disk.dueKeys(this.#runner.now, PER_STEP)
    if (due.length === 0) return false
    const seen = await this.#runner.transact((tx) => forgetKeys(tx, due))
    return seen < due.length || due.length === PER_STEP
  }

  async #forgetInstances(): Promise<boolean> {
    const { now } = this.#runner
    const { leases, instances } = await this.#runner.open()
    const forgotten = await this.#disk.forgetInstances({
      unseenSince: now - FORGET_INSTANCES_MILLIS,
      endedSince: now - FORGET_ENDED_NODES_MILLIS,
      holders: new Set(leases.holders.map(({ name }) => name)),
      most: MOST_INSTANCES,
      limit: PER_STEP,
    })
    // Their next pull or call-back stores them again.
    if (forgotten > 0) instances.clear()
    return forgotten === PER_STEP
  }

  async #forgetAudit(auditMillis: number): Promise<boolean> {
    const { now } = this.#runner
    const hour = Math.floor(now / HOUR_MILLIS)
    if (hour === this.#auditHour) return false
    const forgotten = await this.#disk.forgetAudit({
      before: now - auditMillis,
      most: MOST_AUDIT_RECORDS,
      limit: PER_STEP,
    })
    const more = forgotten === PER_STEP
    if (!more) this.#auditHour = hour
    return more
  }

  async #purge(retentionMillis: number): Promise<boolean> {
    const next = await this.#disk.purgeable(this.#runner.now - retentionMillis)
    if (next === null) return false
    await this.#runner.transact(async (tx) => {
      // Read again: other transactions may have changed it since, and memory may have dropped it.
      if (!tx.memory.tasks.has(next.id)) addTasks(tx, await tx.disk.tasksById([next.id]))
      const task = tx.memory.tasks.get(next.id)
      if (task !== undefined) await purge(tx, task)
    })
    return true
  }
}

/** Tasks alternate, by their ids. */
function nextToRerun(tasks: Iterable<Task>, last: number): Task | undefined {
  let first: Task | undefined
  let next: Task | undefined
  for (const task of tasks) {
    if (task.reruns.length === 0) continue
    if (first === undefined || task.id < first.id) first = task
    if (task.id > last && (next === undefined || task.id < next.id)) next = task
  }
  return next ?? first
}

/** Each lease of a key is a row to read. A step processes keys up to this many leases. */
const LEASES_PER_STEP = 1000

/** Deletes due keys, but keeps those whose leases were renewed. Returns how many were processed. */
async function forgetKeys(tx: Transaction, due: readonly StoredKey[]): Promise<number> {
  let leases = 0
  let seen = 0
  for (const { key, leases: ids } of due) {
    leases += ids.length
    if (seen > 0 && leases > LEASES_PER_STEP) break
    seen += 1
    const refs = ids.map(parseLeaseId).filter((ref) => ref !== undefined)
    await loadLeases(tx, refs)
    let lastExpiry = 0
    for (const { partition: id, leaseNumber } of refs) {
      const partition = tx.memory.partitions.get(id)
      if (partition?.state === 'leased' && partition.leaseNumber === leaseNumber)
        lastExpiry = Math.max(lastExpiry, partition.dueAt ?? 0)
    }
    const forgetAt = lastExpiry + KEY_GRACE_MILLIS
    tx.remember(key, forgetAt > tx.now ? { key, leases: ids, forgetAt } : null)
  }
  return seen
}

/** Deletes rows in steps. The counters stay as a summary, and the task counts as purged from the first on. */
async function purge(tx: Transaction, task: Task): Promise<void> {
  if (task.purgedAt === null) {
    tx.touchTask(task)
    task.purgedAt = tx.now
  }
  const lanes = await lanesFrom(tx, task, 0, 'rows')
  let left = PER_STEP
  for (const { lane, rows } of await firstRows(tx, lanes, { state: null, most: left })) {
    if (left <= 0) return
    for (const partition of rows.slice(0, left)) removeRow(tx, lane, partition)
    tx.waiting.update(lane)
    left -= rows.length
  }
}

/** Partitions of a cancelled task may still be queued. They leave the order together with their rows. */
function removeRow(tx: Transaction, lane: Lane, partition: Partition): void {
  const { state, recordCount } = partition
  tx.touchPartition(partition)
  if (state === 'ready') tx.waiting.remove(partition)
  if (state !== 'done') tx.count(partition, 'cancelled')
  tx.touchLane(lane)
  lane.purged += 1
  lane.purgedRecords += recordCount
  tx.remove(partition)
}
