import type { Tally } from '../../../packages/server/src/handoff/rules/task.ts'
import { disagree } from './disagreement.ts'
import { isHistory } from './history.ts'
import type { Model } from './model.ts'
import { type ModelLane, type ModelPartition, type ModelTask, nameOf } from './model-task.ts'
import type { Place } from './partition.ts'
import type { ModelTable } from './tables.ts'
import type { Truth } from './truth.ts'

/** Compares what changed since the last time with what is durable. */
export function compareChanged(model: Model, truth: Truth): void {
  for (const partition of model.changed) comparePartition(partition, truth)
  for (const task of model.changedTasks) compareTask(task, truth)
  for (const name of model.changedTables) compareTable(model.tables.of(name), truth)
  for (const name of model.changedInstances) compareInstance(model, name, truth)
  forgetChanges(model)
}

function forgetChanges({ changed, changedTasks, changedTables, changedInstances }: Model): void {
  for (const changes of [changed, changedTasks, changedTables, changedInstances]) changes.clear()
}

function compareTable({ name, maxLeases, paused }: ModelTable, truth: Truth): void {
  const stored = truth.tableSettings(name) ?? { maxLeases: null, paused: false }
  if ((stored.maxLeases ?? Number.POSITIVE_INFINITY) !== maxLeases || stored.paused !== paused)
    disagree(`the settings of ${name} are stored as ${JSON.stringify(stored)}, not ${maxLeases} ${paused}`)
}

function compareInstance({ pausedInstances }: Model, name: string, truth: Truth): void {
  const [stored, expected] = [truth.pausedAt(name), pausedInstances.get(name) ?? null]
  if (stored !== expected) disagree(`${name} is stored as paused at ${stored}, not ${expected}`)
}

/** Everything that was ever acknowledged must be stored unchanged. */
export function compareAll(model: Model, truth: Truth): void {
  truth.readAgain()
  for (const task of model.tasks.values()) {
    compareTask(task, truth)
    for (const partition of task.all()) comparePartition(partition, truth)
  }
  for (const [key, { leaseIds, surelyKnownUntil }] of model.keys.all) {
    if (surelyKnownUntil <= model.now) continue
    const stored = truth.key(key)?.leases
    if (stored?.length !== leaseIds.length || !stored.every((id, at) => id === leaseIds[at]))
      disagree(`the key ${key} has the leases ${stored?.join()} instead of ${leaseIds.join()}`)
  }
  for (const table of model.tables.all.values()) compareTable(table, truth)
  for (const name of model.pausedInstances.keys()) compareInstance(model, name, truth)
  forgetChanges(model)
}

function compareTask(task: ModelTask, truth: Truth): void {
  const stored = truth.task(task.taskId)
  if (stored === undefined) disagree(`${task.taskId} was accepted and is not there`)
  const { paused, cancelled, sealed, levelBarrier, partitions } = stored
  if (
    paused !== task.paused ||
    cancelled !== task.cancelled ||
    sealed !== task.sealed ||
    levelBarrier !== task.barrier
  )
    disagree(
      `${task.taskId} is stored with other flags: ${JSON.stringify({ paused, cancelled, sealed, levelBarrier })}`,
    )
  const { failureWindow } = task
  if (stored.failureWindow !== failureWindow)
    disagree(
      `the last attempts of ${task.taskId} are stored as ${stored.failureWindow}, not ${failureWindow}`,
    )
  compareCounts(task.taskId, task.counts, partitions)
  for (const lane of task.lanes.values()) {
    compareCounts(`${task.taskId}-${lane.level}`, lane.counts, truth.lane(lane)?.partitions)
    compareDone(lane, stored.id, truth)
  }
}

/** No episode is as long as minutes are retained. Hours may have been removed by retention. */
function compareDone({ task, level, everDone }: ModelLane, id: number, truth: Truth): void {
  const { minute: byMinute, hour: byHour } = truth.done(id, level)
  const isSame = byMinute.partitions === everDone.partitions && byMinute.records === everDone.records
  if (!isSame || byHour.partitions > byMinute.partitions || byHour.records > byMinute.records)
    disagree(
      `the history of ${task.taskId}-${level} has ${JSON.stringify(byMinute)} by minute and ` +
        `${JSON.stringify(byHour)} by hour, and ${JSON.stringify(everDone)} was done`,
    )
}

function compareCounts(name: string, counts: Record<Place, number>, stored: Tally | undefined): void {
  const { waiting, leased, delayed, parked, done, cancelled } = counts
  const isSame =
    stored?.ready === waiting &&
    stored.leased === leased &&
    stored.delayed === delayed &&
    stored.parked === parked &&
    stored.done === done &&
    stored.cancelled === cancelled
  if (!isSame) disagree(`${name} counts ${JSON.stringify(stored)} instead of ${JSON.stringify(counts)}`)
}

function comparePartition(partition: ModelPartition, truth: Truth): void {
  if (partition.purged) return
  const row = truth.partition(partition)
  if (row === undefined) disagree(`${nameOf(partition)} was accepted and is not there`)
  if (partition.id === 0) partition.id = row.id
  const { place, attempts, releases, leaseNumber, outcome, dueAt, line, holder } = partition
  const { status } = row
  const state = place === 'waiting' ? 'ready' : place
  if (row.id !== partition.id || status.state !== state)
    disagree(
      `${nameOf(partition)} is stored as ${row.id} ${status.state} instead of ${partition.id} ${state}`,
    )
  if (status.attempts !== attempts || status.releases !== releases || status.leaseNumber !== leaseNumber)
    disagree(
      `${nameOf(partition)} is stored with attempts ${status.attempts}, releases ${status.releases}, lease number ${status.leaseNumber} ` +
        `instead of ${attempts}, ${releases}, ${leaseNumber}`,
    )
  if (status.fencingToken !== partition.fencingToken)
    disagree(
      `${nameOf(partition)} is stored with the fencing token ${status.fencingToken}, not ${partition.fencingToken}`,
    )
  const checkpoint = status.checkpointAt === null ? null : truth.checkpoint(row.id)
  if (checkpoint !== partition.checkpoint)
    disagree(`${nameOf(partition)} is stored with the checkpoint ${checkpoint}, not ${partition.checkpoint}`)
  if (status.outcome !== outcome)
    disagree(`${nameOf(partition)} is stored with the outcome ${status.outcome}, not ${outcome}`)
  const isDue = place === 'leased' || place === 'delayed' || (place === 'waiting' && line === 'returned')
  if (status.dueAt !== (isDue ? dueAt : null))
    disagree(
      `${nameOf(partition)} is stored as ${place}, ${line}, due at ${status.dueAt} instead of ${dueAt}`,
    )
  if (place === 'leased' && status.holder !== holder)
    disagree(`${nameOf(partition)} is stored as held by ${status.holder}`)
  if (!isHistory(partition, status.history))
    disagree(
      `${nameOf(partition)} has the history ${JSON.stringify(status.history)}, not ${JSON.stringify(partition.history)}`,
    )
}
