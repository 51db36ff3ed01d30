import type {
  CallBackResult,
  HandOffAnswers,
  HandOffBatch,
  PullResult,
  RenewResult,
  SettleResult,
} from '../store.ts'
import { concludeTasks, moveBarriers } from './task-updates.ts'
import type { Steps, Transaction } from './transaction.ts'
import { callBack } from './verbs/call-back.ts'
import { pull } from './verbs/pull.ts'
import { loadLeases, renew, settle, undo } from './verbs/settle.ts'

/**
 * Runs everything that arrived together, from this node and from others, in one transaction. Settles run
 * first and pulls last, so that pulls see the effects of the other requests.
 */
export function* runBatch(tx: Transaction, batches: readonly HandOffBatch[]): Steps<HandOffAnswers[]> {
  yield* loadLeases(tx, leasesOf(batches))
  const settles: SettleResult[][] = []
  const renews: RenewResult[][] = []
  const undone: number[] = []
  const callBacks: CallBackResult[][] = []
  const pulls: PullResult[][] = []
  for (const batch of batches) settles.push(yield* settle(tx, batch.settles))
  for (const batch of batches) renews.push(yield* renew(tx, batch.renews))
  for (const batch of batches) undone.push(yield* undo(tx, batch.undos))
  for (const batch of batches) {
    const results: CallBackResult[] = []
    for (const batched of batch.callBacks) results.push(yield* callBack(tx, batched))
    callBacks.push(results)
  }
  yield* moveBarriers(tx)
  for (const batch of batches) pulls.push(yield* pull(tx, batch.pulls))
  yield* concludeTasks(tx)
  const nextDueInMillis = tx.earliestDueAt === null ? null : tx.earliestDueAt - tx.now
  return batches.map((_, at) => ({
    settles: settles[at] as SettleResult[],
    renews: renews[at] as RenewResult[],
    undone: undone[at] as number,
    ...(tx.parkedLeases.length === 0 ? {} : { parked: tx.parkedLeases }),
    callBacks: callBacks[at] as CallBackResult[],
    pulls: pulls[at] as PullResult[],
    // Reported once, with the first batch.
    readied: at === 0 ? tx.readied.count : 0,
    readiedOf: at === 0 ? tx.readied.kinds : [],
    nextDueInMillis,
  }))
}

/** The size of a batch, in partitions. */
export function sizeOf({ settles, renews, undos, callBacks, pulls }: HandOffBatch): number {
  let size = undos.length
  for (const { settlements } of settles) size += settlements.length
  for (const { leases } of renews) size += leases.length
  for (const {
    callBack: { partitions },
  } of callBacks)
    size += partitions.length
  for (const { batch } of pulls) size += batch
  return size
}

export const isNothing = ({ settles, renews, undos, callBacks, pulls }: HandOffBatch): boolean =>
  settles.length + renews.length + undos.length + callBacks.length + pulls.length === 0

/**
 * A pull that found nothing needs no entry: a node that lost leadership cannot return anything wrong with it.
 */
export const isEmptyPull = (batch: HandOffBatch, { pulls }: HandOffAnswers): boolean =>
  isNothing({ ...batch, pulls: [] }) && pulls.every(({ repeated }) => !repeated)

function* leasesOf(batches: readonly HandOffBatch[]) {
  for (const { settles, renews, undos } of batches) {
    for (const { settlements } of settles) for (const { lease } of settlements) yield lease
    for (const { leases } of renews) yield* leases
    yield* undos
  }
}
