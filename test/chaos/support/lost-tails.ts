import type { Exchange } from './checked-client.ts'
import { History, type SeenLease } from './history.ts'
import type { Span } from './order-checks.ts'
import { ProducedTask } from './produced-task.ts'

/**
 * The history without the answers of periods whose commits a database may have lost. Such an answer counts as
 * if it had not been received, since its effect may be lost or not. Requests still count as sent.
 *
 * The remaining history still has to satisfy the checks: leases that the new primary knows exclude each
 * other, what was done before stays done, and keys that were answered before are kept. Names and descriptors
 * must be right in every answer and are checked in the whole history.
 */
export function withoutLostTails(history: History, tails: readonly Span[]): History {
  if (tails.length === 0) return history
  const isKept = ({ sentAt, receivedAt }: Exchange) =>
    tails.every(({ from, until }) => receivedAt < from || sentAt > until)
  const left = new History(history.leaseMillis)
  for (const task of history.tasks.values()) left.tasks.set(task.taskId, keptTask(task, isKept))
  const kept = new Map<SeenLease, SeenLease>()
  for (const pull of history.pulls.filter(isKept)) {
    for (const lease of pull.leases) {
      const known = kept.get(lease) ?? { ...keptLease(lease, isKept), receivedAt: pull.receivedAt }
      known.receivedAt = Math.min(known.receivedAt, pull.receivedAt)
      kept.set(lease, known)
      left.leases.set(lease.id, known)
    }
    left.pulls.push({ ...pull, leases: pull.leases.map((lease) => kept.get(lease) ?? lease) })
  }
  return left
}

type IsKept = (exchange: Exchange) => boolean

function keptLease(lease: SeenLease, isKept: IsKept): SeenLease {
  return {
    ...lease,
    runs: lease.runs.filter(({ said }) => isKept(said)),
    settlements: lease.settlements.filter(isKept),
    renewals: lease.renewals.filter(isKept),
  }
}

function keptTask(task: ProducedTask, isKept: IsKept): ProducedTask {
  const left = new ProducedTask(task.taskId, task.hasBarrier)
  for (const [name, partition] of task.partitions) left.partitions.set(name, partition)
  for (const { descriptors, sentAt, accepted } of task.arrays) {
    const array = { descriptors, sentAt, accepted: [] }
    left.arrays.push(array)
    for (const exchange of accepted.filter(isKept)) left.answered(array, exchange)
  }
  left.lacksAnswers = true
  left.pauses.push(...task.pauses)
  left.cancelSentAt = task.cancelSentAt
  left.cancelledAt = task.cancelledAt
  return left
}
