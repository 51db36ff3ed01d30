import type { Policy } from './policy.ts'

/** Settings of one task. Absent values default to those of the service. */
export interface TaskSettings {
  readonly leaseMillis?: number
  readonly maxAttempts?: number
  readonly backoffMillis?: number
  readonly backoffMaxMillis?: number
  /** The maximum number of its partitions that are leased at a time. */
  readonly maxLeases?: number
  /** Its share relative to other tasks: the cost of its partitions in the order is divided by it. */
  readonly weight?: number
}

/** Settings and the level barrier, which also has its own order. If absent, the barrier stays as it is. */
export interface TaskSettingsChange extends TaskSettings {
  readonly levelBarrier?: boolean
}

interface HasSettings {
  readonly settings: TaskSettings | null
}

export function policyOf(policy: Policy, { settings }: HasSettings): Policy {
  return settings === null ? policy : { ...policy, ...settings }
}

export const weightOfTask = ({ settings }: HasSettings): number => settings?.weight ?? 1

/** Whether the task has as many leases as it may have. */
export function isAtLimit({
  settings,
  partitions,
}: HasSettings & { readonly partitions: { readonly leased: number } }): boolean {
  return settings?.maxLeases !== undefined && partitions.leased >= settings.maxLeases
}

/** Null if nothing is set. */
export function settingsOf({ levelBarrier: _barrier, ...settings }: TaskSettingsChange): TaskSettings | null {
  return Object.keys(settings).length === 0 ? null : settings
}

export function areSame(a: TaskSettings | null, b: TaskSettings | null): boolean {
  const names = [
    'leaseMillis',
    'maxAttempts',
    'backoffMillis',
    'backoffMaxMillis',
    'maxLeases',
    'weight',
  ] as const
  return names.every((name) => a?.[name] === b?.[name])
}
