import type { InstanceStatus, InstanceTotals } from '@baton/protocol'
import type { FleetRoute, FleetSort } from '../route.ts'

/** A worker with what tells a bad host from the others. */
export interface FleetMember {
  readonly instance: InstanceStatus
  /** Records taken per second, since it was first seen; null if it has not pulled for long enough. */
  readonly pace: number | null
  /** The share of its ended attempts that failed or expired; null if too few have ended. */
  readonly failed: number | null
  readonly isBad: boolean
}

export interface Fleet {
  readonly members: readonly FleetMember[]
  readonly medianFailed: number | null
  readonly medianPace: number | null
}

const FEWEST_ATTEMPTS = 5
const SHORTEST_SECONDS = 10

/** A host is bad if it fails more than twice as often as the median, and by at least ten per cent. */
const isFarAbove = (failed: number | null, median: number | null): boolean =>
  failed !== null && median !== null && failed > Math.max(2 * median, median + 0.1)

export const failedAttempts = ({ failed, expired }: InstanceTotals): number => failed + expired

export function fleetOf(instances: readonly InstanceStatus[]): Fleet {
  const measured = instances.map((instance) => ({
    instance,
    pace: paceOf(instance),
    failed: failedShare(instance),
  }))
  const medianFailed = medianOf(measured.map(({ failed }) => failed))
  const medianPace = medianOf(measured.map(({ pace }) => pace))
  const members = measured.map((one) => ({ ...one, isBad: isFarAbove(one.failed, medianFailed) }))
  return { members, medianFailed, medianPace }
}

function paceOf({ totals, firstSeenAt, lastSeenAt }: InstanceStatus): number | null {
  const seconds = (Date.parse(lastSeenAt) - Date.parse(firstSeenAt)) / 1000
  return totals.pulls === 0 || seconds < SHORTEST_SECONDS ? null : totals.records / seconds
}

function failedShare({ totals }: InstanceStatus): number | null {
  const failed = failedAttempts(totals)
  const ended = totals.done + failed
  return ended < FEWEST_ATTEMPTS ? null : failed / ended
}

function medianOf(values: readonly (number | null)[]): number | null {
  const known = values.filter((value) => value !== null).sort((a, b) => a - b)
  return known[Math.floor((known.length - 1) / 2)] ?? null
}

const keys: Readonly<Record<Exclude<FleetSort, 'name'>, (member: FleetMember) => number>> = {
  failed: ({ failed, isBad }) => (isBad ? 1 : 0) + (failed ?? -1),
  pace: ({ pace }) => pace ?? -1,
  leases: ({ instance }) => instance.leases,
}

/** The members that match, in order; the largest first. */
export function chosenMembers({ members }: Fleet, { search, status, sort }: FleetRoute): FleetMember[] {
  const matching = members.filter(
    ({ instance }) => instance.instanceId.includes(search) && (status === null || instance.status === status),
  )
  const byName = (a: FleetMember, b: FleetMember) => (a.instance.instanceId < b.instance.instanceId ? -1 : 1)
  if (sort === 'name') return matching.sort(byName)
  const key = keys[sort]
  return matching.sort((a, b) => key(b) - key(a) || byName(a, b))
}
