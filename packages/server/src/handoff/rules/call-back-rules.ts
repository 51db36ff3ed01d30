import { type CalledBackPartition, optionalFields } from '@baton/protocol'
import { changedSettings, isMaxBackoffShorter, type TaskSettingsChange } from './policy.ts'
import { type MutableTask, totalOf } from './task.ts'

export type CallBackRefusal =
  | { readonly kind: 'task_cancelled' | 'task_sealed' | 'record_total_too_large' }
  /** With its settings, the maximum back-off of the task would be less than the first one. */
  | { readonly kind: 'backoff_max_shorter' }
  /** It would seal the task with fewer partitions than are known. */
  | { readonly kind: 'more_are_known'; readonly known: number }
  /** The task belongs to another token. */
  | { readonly kind: 'not_own' }

/** Why a task refuses new partitions; undefined if it accepts them. Repeated ones are never refused. */
export function refusalOfNew(task: MutableTask, records: number): CallBackRefusal | undefined {
  if (task.cancelled) return { kind: 'task_cancelled' }
  if (task.sealed) return { kind: 'task_sealed' }
  return Number.isSafeInteger(totalOf(task.records) + records)
    ? undefined
    : { kind: 'record_total_too_large' }
}

interface ChangingCallBack {
  readonly declared: number | null
  readonly accepted: number
  readonly settings: TaskSettingsChange | null
}

/** Why a call-back may not seal its task or change its settings; undefined if it may. */
export function refusalOfChange(
  task: MutableTask | undefined,
  { declared, accepted, settings }: ChangingCallBack,
): CallBackRefusal | undefined {
  if (task?.cancelled === true) return { kind: 'task_cancelled' }
  if (settings !== null && isMaxBackoffShorter(changedSettings(task?.settings ?? null, settings)))
    return { kind: 'backoff_max_shorter' }
  const known = (task === undefined ? 0 : totalOf(task.partitions)) + accepted
  return (declared ?? known) < known ? { kind: 'more_are_known', known } : undefined
}

/** It belongs to the token that first called it back or was given it. Without tokens: to nobody. */
export function isOfAnother(owners: readonly string[], name: string): boolean {
  const [owner = name] = owners
  return owner !== name
}

/** The maximum number of names kept per task. Later ones are not stored. */
const MOST_OWNERS = 16

/** A token that calls back new partitions is added to the names. The first one is the owner of the task. */
export function withOwner(owners: readonly string[], owner: string | null): readonly string[] {
  const isNew = owner !== null && owners.length < MOST_OWNERS && !owners.includes(owner)
  return isNew ? [...owners, owner] : owners
}

/** What must be the same when a partition is called back again. Its level and index identify it. */
const contentFields = ['spelling', 'recordCount', 'computeTableName', ...optionalFields] as const
export type ContentField = (typeof contentFields)[number]

/** Whether a repeated partition has the same content as the first one. */
export function isSamePartition(a: CalledBackPartition, b: CalledBackPartition): boolean {
  return contentFields.every((field) => isSameField(field, a, b))
}

export function differingFields(a: CalledBackPartition, b: CalledBackPartition): ContentField[] {
  return contentFields.filter((field) => !isSameField(field, a, b))
}

function isSameField(field: ContentField, a: CalledBackPartition, b: CalledBackPartition): boolean {
  const one = a[field] ?? null
  const other = b[field] ?? null
  if (field !== 'extraFields' || one === null || other === null) return one === other
  // Extra fields are JSON, and the order of object members does not matter.
  return one === other || inOrder(String(one)) === inOrder(String(other))
}

function inOrder(text: string): string {
  const sorted = (_key: string, value: unknown) =>
    typeof value === 'object' && value !== null && !Array.isArray(value)
      ? Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1))
      : value
  return JSON.stringify(JSON.parse(text), sorted)
}
