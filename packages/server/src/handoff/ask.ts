import type { LeaseRef } from './rules/lease-id.ts'
import type {
  Ask,
  CallBackOrder,
  CallBackResult,
  HandOffAnswers,
  HandOffBatch,
  PullOrder,
  PullResult,
  RenewOrder,
  RenewResult,
  SettleOrder,
  SettleResult,
} from './store.ts'

/** Has what was asked for; nobody asks what became of an undo. */
export interface Answer {
  readonly settle: SettleResult | undefined
  /** Leases of the whole batch whose partitions are parked. */
  readonly parked: readonly string[] | undefined
  readonly renew: RenewResult | undefined
  readonly callBack: CallBackResult | undefined
  readonly pull: PullResult | undefined
}

/** In partitions: what the store's work is made of. */
export function weightOf({ settle, renew, undo, callBack, pull }: Ask): number {
  let weight = 0
  if (settle !== undefined) weight += settle.settlements.length
  if (renew !== undefined) weight += renew.leases.length
  if (undo !== undefined) weight += undo.length
  if (callBack !== undefined) weight += callBack.callBack.partitions.length
  if (pull !== undefined) weight += pull.batch
  return weight
}

export function batchOf(asked: readonly { readonly ask: Ask }[]): HandOffBatch {
  const batch = {
    settles: [] as SettleOrder[],
    renews: [] as RenewOrder[],
    undos: [] as LeaseRef[],
    callBacks: [] as CallBackOrder[],
    pulls: [] as PullOrder[],
  }
  for (const { ask } of asked) {
    if (ask.settle !== undefined) batch.settles.push(ask.settle)
    if (ask.renew !== undefined) batch.renews.push(ask.renew)
    if (ask.undo !== undefined) batch.undos.push(...ask.undo)
    if (ask.callBack !== undefined) batch.callBacks.push(ask.callBack)
    if (ask.pull !== undefined) batch.pulls.push(ask.pull)
  }
  return batch
}

/** Answers come back in the order in which `batchOf` laid the orders out. */
export function answersOf(asked: readonly { readonly ask: Ask }[], answers: HandOffAnswers): Answer[] {
  let [settles, renews, callBacks, pulls] = [0, 0, 0, 0]
  return asked.map(({ ask: { settle, renew, callBack, pull } }) => ({
    settle: settle === undefined ? undefined : at(answers.settles, settles++),
    parked: answers.parked,
    renew: renew === undefined ? undefined : at(answers.renews, renews++),
    callBack: callBack === undefined ? undefined : at(answers.callBacks, callBacks++),
    pull: pull === undefined ? undefined : at(answers.pulls, pulls++),
  }))
}

function at<T>(answers: readonly T[], place: number): T {
  const answer = answers[place]
  if (answer === undefined) throw new Error('the store answered fewer orders than it was given')
  return answer
}
