import { isDeepStrictEqual } from 'node:util'
import type {
  ControlRequest,
  RetryControl,
  SettingsControl,
} from '../../../packages/server/src/handoff/rules/control.ts'
import type { TableSettings } from '../../../packages/server/src/handoff/rules/policy.ts'
import type {
  NotRevoked,
  PartitionRef,
  PauseRequest,
  RevokeResult,
  TableChange,
} from '../../../packages/server/src/handoff/store.ts'
import { recordFinished } from './history.ts'
import type { Model } from './model.ts'
import { type ModelPartition, ModelTask } from './model-task.ts'

/** Applies a control request to the model; returns the kind of the answer. */
export function controlModel(model: Model, request: ControlRequest): string {
  const kind = apply(model, request)
  if (kind === 'applied') model.changes.add(request.verb)
  return kind
}

function apply(model: Model, request: ControlRequest): string {
  if (request.verb === 'settings') return set(model, request)
  const task = model.tasks.get(request.taskId)
  if (task === undefined || !task.isKnown) return 'task_unknown'
  if (task.cancelled && request.verb !== 'cancel') return 'task_cancelled'
  model.touch(task)
  switch (request.verb) {
    case 'pause':
      if (isOver(task)) return 'task_finished'
      task.paused = true
      break
    case 'resume':
      task.paused = false
      task.lastFailed = []
      break
    case 'cancel':
      if (isOver(task)) return 'task_finished'
      task.cancelled = true
      task.rerunning = false
      break
    case 'seal':
      task.sealed = true
      return 'applied'
    case 'level-barrier':
      task.barrier = request.enabled
      break
    case 'skip-parked':
      if (isOver(task)) return 'task_finished'
      skipParked(task)
      break
    case 'retry':
      return retry(model, task, request)
  }
  model.interrupt(task)
  return 'applied'
}

/** Also allowed before the first call-back. */
function set(model: Model, { taskId, settings }: SettingsControl): string {
  // A task of which nothing is known, and for which nothing is set, is not kept.
  const setsSomething = Object.values(settings).some((value) => value !== null)
  if (!model.tasks.has(taskId) && !setsSomething) return 'applied'
  const task = model.tasks.get(taskId) ?? new ModelTask(taskId, model.policy.levelBarrier)
  if (task.cancelled) return 'task_cancelled'
  model.tasks.set(taskId, task)
  // What is not named stays; null goes back to the default.
  const { maxLeases = task.maxLeases, weight = task.weight, maxAttempts = task.maxAttempts } = settings
  task.maxLeases = maxLeases ?? Number.POSITIVE_INFINITY
  task.weight = weight ?? 1
  task.leastWeight = task.isKnown ? Math.min(task.leastWeight, task.weight) : task.weight
  task.maxAttempts = maxAttempts
  const { pauseAfterFailures = task.pauseAfterFailures } = settings
  if (!isDeepStrictEqual(pauseAfterFailures, task.pauseAfterFailures)) task.lastFailed = []
  task.pauseAfterFailures = pauseAfterFailures
  if (!task.isKnown) return 'applied'
  model.touch(task)
  model.interrupt(task)
  return 'applied'
}

/** Changes the settings of a compute table; returns all of them. */
export function setTable(
  { tables, changedTables, unseen }: Model,
  { table: name, ...change }: TableChange,
): TableSettings {
  const table = tables.of(name)
  tables.change(table, () => {
    if (change.maxLeases !== undefined) table.maxLeases = change.maxLeases ?? Number.POSITIVE_INFINITY
    if (change.paused !== undefined) table.paused = change.paused
  })
  changedTables.add(name)
  for (const { task } of table.lanes) unseen.add(task.taskId)
  return { maxLeases: Number.isFinite(table.maxLeases) ? table.maxLeases : null, paused: table.paused }
}

/** Returns since when the instance is paused. */
export function pauseInstance(model: Model, { instanceId, paused }: PauseRequest): number | null {
  const { pausedInstances } = model
  if (!paused) pausedInstances.delete(instanceId)
  else if (!pausedInstances.has(instanceId)) pausedInstances.set(instanceId, model.now)
  model.changedInstances.add(instanceId)
  return pausedInstances.get(instanceId) ?? null
}

/** Revokes the lease of a partition, if it is leased. */
export function revokeLease(
  model: Model,
  { taskId, level, index }: PartitionRef,
): Omit<RevokeResult, 'newlyReady'> | NotRevoked {
  const task = model.tasks.get(taskId)
  if (task === undefined || !task.isKnown) return { unknown: 'task' }
  const partition = task.find(level, index)
  if (partition === undefined || partition.purged) return { unknown: 'partition' }
  const isLeased = partition.place === 'leased'
  if (isLeased) model.revoke(partition)
  const isParked = isLeased && partition.place === 'parked'
  return { revoked: isLeased ? 1 : 0, parked: isParked ? 1 : 0, more: false }
}

const isOver = (task: ModelTask): boolean => task.isDone && !task.rerunning

function skipParked(task: ModelTask): void {
  while (task.barrier) {
    const level = task.lowestUnfinishedLevel()
    const lane = level === null ? undefined : task.lanes.get(level)
    if (lane === undefined || lane.counts.parked === 0 || lane.parkedSkipped) return
    lane.parkedSkipped = true
  }
}

function retry(model: Model, task: ModelTask, { level, partitions, done }: RetryControl): string {
  if (done && task.sealed && isOver(task)) return 'task_sealed'
  if (done && task.purged) return 'task_purged'
  if (partitions !== null) {
    const named = partitions.map((name) => task.find(name.level, name.index))
    if (named.some((partition) => partition === undefined || partition.purged)) return 'partitions_unknown'
    for (const partition of new Set(named)) {
      if (partition?.place === 'parked') revive(model, partition)
      else if (partition?.place === 'done' && done) rerun(model, partition)
    }
    task.lastFailed = []
    return 'applied'
  }
  if (level !== null && !task.lanes.has(level)) return 'level_unknown'
  for (const partition of task.all())
    if (
      (level === null || partition.lane.level === level) &&
      partition.place === 'parked' &&
      !partition.purged
    )
      revive(model, partition)
  // Done partitions follow in steps, which are learned from what is stored.
  if (done) task.rerunning = true
  task.lastFailed = []
  return 'applied'
}

function revive(model: Model, partition: ModelPartition): void {
  partition.lane.parkedSkipped = false
  wait(model, partition)
}

export function rerun(model: Model, partition: ModelPartition): void {
  recordFinished(partition)
  partition.reported = null
  partition.leaseNumber += 1
  partition.leaseId = null
  partition.outcome = null
  wait(model, partition)
}

function wait(model: Model, partition: ModelPartition): void {
  partition.attempts = 0
  partition.releases = 0
  partition.dueAt = model.now
  model.move(partition, 'waiting', 'returned')
}
