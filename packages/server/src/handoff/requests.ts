import type { RefusalCode, SettlementOrder } from './rules/settlement.ts'
import type { CallBackResult, PullOrder, PullResult, RenewResult } from './store.ts'

/** Requests to the hand-off, and their results. */
export interface PullRequest extends PullOrder {
  readonly waitMillis: number
}

export interface Pulled extends PullResult {
  /** Nothing was ready at first, and the caller had requested to wait. */
  readonly waited: boolean
}

export interface SettleRequest {
  readonly instance: string | null
  /** Compute tables that the caller is limited to. */
  readonly tables?: readonly string[] | null
  readonly settlements: readonly { readonly leaseId: string; readonly order: SettlementOrder }[]
  /** Also hand out the next partitions, in the same transaction. */
  readonly pull: PullRequest | null
}

export interface Settled {
  readonly settled: readonly string[]
  /** The settled leases whose partitions are now parked. */
  readonly parked: readonly string[]
  readonly refused: readonly { readonly leaseId: string; readonly code: RefusalCode }[]
  readonly pulled: Pulled | null
}

/** Leases that an operator took back. */
export interface Released {
  readonly released: number
  /** How many of their partitions are parked. */
  readonly parked: number
}

export type Renewal = RenewResult[number] & { readonly leaseId: string }

export type CallBackOutcome = Exclude<CallBackResult, { readonly kind: 'store_full' }>
