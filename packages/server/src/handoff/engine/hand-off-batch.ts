import type { CallBackResult, HandOffAnswers, HandOffBatch } from '../store.ts'
import { callBack } from './call-back.ts'
import { concludeTasks, moveBarriers } from './course.ts'
import { pull } from './pull.ts'
import { loadLeases, renew, settle, undo } from './settle.ts'
import type { Steps, Transaction } from './transaction.ts'

/** Everything that arrived together. Settles come first and pulls last, so that pulls see what the others brought. */
export function* handOff(tx: Transaction, batch: HandOffBatch): Steps<HandOffAnswers> {
  yield* loadLeases(tx, leasesOf(batch))
  const settles = yield* settle(tx, batch.settles)
  const renews = yield* renew(tx, batch.renews)
  yield* undo(tx, batch.undos)
  const callBacks: CallBackResult[] = []
  for (const order of batch.callBacks) callBacks.push(yield* callBack(tx, order))
  yield* moveBarriers(tx)
  const pulls = yield* pull(tx, batch.pulls)
  yield* concludeTasks(tx)
  return {
    settles,
    renews,
    undone: tx.undone,
    callBacks,
    pulls,
    readied: tx.readied,
    nextDueInMillis: tx.earliestDueAt === null ? null : tx.earliestDueAt - tx.now,
  }
}

function* leasesOf({ settles, renews, undos }: HandOffBatch) {
  for (const { settlements } of settles) for (const { lease } of settlements) yield lease
  for (const { leases } of renews) yield* leases
  yield* undos
}
