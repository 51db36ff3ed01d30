import type { Findings } from './findings.ts'
import { givenUpAt, type History, type SeenPull, story } from './history.ts'
import { ROUNDING_MILLIS } from './lease-invariants.ts'

/** A pull gives what was called back, no more than asked for, and with a key the same again. */
export function checkPulls(history: History, findings: Findings): void {
  for (const pull of history.pulls) checkPull(pull, history, findings)
  for (const [key, pulls] of history.keys) checkKey(key, pulls, history, findings)
}

function checkPull(
  { batch, leases, partitions, node }: SeenPull,
  history: History,
  findings: Findings,
): void {
  if (partitions.length > batch) findings.add(`${node} was asked for ${batch} and gave ${partitions.length}`)
  if (new Set(leases.map(({ id }) => id)).size < partitions.length)
    findings.add(`${node} gave a partition twice in one answer`)
  for (const { lease: _, ...given } of partitions) {
    const calledBack = history.tasks.get(given.taskId)?.partitions.get(given.partition_name)
    const isSame =
      calledBack?.computeTableName === given.computeTableName &&
      calledBack.record_count === given.record_count &&
      calledBack.priorityLevel === given.priorityLevel
    if (!isSame) findings.add(`${JSON.stringify(given)} was given, ${JSON.stringify(calledBack)} called back`)
  }
}

function checkKey(key: string, pulls: readonly SeenPull[], history: History, findings: Findings): void {
  const all = [...new Set(pulls.flatMap(({ leases }) => leases))]
  for (const lease of all)
    if (lease.key !== key) findings.add(`key ${key} gave a lease of somebody else: ${story(lease)}`)
  // What a key takes it takes in one transaction, and so at one time.
  if (new Set(all.map(({ claimedAt }) => claimedAt)).size > 1)
    findings.add(`key ${key} has taken more than once: ${all.map(story).join(' | ')}`)
  const inOrder = pulls.toSorted((a, b) => a.receivedAt - b.receivedAt)
  for (const [position, first] of inOrder.entries())
    for (const second of inOrder.slice(position + 1))
      if (mustBeAlike(first, second, history) && idsOf(first) !== idsOf(second))
        findings.add(
          `key ${key} gave ${idsOf(first) || 'nothing'} (${first.sentAt} to ${first.receivedAt}), then ` +
            `${idsOf(second) || 'nothing'} (${second.sentAt} to ${second.receivedAt}): ${all.map(story).join(' | ')}`,
        )
}

/** While all leases live. An empty answer is not remembered, so one that was under way at the same time may differ. */
function mustBeAlike(first: SeenPull, second: SeenPull, { tasks, leaseMillis }: History): boolean {
  const leases = [...first.leases, ...second.leases]
  const isEmpty = first.leases.length === 0 || second.leases.length === 0
  if (isEmpty && (first.leases.length === 0 || second.sentAt <= first.receivedAt)) return false
  return leases.every((lease) => {
    const isCancelled = tasks.get(lease.partition.taskId)?.cancelSentAt !== undefined
    const endsAt = Math.min(givenUpAt(lease), lease.claimedAt + leaseMillis)
    return !isCancelled && second.receivedAt < endsAt - ROUNDING_MILLIS
  })
}

function idsOf({ leases }: SeenPull): string {
  return leases
    .map(({ id }) => id)
    .toSorted()
    .join()
}
