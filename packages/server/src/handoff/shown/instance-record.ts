import type { InstanceRole, InstanceTotals, ProducedTask } from '@baton/protocol'
import { addCapped } from '../rules/tally.ts'

export const noTotals = (): InstanceTotals => ({
  pulls: 0,
  partitions: 0,
  records: 0,
  done: 0,
  failed: 0,
  released: 0,
  callBacks: 0,
  calledBack: 0,
})

export function addTotals(to: InstanceTotals, added: InstanceTotals): void {
  for (const key of Object.keys(added) as (keyof InstanceTotals)[]) to[key] = addCapped(to[key], added[key])
}

/** What an instance did since it was last counted. */
export interface TotalsAdded {
  readonly instanceId: string
  readonly role: InstanceRole
  readonly at: number
  readonly totals: InstanceTotals
}

export interface InstanceRecord {
  readonly instanceId: string
  readonly role: InstanceRole
  readonly firstSeenAt: number
  readonly lastSeenAt: number
  readonly totals: InstanceTotals
  readonly leases: number
  /** When the first of them ends. */
  readonly leasesEndAt: number | null
  readonly node: { readonly version: string; readonly startedAt: number; readonly draining: boolean } | null
  readonly now: number
  /** The newest tasks that it called back, at most 100. */
  readonly tasks: readonly ProducedTaskRecord[]
}

export interface InstanceQuery {
  /** Cursor: the name of the last instance seen. */
  readonly after: string | null
  readonly limit: number
  /** Only those that were seen within so long, or hold a lease; null or absent: all. */
  readonly activeMillis?: number | null
}

/** By name. */
export interface InstancePage {
  readonly instances: readonly InstanceRecord[]
  readonly next: string | null
}

/** A task as the record of its producer has it; times are numbers until somebody is told. */
export type ProducedTaskRecord = Omit<ProducedTask, 'lastCallBackAt'> & { readonly lastCallBackAt: number }
