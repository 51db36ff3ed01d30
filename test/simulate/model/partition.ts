import type { CalledBackPartition } from '@baton/protocol'
import type { BatchedPull } from '../../../packages/server/src/handoff/store.ts'

/** The state of a partition. Whether a waiting one is ready or held depends on its task. */
export type Place = 'waiting' | 'leased' | 'delayed' | 'parked' | 'done' | 'cancelled'

export type LeaseOutcome = 'done' | 'failed' | 'released' | 'expired' | 'revoked'

/** The partitions that a pull accepts. */
export type Filter = Pick<BatchedPull, 'tables' | 'tasks'>

/** Whether a second call-back of a partition agrees with the first. */
export function isSameDescriptor(a: CalledBackPartition, b: CalledBackPartition): boolean {
  return (
    a.recordCount === b.recordCount && a.computeTableName === b.computeTableName && a.spelling === b.spelling
  )
}

export function isWanted(taskId: string, computeTableName: string, { tables, tasks }: Filter): boolean {
  if (tasks !== null && !tasks.includes(taskId)) return false
  return tables === null || tables.includes(computeTableName)
}
