import {
  doneAt,
  givenUpAt,
  type History,
  isAccepted,
  leasesByPartition,
  type SeenLease,
  story,
} from './history.ts'
import type { Findings } from './scene.ts'

/** Times are rounded on the wire. */
export const ROUNDING_MILLIS = 5

/**
 * A partition has at most one valid lease and is done at most once, and no lease is lost before it expires. Fencing
 * tokens grow, and the next lease carries the last checkpoint.
 */
export function checkLeases(history: History, findings: Findings): void {
  for (const leases of leasesByPartition(history).values()) {
    for (const [position, earlier] of leases.entries())
      for (const later of leases.slice(position + 1)) checkPair(earlier, later, findings)
    const done = leases.filter((lease) => doneAt(lease) !== undefined)
    if (done.length > 1) findings.add(`done under several leases: ${done.map(story).join(' | ')}`)
  }
  for (const lease of history.leases.values()) checkRefusals(lease, history, findings)
}

function checkPair(earlier: SeenLease, later: SeenLease, findings: Findings): void {
  const add = (what: string) => findings.add(`${what}: ${story(earlier)} | ${story(later)}`)
  if (earlier.leaseNumber === later.leaseNumber) add('two leases of one number')
  if (later.receivedAt < earlier.claimedAt) add('a later lease was given earlier')
  if (tokenOf(later) <= tokenOf(earlier)) add('a fencing token did not grow')
  if (
    later.leaseNumber === earlier.leaseNumber + 1 &&
    hasSaved(earlier) &&
    checkpointOf(later) !== earlier.id
  )
    add(`the checkpoint of ${earlier.id} was followed by ${checkpointOf(later)}`)
  // The later lease was taken at the latest when it was received, so the earlier one was still valid.
  const isLive = earlier.runs.some(({ until }) => later.receivedAt < until - ROUNDING_MILLIS)
  if (isLive && later.receivedAt < givenUpAt(earlier)) add('two live leases')
  if (earlier.runs.some(({ from }) => from > later.receivedAt + ROUNDING_MILLIS))
    add('renewed after it was superseded')
  const earlierDoneAt = doneAt(earlier)
  if (earlierDoneAt !== undefined && later.claimedAt > earlierDoneAt + ROUNDING_MILLIS)
    add('handed out again after it was done')
}

const tokenOf = ({ partition }: SeenLease): number => partition.lease?.fencingToken ?? 0

const checkpointOf = ({ partition }: SeenLease): string | undefined => partition.lease?.checkpoint

/** Its worker saved a checkpoint, which is its id. A newer lease would have refused that. */
const hasSaved = ({ settlements }: SeenLease): boolean =>
  settlements.some((one) => one.outcome !== 'done' && isAccepted(one))

function checkRefusals(lease: SeenLease, history: History, findings: Findings): void {
  const task = history.tasks.get(lease.partition.taskId)
  for (const { refusal, receivedAt } of [...lease.settlements, ...lease.renewals]) {
    if (refusal === null) continue
    const add = () => findings.add(`refused as ${refusal}: ${story(lease)}`)
    if (refusal === 'lease_unknown') add()
    if (refusal === 'task_cancelled' && task?.cancelSentAt === undefined) add()
    if (refusal === 'lease_settled' && !mayBeSettled(lease)) add()
    const isRunning = lease.runs.some(({ until }) => receivedAt < until - ROUNDING_MILLIS)
    if (refusal === 'lease_lost' && isRunning && receivedAt < givenUpAt(lease)) add()
  }
  const isDone = doneAt(lease) !== undefined
  const wasRefused = lease.settlements.some((one) => one.outcome === 'done' && !isAccepted(one))
  if (isDone && wasRefused) findings.add(`done was both accepted and refused: ${story(lease)}`)
}

/** Settled by another outcome, or, for a later renewal, by any outcome. */
function mayBeSettled({ sentAt, renewals }: SeenLease): boolean {
  const outcomes = Object.keys(sentAt).length
  return outcomes > 1 || (outcomes > 0 && renewals.some(({ refusal }) => refusal === 'lease_settled'))
}
