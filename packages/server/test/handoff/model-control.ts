import type { ControlRequest, RetryControl } from '../../src/handoff/rules/control.ts'
import type { TaskSettingsChange } from '../../src/handoff/rules/policy.ts'
import type { Model } from './model.ts'
import { recordFinished } from './model-history.ts'
import type { ModelPartition, ModelTask } from './model-task.ts'

const isFinished = (task: ModelTask) => task.state === 'done'

/** Applies a control request to the model; returns the kind of the answer. */
export function controlModel(model: Model, request: ControlRequest): string {
  const task = model.tasks.get(request.taskId)
  if (request.verb === 'settings' && task?.cancelled !== true)
    model.settings.set(
      request.taskId,
      merged(task?.settings ?? model.settings.get(request.taskId), request.settings),
    )
  if (task === undefined) return request.verb === 'settings' ? 'applied' : 'task_unknown'
  if (task.cancelled && request.verb !== 'cancel') return 'task_cancelled'
  switch (request.verb) {
    case 'pause':
      if (isFinished(task)) return 'task_finished'
      task.paused = true
      return 'applied'
    case 'resume':
      task.paused = false
      return 'applied'
    case 'cancel':
      if (isFinished(task)) return 'task_finished'
      if (!task.cancelled) cancel(task)
      return 'applied'
    case 'seal':
      task.sealed = true
      return 'applied'
    case 'owner':
      return 'applied'
    case 'level-barrier':
      task.barrier = request.enabled
      return 'applied'
    case 'settings':
      task.settings = merged(task.settings, request.settings)
      return 'applied'
    case 'skip-parked':
      if (isFinished(task)) return 'task_finished'
      skipParked(task)
      return 'applied'
    case 'retry':
      return retry(task, request)
  }
}

/** What is not named stays; null removes a setting. */
function merged(settings: ModelTask['settings'] = {}, change: TaskSettingsChange): ModelTask['settings'] {
  const { maxLeases = settings.maxLeases, maxAttempts = settings.maxAttempts } = change
  return {
    ...(maxLeases == null ? {} : { maxLeases }),
    ...(maxAttempts == null ? {} : { maxAttempts }),
  }
}

/** Leases and back-offs run to their end, without an effect. */
function cancel(task: ModelTask): void {
  task.cancelled = true
  for (const partition of task.all())
    if (partition.place === 'waiting' || partition.place === 'parked') partition.place = 'cancelled'
}

function skipParked(task: ModelTask): void {
  while (task.barrier) {
    const level = task.lowestUnfinishedLevel()
    const parked = task.all().some((one) => one.descriptor.level === level && one.place === 'parked')
    if (level === null || !parked || task.skippedLevels.has(level)) return
    task.skippedLevels.add(level)
  }
}

function retry(task: ModelTask, { level, partitions, done }: RetryControl): string {
  const wasDone = task.state === 'done'
  if (done && wasDone && task.sealed) return 'task_sealed'
  if (done && task.purged) return 'task_purged'
  const named = partitions?.map((name) => task.find(name.level, name.index))
  if (named?.some((partition) => partition === undefined || partition.purged)) return 'partitions_unknown'
  if (level !== null && partitions === null && !task.all().some((one) => one.descriptor.level === level))
    return 'level_unknown'
  const meant =
    named?.filter((partition) => partition !== undefined) ??
    task.all().filter(({ descriptor }) => level === null || descriptor.level === level)
  let reran = false
  for (const partition of meant.filter(({ purged }) => !purged)) {
    if (partition.place === 'parked') revive(task, partition)
    else if (partition.place === 'done' && done) {
      rerun(partition)
      reran = true
    }
  }
  if (reran && wasDone) task.generation += 1
  return 'applied'
}

function revive(task: ModelTask, partition: ModelPartition): void {
  task.skippedLevels.delete(partition.descriptor.level)
  partition.place = 'waiting'
  partition.attempts = 0
  partition.releases = 0
}

function rerun(partition: ModelPartition): void {
  recordFinished(partition)
  partition.place = 'waiting'
  partition.attempts = 0
  partition.releases = 0
  partition.reported = null
  partition.lease = null
}
