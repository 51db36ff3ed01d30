import {
  givenUpAt,
  type History,
  isAccepted,
  leasesByPartition,
  type SeenLease,
  type SeenPull,
  story,
} from './history.ts'
import { ROUNDING_MILLIS } from './lease-checks.ts'
import type { Findings } from './scene.ts'

/** A pull returns partitions that were called back, and no more than requested. */
export function checkPulls({ pulls, tasks }: History, findings: Findings): void {
  for (const { asked, leases, partitions, node } of pulls) {
    if (partitions.length > asked.batch)
      findings.add(`${node} was asked for ${asked.batch} and gave ${partitions.length}`)
    if (new Set(leases.map(({ id }) => id)).size < partitions.length)
      findings.add(`${node} gave a partition twice in one answer`)
    // A repeat may list them in another order, so the last one is at most the largest.
    const counts = partitions.map(({ record_count }) => record_count)
    const withoutLast = counts.reduce((sum, count) => sum + count, 0) - Math.max(0, ...counts)
    if (asked.records !== null && withoutLast >= Math.max(asked.records, 1))
      findings.add(`${node} went on at ${withoutLast} records where ${asked.records} were asked for`)
    for (const { lease: _, ...given } of partitions) {
      const calledBack = tasks.get(given.taskId)?.partitions.get(given.partition_name)
      const isSame =
        calledBack?.computeTableName === given.computeTableName &&
        calledBack.record_count === given.record_count &&
        calledBack.priorityLevel === given.priorityLevel
      if (!isSame)
        findings.add(`${JSON.stringify(given)} was given, ${JSON.stringify(calledBack)} called back`)
    }
  }
}

/**
 * A key takes partitions once. A repeat returns those of its leases that are still valid, never ended and
 * never new ones.
 */
export function checkKeys(history: History, findings: Findings): void {
  const byKey = Map.groupBy(history.pulls, ({ asked }) => asked.key)
  const byPartition = leasesByPartition(history)
  for (const [key, pulls] of byKey) if (key !== null) checkKey(key, pulls)

  function checkKey(key: string, pulls: readonly SeenPull[]): void {
    const all = [...new Set(pulls.flatMap(({ leases }) => leases))]
    for (const lease of all)
      if (lease.asked.key !== key) findings.add(`key ${key} gave a lease of another pull: ${story(lease)}`)
    // A key takes its partitions in one transaction, so at one time.
    if (new Set(all.map(({ claimedAt }) => claimedAt)).size > 1)
      findings.add(`key ${key} has taken more than once: ${all.map(story).join(' | ')}`)
    for (const second of pulls) {
      for (const lease of second.leases) checkEnded(key, lease, second)
      for (const first of pulls) if (first !== second) checkRepeat(key, first, second)
    }
  }

  function checkRepeat(key: string, first: SeenPull, second: SeenPull): void {
    const isLater = second.lastSentAt > first.receivedAt
    const given = new Set(second.leases)
    const tell = (what: string, leases: readonly SeenLease[]) =>
      findings.add(
        `the repeat of key ${key} by ${second.node}, ${second.lastSentAt} to ${second.receivedAt}, ${what}: ` +
          `${leases.slice(0, 3).map(story).join(' | ')}; it was answered before by ${first.node}, ` +
          `${first.lastSentAt} to ${first.receivedAt}`,
      )
    // An empty answer is not remembered, so a concurrent answer may differ.
    const mustHave = isLater || given.size > 0
    const missing = first.leases.filter((lease) => !given.has(lease) && livesDuring(lease, second))
    if (mustHave && missing.length > 0) tell(`lacks ${missing.length} leases that live`, missing)
    if (!isLater || first.leases.length === 0) return
    const known = new Set(first.leases)
    const fresh = second.leases.filter((lease) => !known.has(lease))
    if (fresh.length > 0) tell(`has ${fresh.length} new leases`, fresh)
  }

  function livesDuring(lease: SeenLease, { lastSentAt, receivedAt }: SeenPull): boolean {
    const isCancelled = history.tasks.get(lease.partition.taskId)?.cancelSentAt !== undefined
    if (isCancelled || receivedAt >= givenUpAt(lease)) return false
    return lease.runs.some(
      ({ from, until }) =>
        (from === lease.claimedAt || from < lastSentAt) && receivedAt < until - ROUNDING_MILLIS,
    )
  }

  function checkEnded(key: string, lease: SeenLease, { lastSentAt }: SeenPull): void {
    const isSettled = lease.settlements.some((one) => isAccepted(one) && one.receivedAt < lastSentAt)
    const newer = byPartition
      .get(lease.partition.partition_name)
      ?.find(({ leaseNumber, receivedAt }) => leaseNumber > lease.leaseNumber && receivedAt < lastSentAt)
    if (isSettled || newer !== undefined)
      findings.add(
        `key ${key} gave at ${lastSentAt} or later a lease that had ended: ${story(lease)}` +
          (newer === undefined ? '' : ` | ${story(newer)}`),
      )
  }
}
