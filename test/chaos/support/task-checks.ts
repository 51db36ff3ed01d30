import { doneAt, type History, type SeenLease, story } from './history.ts'
import { ROUNDING_MILLIS } from './lease-checks.ts'
import type { ProducedTask } from './produced-task.ts'
import type { Findings } from './scene.ts'

/** When each partition was done, by name. */
export type DoneTimes = ReadonlyMap<string, number>

/**
 * Control requests hold for every pull after their answer, and levels wait for each other where there is a
 * barrier.
 */
export function checkTasks(history: History, doneTimes: DoneTimes, findings: Findings): void {
  const ofTask = Map.groupBy(history.leases.values(), ({ partition }) => partition.taskId)
  for (const task of history.tasks.values()) {
    const leases = ofTask.get(task.taskId) ?? []
    for (const lease of leases) checkOrders(task, lease, findings)
    if (task.hasBarrier && task.cancelSentAt === undefined) checkBarrier(task, leases, doneTimes, findings)
  }
}

function checkOrders({ pauses, cancelledAt }: ProducedTask, lease: SeenLease, findings: Findings): void {
  const isTakenAfter = (time: number) => lease.claimedAt > time + ROUNDING_MILLIS
  for (const { from, until } of pauses)
    if (isTakenAfter(from) && lease.receivedAt < until)
      findings.add(`handed out while its task was paused, ${from} to ${until}: ${story(lease)}`)
  if (cancelledAt === undefined) return
  if (isTakenAfter(cancelledAt))
    findings.add(`handed out after its task was cancelled at ${cancelledAt}: ${story(lease)}`)
  const saidAt = lease.sentAt.done ?? Number.POSITIVE_INFINITY
  if (doneAt(lease) !== undefined && saidAt > cancelledAt + ROUNDING_MILLIS)
    findings.add(`done after its task was cancelled at ${cancelledAt}: ${story(lease)}`)
}

function checkBarrier(
  { taskId, partitions }: ProducedTask,
  leases: readonly SeenLease[],
  doneTimes: DoneTimes,
  findings: Findings,
): void {
  const finished = new Map<number, number>()
  for (const { partition_name, priorityLevel } of partitions.values())
    finished.set(
      priorityLevel,
      Math.max(finished.get(priorityLevel) ?? 0, doneTimes.get(partition_name) ?? Number.POSITIVE_INFINITY),
    )
  for (const lease of leases) {
    const lower = [...finished].filter(([level]) => level < lease.partition.priorityLevel)
    const openedAt = Math.max(0, ...lower.map(([, time]) => time))
    if (lease.receivedAt < openedAt - ROUNDING_MILLIS)
      findings.add(`lower levels of ${taskId} were finished at ${openedAt}: ${story(lease)}`)
  }
}
