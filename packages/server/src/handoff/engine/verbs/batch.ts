import type { LeaseRef } from '../../lease-id.ts'
import type { CallBackResult, HandOffAnswers, HandOffBatch, RenewResult, SettleResult } from '../../store.ts'
import { concludeTasks, moveBarriers } from '../task-updates.ts'
import type { Transaction } from '../transaction.ts'
import { callBack } from './call-back.ts'
import { pull } from './pull.ts'
import { loadLeases, renew, settle, undo } from './settle.ts'

/** Runs a batch: settles first and pulls last, so that pulls see the effects of the other requests. */
export async function runBatch(tx: Transaction, batch: HandOffBatch): Promise<HandOffAnswers> {
  await loadLeases(tx, leasesOf(batch))
  const settles: SettleResult[] = []
  for (const settled of batch.settles) settles.push(await settle(tx, settled))
  const renews: RenewResult[] = []
  for (const renewed of batch.renews) renews.push(await renew(tx, renewed))
  let undone = 0
  for (const lease of batch.undos) if (undo(tx, lease)) undone += 1
  const callBacks: CallBackResult[] = []
  for (const calledBack of batch.callBacks) callBacks.push(await callBack(tx, calledBack))
  await moveBarriers(tx)
  const pulls = await pull(tx, batch.pulls)
  await concludeTasks(tx)
  const { newlyReady, parkedLeases, earliestDueAt } = tx
  return {
    settles,
    renews,
    undone,
    callBacks,
    pulls,
    newlyReady: newlyReady.count,
    newlyReadyOf: newlyReady.kinds,
    nextDueInMillis: earliestDueAt === null ? null : earliestDueAt - tx.now,
    ...(parkedLeases.length === 0 ? {} : { parked: parkedLeases }),
  }
}

function leasesOf({ settles, renews, undos }: HandOffBatch): LeaseRef[] {
  const named = [...undos]
  for (const { settlements } of settles) for (const { lease } of settlements) named.push(lease)
  for (const { leases } of renews) for (const lease of leases) named.push(lease)
  return named
}

const isPullsAlone = ({ settles, renews, undos, callBacks }: HandOffBatch): boolean =>
  settles.length + renews.length + undos.length + callBacks.length === 0

/** If no row changed, and this node leads for certain. A repeated key returns leases, which must be durable. */
export const mayAnswerWithoutEntry = (batch: HandOffBatch, { pulls }: HandOffAnswers): boolean =>
  isPullsAlone(batch) && pulls.every(({ repeated }) => !repeated)
