import { partitionStates } from '../../src/handoff/rules/life-cycle.ts'
import { type TaskFacts, taskState } from '../../src/handoff/rules/task.ts'
import type { PartitionDetails, TaskDetails } from '../../src/handoff/views/queries.ts'
import { type ProgressView, partitionView, progressView } from '../../src/handoff/views/view-state.ts'
import type { Driver } from '../store/conformance/driver.ts'
import type { Model } from './model.ts'
import { claim } from './model-disagreement.ts'
import { isHistory } from './model-history.ts'
import type { ModelPartition, ModelTask } from './model-task.ts'

/** The audit of the store must pass. */
export async function audit(driver: Driver): Promise<void> {
  const findings = await driver.store.audit()
  claim(findings.length === 0, `the audit found: ${findings.join('; ')}`)
}

/** All views of the store must match the model. */
export async function compare(model: Model, driver: Driver): Promise<void> {
  // All views are requested at once: nothing changes in between, and waiting for each answer would take most
  // of the time.
  const tasks = [...model.tasks.values()]
  const [records, shown] = await Promise.all([
    Promise.all(tasks.map(({ taskId }) => driver.task(taskId))),
    Promise.all(tasks.map(({ taskId }) => driver.partitions(taskId))),
  ])
  for (const [at, task] of tasks.entries()) {
    const record = records[at]
    if (record !== undefined) compareTask(task, record, shown[at] ?? [])
  }
}

function compareTask(task: ModelTask, record: TaskDetails, shown: readonly PartitionDetails[]): void {
  const { facts, openLane } = record
  const state = taskState(facts, openLane)
  claim(state === task.state, `${task.taskId} is shown ${state} instead of ${task.state}`)
  claim(facts.generation === task.generation, `${task.taskId} is in generation ${facts.generation}`)
  claim(facts.finishedAt === task.finishedAt, `${task.taskId} finished at ${facts.finishedAt}`)
  claim((facts.purgedAt !== null) === task.purged, `${task.taskId} purged: ${facts.purgedAt}`)
  claim(facts.attemptsWasted === task.wasted, `${task.taskId} wasted ${facts.attemptsWasted} attempts`)
  const states = task.shown()
  compareCounts(task.taskId, states, progressView(record))
  compareReported(task, facts)
  const kept = task.all().filter(({ purged }) => !purged)
  claim(shown.length === kept.length, `${task.taskId} has ${shown.length} partitions, not ${kept.length}`)
  for (const row of shown) {
    const partition = task.find(row.level, row.index)
    if (partition !== undefined) comparePartition(facts, partition, states.get(partition), row)
  }
}

function compareCounts(
  taskId: string,
  states: ReadonlyMap<ModelPartition, string>,
  progress: ProgressView,
): void {
  const partitions = new Map<string, number>()
  const records = new Map<string, number>()
  for (const [{ descriptor }, state] of states) {
    partitions.set(state, (partitions.get(state) ?? 0) + 1)
    records.set(state, (records.get(state) ?? 0) + descriptor.recordCount)
  }
  for (const state of partitionStates) {
    const shown = [progress.partitions[state], progress.records[state]]
    const expected = [partitions.get(state) ?? 0, records.get(state) ?? 0]
    claim(shown.join() === expected.join(), `${taskId} is shown with ${shown} ${state}, not ${expected}`)
  }
}

function compareReported(task: ModelTask, facts: TaskFacts): void {
  const reported = task.all().filter((partition) => partition.reported !== null)
  const sum = reported.reduce((total, partition) => total + (partition.reported ?? 0), 0)
  const differing = reported.filter((partition) => partition.reported !== partition.descriptor.recordCount)
  claim(
    facts.reportedRecords === sum,
    `${task.taskId} has ${facts.reportedRecords} records reported, not ${sum}`,
  )
  claim(facts.mismatched === differing.length, `${task.taskId} has ${facts.mismatched} mismatches`)
}

function comparePartition(
  facts: TaskFacts,
  partition: ModelPartition,
  expected: string | undefined,
  row: PartitionDetails,
): void {
  const name = `${facts.taskId}-${row.level}-${row.index}`
  const { state } = partitionView(facts, row)
  claim(state === expected, `${name} is shown ${state} instead of ${expected}`)
  claim(row.attempts === partition.attempts, `${name} has used ${row.attempts} attempts`)
  claim(isHistory(partition, row.history), `${name} has the history ${JSON.stringify(row.history)}`)
  if (partition.place === 'leased')
    claim(row.dueAt === partition.dueAt, `${name} is leased until ${row.dueAt}`)
  if (partition.place === 'delayed') learnDue(name, partition, row.dueAt ?? 0)
}

/** Whether the model has to read the store before it can continue: back-offs are randomized. */
export function hasToLearn(model: Model): boolean {
  return [...model.tasks.values()].some((task) =>
    task.all().some(({ place, dueBetween }) => place === 'delayed' && dueBetween !== null),
  )
}

/** Where a back-off is randomized, the model adopts the value of the store. */
function learnDue(name: string, partition: ModelPartition, dueAt: number): void {
  if (partition.dueBetween === null) {
    claim(dueAt === partition.dueAt, `${name} is delayed until ${dueAt}, before until ${partition.dueAt}`)
    return
  }
  const { first, last } = partition.dueBetween
  claim(dueAt >= first && dueAt <= last, `${name} waits until ${dueAt}, not between ${first} and ${last}`)
  partition.dueAt = dueAt
  partition.dueBetween = null
}
