import type { TaskState } from './task-facts.ts'
import type { TaskSettings, TaskSettingsChange } from './task-settings.ts'

/**
 * What an operator can ask of a task. Each order does a bounded step at a time, and each but a retry with `done` is
 * idempotent.
 */
export type ControlOrder =
  | FlagOrder
  | SettingsOrder
  | { readonly verb: 'skip-parked'; readonly taskId: string }
  | RetryOrder

/** What is said of the task as a whole. */
export type FlagOrder =
  | { readonly verb: 'pause' | 'resume' | 'cancel'; readonly taskId: string }
  | { readonly verb: 'level-barrier'; readonly taskId: string; readonly enabled: boolean }
  | { readonly verb: 'seal'; readonly taskId: string; readonly expectedPartitions: number | null }

/** Also of a task that nothing was called back of yet. */
export interface SettingsOrder {
  readonly verb: 'settings'
  readonly taskId: string
  readonly settings: TaskSettingsChange
}

export interface RetryOrder {
  readonly verb: 'retry'
  readonly taskId: string
  readonly level: number | null
  readonly partitions: readonly { readonly level: number; readonly index: number }[] | null
  /** Also run finished partitions again: never unless asked for in so many words. */
  readonly done: boolean
}

export type ControlResult =
  | { readonly kind: 'task_unknown' }
  | { readonly kind: 'task_cancelled' | 'task_sealed' | 'task_finished' | 'task_purged' }
  /** A retry of a level on which nothing was ever called back. */
  | { readonly kind: 'level_unknown' }
  | { readonly kind: 'partitions_unknown'; readonly positions: readonly number[] }
  /** A seal that expects fewer partitions than were called back. */
  | { readonly kind: 'more_are_known'; readonly known: number }
  /** Where handing out is settling, a level is finished before any work on it is. */
  | { readonly kind: 'barrier_without_leases' }
  | {
      readonly kind: 'applied'
      readonly state: TaskState
      /** What was set for the task, and whether it has a barrier, where settings were ordered. */
      readonly settings?: TaskSettings | null
      readonly levelBarrier?: boolean
      /** Partitions (or, for flags, the task) that this step changed. */
      readonly changed: number
      readonly readied: number
      /** Of which tasks and tables; null or absent: it may be anything. */
      readonly readiedOf?: readonly (readonly [task: string, table: string | null, count: number])[] | null
      /** The order is in force, but a further step has to follow. */
      readonly more: boolean
    }
