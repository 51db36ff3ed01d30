import type { CalledBackPartition } from '@baton/protocol'
import { totalOf } from './tally.ts'
import type { TaskEntry } from './task-entry.ts'

export type CallBackRefusal =
  | { readonly kind: 'task_cancelled' | 'task_sealed' | 'record_total_too_large' }
  /** It would seal the task with fewer partitions than there are then. */
  | { readonly kind: 'more_are_known'; readonly known: number }
  /** It brings nothing new, and would seal a task that others called back. */
  | { readonly kind: 'not_own' }

/** Why a task takes no new partitions with so many records; undefined if it does. Repeated ones are never refused. */
export function refusalOfNew(task: TaskEntry, records: number): CallBackRefusal | undefined {
  if (task.cancelled) return { kind: 'task_cancelled' }
  if (task.sealed) return { kind: 'task_sealed' }
  return Number.isSafeInteger(totalOf(task.records) + records)
    ? undefined
    : { kind: 'record_total_too_large' }
}

/** What a call-back that also seals says, and what it brings. */
export interface SealingCallBack {
  readonly partitions: number | null
  readonly owner: string | null
  readonly accepted: number
}

/** Why a call-back may not seal its task; undefined if it may. */
export function refusalOfSeal(
  task: TaskEntry | undefined,
  { partitions, owner, accepted }: SealingCallBack,
): CallBackRefusal | undefined {
  if (task?.cancelled === true) return { kind: 'task_cancelled' }
  if (task !== undefined && accepted === 0 && owner !== null && !task.owners.includes(owner))
    return { kind: 'not_own' }
  const known = (task === undefined ? 0 : totalOf(task.partitions)) + accepted
  return (partitions ?? known) < known ? { kind: 'more_are_known', known } : undefined
}

/** Names kept per task; those of later ones are not. */
const MOST_OWNERS = 16

/** Whoever brings something new owns the task from then on, beside the others. */
export function withOwner(owners: readonly string[], owner: string | null): readonly string[] {
  const isNew = owner !== null && owners.length < MOST_OWNERS && !owners.includes(owner)
  return isNew ? [...owners, owner] : owners
}

/** Whether what is called back again says the same as the first time. */
export function isSamePartition(a: CalledBackPartition, b: CalledBackPartition): boolean {
  return (
    a.recordCount === b.recordCount &&
    a.computeTableName === b.computeTableName &&
    a.spelling === b.spelling &&
    isSameJson(a.extraFields ?? null, b.extraFields ?? null)
  )
}

/** The members of an object have no order. */
export function isSameJson(a: string | null, b: string | null): boolean {
  return a === b || (a !== null && b !== null && inOrder(a) === inOrder(b))
}

function inOrder(text: string): string {
  const sorted = (_key: string, value: unknown) =>
    typeof value === 'object' && value !== null && !Array.isArray(value)
      ? Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1))
      : value
  return JSON.stringify(JSON.parse(text), sorted)
}
