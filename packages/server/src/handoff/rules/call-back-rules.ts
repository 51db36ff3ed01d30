import { type CalledBackPartition, optionalFields } from '@baton/protocol'
import { totalOf } from './task-facts.ts'
import { isSameText, type MutableTask } from './task-state.ts'

export type CallBackRefusal =
  | { readonly kind: 'task_cancelled' | 'task_sealed' | 'record_total_too_large' }
  /** It would seal the task with fewer partitions than are known. */
  | { readonly kind: 'more_are_known'; readonly known: number }
  /** It has no new partitions, and would seal a task that other owners called back. */
  | { readonly kind: 'not_own' }

/**
 * Why a task refuses new partitions with this many records in total; undefined if it accepts them. Repeated
 * partitions are never refused.
 */
export function refusalOfNew(task: MutableTask, records: number): CallBackRefusal | undefined {
  if (task.cancelled) return { kind: 'task_cancelled' }
  if (task.sealed) return { kind: 'task_sealed' }
  return Number.isSafeInteger(totalOf(task.records) + records)
    ? undefined
    : { kind: 'record_total_too_large' }
}

/** The fields of a call-back that also seals its task. */
interface SealingCallBack {
  readonly partitions: number | null
  readonly owner: string | null
  readonly accepted: number
}

/** Why a call-back may not seal its task; undefined if it may. */
export function refusalOfSeal(
  task: MutableTask | undefined,
  { partitions, owner, accepted }: SealingCallBack,
): CallBackRefusal | undefined {
  if (task?.cancelled === true) return { kind: 'task_cancelled' }
  if (task !== undefined && accepted === 0 && owner !== null && !task.owners.includes(owner))
    return { kind: 'not_own' }
  const known = (task === undefined ? 0 : totalOf(task.partitions)) + accepted
  return (partitions ?? known) < known ? { kind: 'more_are_known', known } : undefined
}

/** The maximum number of owners kept per task. Later ones are not stored. */
const MOST_OWNERS = 16

/** A token that calls back new partitions becomes an owner of the task, in addition to the others. */
export function withOwner(owners: readonly string[], owner: string | null): readonly string[] {
  const isNew = owner !== null && owners.length < MOST_OWNERS && !owners.includes(owner)
  return isNew ? [...owners, owner] : owners
}

/** Whether a repeated partition has the same content as the first one. */
export function isSamePartition(a: CalledBackPartition, b: CalledBackPartition): boolean {
  return (
    a.recordCount === b.recordCount &&
    a.computeTableName === b.computeTableName &&
    a.spelling === b.spelling &&
    optionalFields.every((field) => isSameText(field, a[field] ?? null, b[field] ?? null))
  )
}
