import type { TableSettings } from '@baton/protocol'
import type { PauseAfterFailures } from './failure-window.ts'

/** The settings that an operator chooses, and the arithmetic that depends only on them. */
export interface Policy {
  readonly delivery: 'at-least-once' | 'at-most-once'
  readonly leaseMillis: number
  readonly leaseMillisPerThousandRecords: number
  readonly maxAttempts: number
  readonly backoffMillis: number
  readonly backoffMaxMillis: number
  readonly levelBarrier: boolean
}

const HOUR = 3_600_000

export const LEASE_MAX_MILLIS = 12 * HOUR

/** How long the record of a pull's Idempotency-Key is kept after its last lease ends. */
export const KEY_GRACE_MILLIS = 600_000

/** This many releases in a row return a partition immediately. Further ones wait for a back-off. */
const RELEASES_WITHOUT_BACKOFF = 2

/** Expiry pauses after an outage, so that it does not use up an attempt of every lease. */
const EXPIRY_GRACE_MAX_MILLIS = 60_000

export function expiryGraceMillis(policy: Policy): number {
  return Math.min(policy.leaseMillis, EXPIRY_GRACE_MAX_MILLIS)
}

/** A worker renews several times in a lease, so silence for this share of it is significant. */
export const SILENT_SHARE = 0.8

export function leaseMillis(policy: Policy, recordCount: number): number {
  const length = policy.leaseMillis + (policy.leaseMillisPerThousandRecords * recordCount) / 1000
  return Math.round(Math.min(length, LEASE_MAX_MILLIS))
}

/**
 * The fencing token of the next lease of a partition, given that of its latest one. It is larger even if the
 * clock was set back. Because of the time, it is also larger than tokens that a restored backup or a new store
 * does not know.
 */
export function nextFencingToken(latest: number | null, now: number): number {
  return latest === null ? now : Math.max(latest + 1, now)
}

/** Doubles with each attempt. Jitter: what failed together does not return together. */
export function backoffMillis(policy: Policy, attemptsUsed: number, random: number): number {
  const doublings = Math.min(Math.max(attemptsUsed - 1, 0), 40)
  const full = Math.min(policy.backoffMillis * 2 ** doublings, policy.backoffMaxMillis)
  return Math.round(full * (0.5 + 0.5 * random))
}

export function releaseBackoffMillis(policy: Policy, releases: number, random: number): number {
  const beyond = releases - RELEASES_WITHOUT_BACKOFF
  return beyond <= 0 ? 0 : backoffMillis(policy, beyond, random)
}

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
  readonly pauseAfterFailures?: PauseAfterFailures
}

/** Also of the level barrier. Absent: stays as it is. Null: back to the value of the service. */
export type TaskSettingsChange = { readonly [Name in keyof TaskSettings]: TaskSettings[Name] | null } & {
  readonly levelBarrier?: boolean | null
}

/** The first of these settings that needs leases, which there are none of in at-most-once delivery. */
export function settingThatNeedsLeases({
  levelBarrier,
  maxLeases,
  pauseAfterFailures,
}: TaskSettingsChange): LeaseSetting | undefined {
  // A level would be finished before any work on it is.
  if (levelBarrier === true) return 'levelBarrier'
  if (typeof maxLeases === 'number') return 'maxLeases'
  return pauseAfterFailures == null ? undefined : 'pauseAfterFailures'
}

export type LeaseSetting = 'levelBarrier' | 'maxLeases' | 'pauseAfterFailures'

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

export type { TableSettings }

export const NO_TABLE_SETTINGS: TableSettings = { maxLeases: null, paused: false }

interface LeasedTable {
  readonly settings: TableSettings
  readonly leases: number
}

export const isTableAtLimit = ({ settings: { maxLeases }, leases }: LeasedTable): boolean =>
  maxLeases !== null && leases >= maxLeases

/** Whether nothing of the table may be handed out. */
export const isTableBlocked = (table: LeasedTable): boolean => table.settings.paused || isTableAtLimit(table)

/** The settings of a task after a change. Null if nothing is set. */
export function changedSettings(
  settings: TaskSettings | null,
  { levelBarrier: _barrier, ...change }: TaskSettingsChange,
): TaskSettings | null {
  const set = Object.entries({ ...settings, ...change }).filter(([, value]) => value != null)
  return set.length === 0 ? null : Object.fromEntries(set)
}

/** Only if it has both: one that is not set has the value of the service, which may change. */
export function isMaxBackoffShorter(settings: TaskSettings | null): boolean {
  const { backoffMillis, backoffMaxMillis } = settings ?? {}
  return backoffMillis !== undefined && backoffMaxMillis !== undefined && backoffMaxMillis < backoffMillis
}

export function changedBarrier(policy: Policy, hasBarrier: boolean, change: TaskSettingsChange): boolean {
  const { levelBarrier = hasBarrier } = change
  return levelBarrier ?? policy.levelBarrier
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
  return names.every((name) => a?.[name] === b?.[name]) && pausesAlike(a, b)
}

/** Whether both pause after the same failures. */
export function pausesAlike(a: TaskSettings | null, b: TaskSettings | null): boolean {
  const [one, other] = [a?.pauseAfterFailures, b?.pauseAfterFailures]
  return one?.share === other?.share && one?.of === other?.of
}
