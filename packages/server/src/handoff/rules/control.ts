import type { TooManyLanes } from './open-work-limits.ts'
import {
  changedSettings,
  isMaxBackoffShorter,
  type LeaseSetting,
  type TaskSettings,
  type TaskSettingsChange,
} from './policy.ts'
import type { Requester } from './stamps.ts'
import { exists, isDone, type MutableTask, type TaskState, totalOf } from './task.ts'

/** In bounded steps. All except a retry with `done` are idempotent. */
export type ControlRequest = (
  | FlagControl
  | SettingsControl
  | { readonly verb: 'skip-parked'; readonly taskId: string }
  | RetryControl
) & {
  /** Only with the first step of a request. */
  readonly by?: Requester | undefined
}

/** Requests that change only the task itself. */
type FlagControl =
  | { readonly verb: 'pause' | 'resume' | 'cancel'; readonly taskId: string }
  | { readonly verb: 'level-barrier'; readonly taskId: string; readonly enabled: boolean }
  | { readonly verb: 'seal'; readonly taskId: string; readonly expectedPartitions: number | null }
  | { readonly verb: 'owner'; readonly taskId: string; readonly name: string }

/** Also allowed before the first call-back of the task. */
export interface SettingsControl {
  readonly verb: 'settings'
  readonly taskId: string
  readonly settings: TaskSettingsChange
}

export interface RetryControl {
  readonly verb: 'retry'
  readonly taskId: string
  readonly level: number | null
  readonly partitions: readonly { readonly level: number; readonly index: number }[] | null
  /** Also rerun done partitions. This must be requested explicitly. */
  readonly done: boolean
  /** Only parked partitions whose last failure is of this group. */
  readonly reason?: string
  /** Of a further step: the level where the one before ended. */
  readonly from?: number
}

export type ControlResult =
  | { readonly kind: 'task_unknown' }
  | { readonly kind: 'task_cancelled' | 'task_sealed' | 'task_finished' | 'task_purged' }
  /** A retry of a level on which nothing was ever called back. */
  | { readonly kind: 'level_unknown' }
  | { readonly kind: 'partitions_unknown'; readonly positions: readonly number[] }
  /** A retry of a group of failures that the task does not have. */
  | { readonly kind: 'reason_unknown' }
  /** A seal that expects fewer partitions than were called back. */
  | { readonly kind: 'more_are_known'; readonly known: number }
  /** A retry, while there are as many lanes as there may be. */
  | TooManyLanes
  /** In at-most-once delivery. */
  | { readonly kind: 'needs_leases'; readonly setting: LeaseSetting }
  /** With the settings, the maximum back-off of the task would be less than the first one. */
  | { readonly kind: 'backoff_max_shorter' }
  | {
      readonly kind: 'applied'
      readonly state: TaskState
      /** For a change of settings: the settings of the task, and whether it has a barrier. */
      readonly settings?: TaskSettings | null
      readonly levelBarrier?: boolean
      /** The number of partitions changed by this step. For flags, 1 if the task changed. */
      readonly changed: number
      readonly newlyReady: number
      /** By task and table. Null or absent if unknown. */
      readonly newlyReadyOf?:
        | readonly (readonly [task: string | null, table: string | null, count: number])[]
        | null
      /** The request is in effect, but needs another step. */
      readonly more: boolean
      /** Where the next step of a retry begins. */
      readonly next?: number
    }

/** `task` may have settings only, or nothing yet: settings are stored before the first call-back, too. */
export function refusalOfControl(
  task: MutableTask | undefined,
  request: ControlRequest,
): ControlResult | undefined {
  if (task?.cancelled === true && request.verb !== 'cancel') return { kind: 'task_cancelled' }
  if (request.verb === 'settings') {
    const settings = changedSettings(task?.settings ?? null, request.settings)
    return isMaxBackoffShorter(settings) ? { kind: 'backoff_max_shorter' } : undefined
  }
  if (task === undefined || !exists(task)) return { kind: 'task_unknown' }
  switch (request.verb) {
    case 'pause':
    case 'cancel':
    case 'skip-parked':
      return isDone(task) ? { kind: 'task_finished' } : undefined
    case 'seal': {
      const known = totalOf(task.partitions)
      return (request.expectedPartitions ?? known) < known ? { kind: 'more_are_known', known } : undefined
    }
    case 'retry':
      if (request.reason !== undefined && !(task.failures ?? []).some(({ key }) => key === request.reason))
        return { kind: 'reason_unknown' }
      if (request.done && task.sealed && isDone(task)) return { kind: 'task_sealed' }
      return request.done && task.purgedAt !== null ? { kind: 'task_purged' } : undefined
    case 'resume':
    case 'level-barrier':
    case 'owner':
      return undefined
  }
}

/** The request for the step after one that needs another. */
export function nextStep(request: ControlRequest, { next }: { readonly next?: number }): ControlRequest {
  const { by: _by, ...step } = request
  return step.verb === 'retry' && next !== undefined ? { ...step, from: next } : step
}
