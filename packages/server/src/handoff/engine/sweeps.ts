import type { Disk } from '../disk.ts'
import type { StoredPartition } from '../partition.ts'
import type { SweepRequest, SweepResult } from '../store.ts'
import type { Runner } from './runner.ts'
import { concludeTasks, moveBarriers } from './task-updates.ts'
import type { Transaction } from './transaction.ts'
import { endDue } from './verbs/expire.ts'

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
