import { formatLeaseId } from '../../../packages/server/src/handoff/lease-id.ts'
import type {
  BatchedPull,
  RevokeRequest,
  RevokeResult,
  SweepResult,
} from '../../../packages/server/src/handoff/store.ts'
import { disagree } from './disagreement.ts'
import type { Model } from './model.ts'
import { rerun } from './model-control.ts'
import { type ModelPartition, nameOf } from './model-task.ts'
import type { Truth } from './truth.ts'

// If a store is free to choose, or its answer was lost, the model reads what is durable and accepts only a
// choice that was allowed.

export interface ModelSweep {
  readonly limit: number
  /** Leases that ended later must not expire yet; null: no lease may expire. */
  expiresUpTo: number | null
}

/** Learns which leases and back-offs a sweep ended. */
export function learnSweep(
  model: Model,
  truth: Truth,
  { limit, expiresUpTo }: ModelSweep,
  result: SweepResult | null,
): void {
  const ended = { expired: 0, parked: 0, woken: 0 }
  const due = (partitions: Iterable<ModelPartition>) =>
    [...partitions].filter(({ dueAt }) => dueAt <= model.now).sort((a, b) => a.dueAt - b.dueAt || a.id - b.id)
  const hasLeft = (partition: ModelPartition, state: string) => {
    const row = truth.partition(partition)
    return row !== undefined && (row.status.state !== state || row.status.dueAt !== partition.dueAt)
  }
  const before = due(model.delayed)
  for (const partition of due(model.leased)) {
    if (!hasLeft(partition, 'leased')) continue
    if (expiresUpTo === null || partition.dueAt > expiresUpTo)
      disagree(`${nameOf(partition)} expired during the grace`)
    model.expire(partition)
    ended.expired += 1
    if (partition.place === 'parked') ended.parked += 1
    // Without a back-off it is ready at once.
    else if (partition.place === 'delayed' && partition.dueAt <= model.now) before.push(partition)
  }
  for (const partition of before) {
    if (!hasLeft(partition, 'delayed')) continue
    model.wake(partition)
    if (partition.place === 'waiting') ended.woken += 1
  }
  if (result === null) return
  if (result.expired !== ended.expired || result.parked !== ended.parked)
    disagree(
      `a sweep reports ${result.expired} expired and ${result.parked} parked, not ${JSON.stringify(ended)}`,
    )
  if (ended.expired > limit) disagree(`a sweep with the limit ${limit} ended ${ended.expired} leases`)
}

/**
 * Learns which leases a release ended. It must end as many leases of the instance as its limit allows, and no
 * others.
 */
export function learnRelease(
  model: Model,
  truth: Truth,
  { instanceId, limit }: RevokeRequest,
  result: RevokeResult | null,
): void {
  const held = [...model.leased].filter(({ holder }) => holder === instanceId)
  const taken = held.filter((partition) => truth.partition(partition)?.status.state !== 'leased')
  const expected = Math.min(limit, held.length)
  if (taken.length !== expected)
    disagree(`a release of ${instanceId} ended ${taken.length} leases, and it held ${held.length}`)
  for (const partition of taken) model.revoke(partition)
  for (const partition of model.leased)
    if (truth.partition(partition)?.status.state !== 'leased')
      disagree(`a release of ${instanceId} ended the lease of ${nameOf(partition)}`)
  if (result === null) return
  const parked = taken.filter(({ place }) => place === 'parked').length
  if (result.revoked !== taken.length || result.parked !== parked)
    disagree(
      `a release reports ${result.revoked} leases and ${result.parked} parked, not ${taken.length} and ${parked}`,
    )
}

/** Learns what retention removed and what a rerun made ready, in steps that are not answered yet. */
export function learnSteps(model: Model, truth: Truth, finishedBefore: number): void {
  truth.readAgain()
  for (const task of model.tasks.values()) {
    const isOld = task.finishedAt !== null && task.finishedAt < finishedBefore
    const mayBePurged = isOld && task.counts.leased === 0 && !task.purged
    if (!mayBePurged && !task.rerunning) continue
    const stored = truth.task(task.taskId)
    for (const partition of task.all()) {
      if (partition.purged) continue
      const row = truth.partition(partition)
      if (row === undefined && mayBePurged) {
        partition.purged = true
        task.purged = true
        if (partition.place !== 'done') model.move(partition, 'cancelled')
      } else if (
        partition.place === 'done' &&
        task.rerunning &&
        row !== undefined &&
        row.status.leaseNumber > partition.leaseNumber
      )
        rerun(model, partition)
    }
    if (task.rerunning && stored?.reruns.length === 0) task.rerunning = false
  }
}

/** Learns the leases of pulls whose answer was lost. */
export function learnPulls(model: Model, truth: Truth, pulls: readonly BatchedPull[]): void {
  const found: {
    readonly partition: ModelPartition
    readonly leaseId: string
    readonly holder: string | null
  }[] = []
  for (const { row, lane, task } of truth.leased()) {
    const partition = model.tasks.get(task.taskId)?.find(lane.level, row.index)
    if (partition === undefined) disagree(`${task.taskId}-${lane.level}-${row.index} was never called back`)
    if (row.leaseNumber === partition.leaseNumber) continue
    const leaseId = formatLeaseId({ partition: row.id, leaseNumber: row.leaseNumber, secret: row.secret })
    found.push({ partition, leaseId, holder: row.holder })
    if (row.holder !== null && model.pausedInstances.has(row.holder))
      disagree(`${nameOf(partition)} is leased to ${row.holder}, which is paused`)
    if (!pulls.some(({ instance }) => instance === row.holder))
      disagree(`${nameOf(partition)} is leased to ${row.holder}, which has not pulled`)
  }
  // Within a lane, what came back goes first.
  const place = ({ partition: { lane, line, dueAt }, leaseId }: (typeof found)[number]) => [
    lane.level,
    line === 'returned' ? 0 : 1,
    line === 'returned' ? dueAt : 0,
    Number.parseInt(leaseId, 36),
  ]
  found.sort((a, b) => compareArrays(place(a), place(b)))
  for (const { partition, leaseId, holder } of found) model.lease(partition, leaseId, holder)
  const expiresAt = model.now + model.policy.leaseMillis
  for (const { key } of pulls) {
    const stored = key === null || model.keys.all.has(key) ? undefined : truth.key(key)
    if (key !== null && stored !== undefined)
      model.keys.remember(
        key,
        stored.leases.map((id) => ({
          lease: { id, attempt: 0, fencingToken: 0, expiresAt, expiresInMillis: 0, checkpoint: null },
        })),
      )
  }
}

function compareArrays(a: readonly number[], b: readonly number[]): number {
  for (const [at, value] of a.entries()) {
    const other = b[at] ?? 0
    if (value !== other) return value - other
  }
  return 0
}
