import { rankRetry } from '../../../handoff/rules/fair-order.ts'
import type { LeaseRef } from '../../../handoff/rules/lease-id.ts'
import type { Policy } from '../../../handoff/rules/policy.ts'
import { judgeRenewal, judgeSettlement, judgeUndo } from '../../../handoff/rules/settlement.ts'
import type {
  HandOffBatch,
  RenewOrder,
  RenewResult,
  SettleOrder,
  SettleResult,
} from '../../../handoff/store.ts'
import type { CountDeltas } from '../counters/count-deltas.ts'
import { levelsToRank } from '../counters/level-times.ts'
import type { Transaction } from '../session/transaction.ts'
import { saveLaneTags } from '../windows/lanes.ts'
import { applyChange, lockPartitions, type PartitionEntry, writeChanges } from './partitions.ts'
import { finishPlain } from './settle-plain.ts'
import { tellWaitingApart } from './waiting.ts'
import { lockLanesToWake } from './wake.ts'

export interface LeaseAnswers {
  readonly settles: readonly SettleResult[]
  readonly renews: readonly RenewResult[]
  readonly undone: number
  /** Partitions given back by whatever was said, to be handed out again at once. */
  readonly returned: number
  readonly earliestDueAt: number | null
  /** A task with a level barrier is concerned. */
  readonly mayOpenLevels: boolean
  /** Sets of leases that have to shrink; see shrinking.ts. */
  readonly setsLeft: readonly string[]
}

/** Everything that workers say about leases they were given: locked together, judged one by one, written together. */
export async function answerLeases(
  tx: Transaction,
  batch: HandOffBatch,
  deltas: CountDeltas,
  policy: Policy,
): Promise<LeaseAnswers> {
  const plain = await finishPlain(tx, batch, deltas, policy)
  const ids = [
    ...batch.settles.flatMap(({ settlements }) => settlements.map(({ lease }) => lease.partition)),
    ...batch.renews.flatMap(({ leases }) => leases.map(({ partition }) => partition)),
    ...batch.undos.map(({ partition }) => partition),
  ].filter((id) => !plain.partitions.has(id))
  if (ids.length === 0) {
    return {
      settles: batch.settles.map(({ settlements }) => settlements.map(() => null)),
      renews: batch.renews.map(() => []),
      undone: 0,
      returned: 0,
      earliestDueAt: null,
      mayOpenLevels: plain.mayOpenLevels,
      setsLeft: plain.setsLeft,
    }
  }
  const [partitions, now] = await Promise.all([lockPartitions(tx, ids), tx.now()])
  await tellWaitingApart(tx, partitions.values())
  const judging = new Judging(partitions, plain.partitions, deltas, policy, now)
  const settles = batch.settles.map((order) => judging.settle(order))
  const renews = batch.renews.map((order) => judging.renew(order))
  const undone = judging.undo(batch.undos)
  await rankReturned(tx, [...partitions.values()], deltas)
  writeChanges(tx, partitions.values())
  return {
    settles,
    renews,
    undone,
    returned: judging.returned,
    earliestDueAt: judging.earliestDueAt,
    setsLeft: plain.setsLeft,
    mayOpenLevels:
      plain.mayOpenLevels ||
      [...partitions.values()].some(({ hasBarrier, write }) => hasBarrier && write !== null),
  }
}

/** A lease that expired lost its rank; revived and then given back it returns as an expired one does. */
async function rankReturned(
  tx: Transaction,
  partitions: readonly PartitionEntry[],
  deltas: CountDeltas,
): Promise<void> {
  const unranked = partitions.filter(
    ({ state, keptRank, write }) => state === 'ready' && keptRank === null && write?.moved === true,
  )
  if (unranked.length === 0) return
  const lanes = await lockLanesToWake(tx, unranked)
  const times = await levelsToRank(
    tx,
    unranked.map(({ lane }) => lane.level),
    deltas,
  )
  for (const { lane, recordCount, write } of unranked) {
    const tags = lanes.get(lane.id)
    const time = times.get(lane.level)
    if (tags === undefined || time === undefined || write === null)
      throw new Error('a partition returns without its lane')
    write.rank = rankRetry(time, tags, recordCount)
  }
  saveLaneTags(tx, [...lanes.values()])
}

class Judging {
  readonly #partitions: ReadonlyMap<number, PartitionEntry>
  readonly #finished: ReadonlySet<number>
  readonly #deltas: CountDeltas
  readonly #policy: Policy
  readonly #now: number
  returned = 0
  earliestDueAt: number | null = null

  constructor(
    partitions: ReadonlyMap<number, PartitionEntry>,
    finished: ReadonlySet<number>,
    deltas: CountDeltas,
    policy: Policy,
    now: number,
  ) {
    this.#partitions = partitions
    this.#finished = finished
    this.#deltas = deltas
    this.#policy = policy
    this.#now = now
  }

  settle({ settlements }: SettleOrder): SettleResult {
    return settlements.map(({ lease, order }) => {
      if (this.#finished.has(lease.partition)) return null
      const partition = this.#partitions.get(lease.partition)
      const verdict = judgeSettlement(partition, lease, order, this.#policy, Math.random())
      if (verdict.refused !== null) return verdict.refused
      if (partition === undefined || verdict.change === null) return null
      this.#apply(partition, verdict.change)
      return null
    })
  }

  renew({ leases }: RenewOrder): RenewResult {
    return leases.map((lease) => {
      const partition = this.#partitions.get(lease.partition)
      const verdict = judgeRenewal(partition, lease)
      if (verdict.refused !== null || partition === undefined || verdict.change === null) {
        return { refused: verdict.refused ?? 'lease_unknown' }
      }
      const expiresAt = this.#apply(partition, verdict.change) ?? this.#now
      return { refused: null, expiresAt, expiresInMillis: expiresAt - this.#now }
    })
  }

  /** Returns how many partitions went back. */
  undo(leases: readonly LeaseRef[]): number {
    let undone = 0
    for (const lease of leases) {
      const partition = this.#partitions.get(lease.partition)
      const change = judgeUndo(partition, lease)
      if (partition === undefined || change === null) continue
      this.#apply(partition, change)
      undone += 1
    }
    return undone
  }

  #apply(partition: PartitionEntry, change: Parameters<typeof applyChange>[1]): number | null {
    const dueAt = applyChange(partition, change, this.#deltas, this.#policy, this.#now)
    if (dueAt !== null && (this.earliestDueAt === null || dueAt < this.earliestDueAt))
      this.earliestDueAt = dueAt
    // What is said late of one that is ready anyway gives nothing back.
    if (change.event !== null && partition.state === 'ready') this.returned += 1
    return dueAt
  }
}
