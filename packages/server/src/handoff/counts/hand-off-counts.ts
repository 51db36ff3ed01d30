import { type RefusalCode, refusalCodes } from '@baton/protocol'
import type { MentionsOutcome } from '../mentions.ts'
import type { Renewal } from '../requests.ts'
import type { CallBackResult, PullResult } from '../store.ts'

type Refusals = Record<RefusalCode, number>

const noRefusals = () => Object.fromEntries(refusalCodes.map((code) => [code, 0])) as Refusals

/**
 * What this node has answered since it started, as plain numbers: noting an answer costs a few additions, and what
 * they are called outside is up to whoever reads them.
 */
export class HandOffCounts {
  readonly calledBack = { accepted: 0, duplicate: 0 }
  readonly pulls = { partitions: 0, nothing: 0, repeated: 0 }
  readonly handedOut = { partitions: 0, records: 0 }
  readonly settlements: MentionsOutcome['totals'] = { done: 0, failed: 0, released: 0 }
  renewed = 0
  readonly refused: Record<'settle' | 'renew', Refusals> = { settle: noRefusals(), renew: noRefusals() }

  noteCallBack(result: CallBackResult): void {
    if (result.kind !== 'stored') return
    this.calledBack.accepted += result.accepted
    this.calledBack.duplicate += result.duplicates
  }

  /** What a key gives again was handed out before. */
  notePull({ partitions, repeated }: PullResult): void {
    if (repeated) this.pulls.repeated += 1
    else if (partitions.length === 0) this.pulls.nothing += 1
    else {
      this.pulls.partitions += 1
      this.handedOut.partitions += partitions.length
      for (const { recordCount } of partitions) this.handedOut.records += recordCount
    }
  }

  noteSettle({ totals, refused }: MentionsOutcome): void {
    this.settlements.done += totals.done
    this.settlements.failed += totals.failed
    this.settlements.released += totals.released
    for (const { code } of refused) this.refused.settle[code] += 1
  }

  noteRenewals(renewals: readonly Renewal[]): void {
    for (const { refused } of renewals) {
      if (refused === null) this.renewed += 1
      else this.refused.renew[refused] += 1
    }
  }
}
