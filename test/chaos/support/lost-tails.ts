import type { Exchange } from './asking.ts'
import { History, type SeenLease } from './history.ts'
import type { Span } from './order-checks.ts'
import { ProducedTask } from './produced-task.ts'

/**
 * What is left of a history when a database came back without its last commits. What was answered in such a time may be lost
 * or not, so it counts as if it had not been answered. What was sent still counts as sent.
 *
 * What holds nevertheless is found in what is left: leases that the new primary knows exclude each other, what was done
 * before stays done, keys that were answered before are kept. That names and descriptors are right holds for every answer,
 * and is checked in the whole history.
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
