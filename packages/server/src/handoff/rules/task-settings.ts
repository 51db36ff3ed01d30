import type { Policy } from './policy.ts'

/** What was set for one task. What is absent is as the service is set. */
export interface TaskSettings {
  readonly leaseMillis?: number
  readonly maxAttempts?: number
  readonly backoffMillis?: number
  readonly backoffMaxMillis?: number
  /** The most of its partitions that are leased at a time. */
  readonly maxLeases?: number
  /** Its share against other tasks: what its partitions cost in the order is divided by it. */
  readonly weight?: number
}

/** Settings and the level barrier, which has an order of its own; absent: it stays as it is. */
export interface TaskSettingsChange extends TaskSettings {
  readonly levelBarrier?: boolean
}

interface Settled {
  readonly settings: TaskSettings | null
}

export function policyOf(policy: Policy, { settings }: Settled): Policy {
  return settings === null ? policy : { ...policy, ...settings }
}

export const weightOfTask = ({ settings }: Settled): number => settings?.weight ?? 1

/** Whether as many of its partitions are leased as may be. */
export function isAtLimit({
  settings,
  partitions,
}: Settled & { readonly partitions: { readonly leased: number } }): boolean {
  return settings?.maxLeases !== undefined && partitions.leased >= settings.maxLeases
}

/** Null where nothing is set. */
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
