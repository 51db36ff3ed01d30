import type { Disk } from '../../disk.ts'
import { silenceAllowed } from '../../instance-status.ts'
import type { StoredPartition } from '../../partition.ts'
import { next, type StoredState } from '../../rules/life-cycle.ts'
import { leaseMillis } from '../../rules/policy.ts'
import { judgeCancellation, judgeExpiry } from '../../rules/settlement.ts'
import type { SweepRequest, SweepResult } from '../../store.ts'
import { applyChange, leaseStateOf, policyFor } from '../lease-changes.ts'
import { addPartitions } from '../read-rows.ts'
import type { Runner } from '../runner.ts'
import type { Partition } from '../state/memory-rows.ts'
import { concludeTasks, moveBarriers } from '../task-updates.ts'
import { isEndOfSlice, type Transaction } from '../transaction.ts'

/** Ends leases, which are in memory, and back-offs, which are found on disk. */
export class Sweeps {
  readonly #disk: Disk
  readonly #runner: Runner
  /** No back-off ends before this time. */
  #backoffsEndAt = 0

  constructor(disk: Disk, runner: Runner) {
    this.#disk = disk
    this.#runner = runner
  }

  /** Memory was read from the disk again. */
  opened(): void {
    this.#backoffsEndAt = 0
  }

  committed({ earliestBackoffEnd }: Transaction): void {
    if (earliestBackoffEnd !== null) this.#backoffsEndAt = Math.min(this.#backoffsEndAt, earliestBackoffEnd)
  }

  async run({ limit, mayExpireLeases }: SweepRequest): Promise<SweepResult> {
    const hasBackoffs = this.#backoffsEndAt <= this.#runner.now
    if (hasBackoffs) await this.#runner.flush()
    const sweep = this.#runner.transact(
      async (tx) => {
        // Found only now: a large call-back that failed may have dropped the memory from before.
        const { leases } = tx.memory
        const expireLeases = mayExpireLeases()
        const ended = expireLeases ? leases.ended(tx.now, limit) : []
        const backoffs = hasBackoffs ? await this.#endedBackoffs(tx.now, limit) : []
        const { woken: wokenAtFirst, expired, parked } = await endDue(tx, ended, backoffs)
        const before = tx.newlyReady.count
        await moveBarriers(tx)
        await concludeTasks(tx)
        return {
          woken: Math.max(wokenAtFirst, before) + tx.newlyReady.count - before,
          newlyReadyOf: tx.newlyReady.kinds,
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
  }

  async #endedBackoffs(now: number, limit: number): Promise<readonly StoredPartition[]> {
    const { due, nextAt } = await this.#disk.dueBackoffs(now, limit)
    this.#backoffsEndAt = due.length === limit ? 0 : (nextAt ?? Number.POSITIVE_INFINITY)
    return due
  }
}

/** Ends what is due. Leases first: without back-off they become ready in the same step. */
async function endDue(
  tx: Transaction,
  leased: readonly Partition[],
  backoffs: readonly StoredPartition[],
): Promise<Pick<SweepResult, 'expired' | 'parked' | 'woken'>> {
  const ended = { expired: 0, parked: 0, woken: 0 }
  const delayed = await addPartitions(tx, backoffs)
  const isDue = ({ state, dueAt }: Partition, expected: StoredState): boolean =>
    state === expected && dueAt !== null && dueAt <= tx.now
  for (const [index, partition] of leased.entries()) {
    if (isEndOfSlice(index)) await tx.nextIteration()
    if (!isDue(partition, 'leased')) continue
    expire(tx, partition)
    ended.expired += 1
    if (partition.state === 'parked') ended.parked += 1
    if (isDue(partition, 'delayed')) delayed.push(partition)
  }
  for (const [index, partition] of delayed.entries()) {
    if (isEndOfSlice(index)) await tx.nextIteration()
    if (isDue(partition, 'delayed') && wake(tx, partition)) ended.woken += 1
  }
  return ended
}

function expire(tx: Transaction, partition: Partition): void {
  const leaseState = leaseStateOf(partition)
  const { holder, dueAt, recordCount } = partition
  if (holder !== null && dueAt !== null && !leaseState.taskCancelled)
    tx.instances.noteExpired(
      holder,
      dueAt - silenceAllowed(leaseMillis(policyFor(tx, partition), recordCount)),
    )
  applyChange(
    tx,
    partition,
    leaseState.taskCancelled
      ? judgeCancellation(leaseState)
      : judgeExpiry(leaseState, policyFor(tx, partition), tx.random()),
  )
}

/** Ends a back-off: the partition came back when it was due. Returns false if the task is cancelled. */
function wake(tx: Transaction, partition: Partition): boolean {
  if (partition.parentLane.parentTask.cancelled) {
    applyChange(tx, partition, judgeCancellation(leaseStateOf(partition)))
    return false
  }
  const to = next(partition.state, 'wake')
  tx.touchPartition(partition)
  tx.count(partition, to)
  partition.state = to
  tx.waiting.add(partition)
  return true
}
