import { partitionStates } from '../../../packages/server/src/handoff/rules/life-cycle.ts'
import { type TaskFacts, taskState } from '../../../packages/server/src/handoff/rules/task.ts'
import type { Store } from '../../../packages/server/src/handoff/store.ts'
import type {
  PartitionDetails,
  PartitionPosition,
  TaskDetails,
} from '../../../packages/server/src/handoff/views/queries.ts'
import {
  laneView,
  type ProgressView,
  partitionView,
  progressView,
} from '../../../packages/server/src/handoff/views/view-state.ts'
import { disagree } from './disagreement.ts'
import { type ModelPartition, type ModelTask, nameOf } from './model-task.ts'

/** What a store shows of a task: its counts, and all pages of its partitions. */
export interface Shown {
  readonly task: TaskDetails | null
  readonly partitions: readonly PartitionDetails[]
}

const PAGE = 100

export async function readViews(store: Store, taskId: string): Promise<Shown> {
  const task = await store.task(taskId)
  const partitions: PartitionDetails[] = []
  let after: PartitionPosition | null = null
  do {
    const page = await store.partitions({ taskId, state: null, level: null, after, limit: PAGE })
    partitions.push(...(page?.partitions ?? []))
    after = page?.next ?? null
  } while (after !== null)
  return { task, partitions }
}

/** What users see of a task, computed from the single partitions. */
export function compareViews(task: ModelTask, { task: shown, partitions }: Shown): void {
  if (shown === null) disagree(`${task.taskId} is not shown`)
  const { facts, openLane } = shown
  const state = taskState(facts, openLane)
  if (state !== stateOf(task)) disagree(`${task.taskId} is shown ${state} instead of ${stateOf(task)}`)
  if (facts.finishedAt !== task.finishedAt)
    disagree(`${task.taskId} is shown finished at ${facts.finishedAt} instead of ${task.finishedAt}`)
  compareReported(task, facts)
  compareCounts(task.taskId, task, task.all(), progressView(shown))
  for (const lane of shown.lanes) {
    const ofLane = task.lanes.get(lane.level)?.partitions.values() ?? []
    compareCounts(`${task.taskId}-${lane.level}`, task, ofLane, laneView(facts, lane))
  }
  const kept = [...task.all()].filter(({ purged }) => !purged)
  if (partitions.length !== kept.length)
    disagree(`${task.taskId} is shown with ${partitions.length} partitions, not ${kept.length}`)
  for (const row of partitions) {
    const partition = task.find(row.level, row.index)
    if (partition === undefined) disagree(`${task.taskId}-${row.level}-${row.index} was never called back`)
    const seen = partitionView(facts, row).state
    const expected = shownState(partition)
    if (seen !== expected) disagree(`${nameOf(partition)} is shown ${seen} instead of ${expected}`)
    if ((row.checkpoint ?? null) !== partition.checkpoint)
      disagree(`${nameOf(partition)} is shown with the checkpoint ${row.checkpoint}`)
  }
}

function compareReported(task: ModelTask, { reportedRecords, mismatched }: TaskFacts): void {
  const reports = [...task.all()].filter(({ reported }) => reported !== null)
  const sum = reports.reduce((total, { reported }) => total + (reported ?? 0), 0)
  const differing = reports.filter(({ reported, descriptor }) => reported !== descriptor.recordCount)
  if (reportedRecords !== sum || mismatched !== differing.length)
    disagree(
      `${task.taskId} is shown with ${reportedRecords} records reported and ${mismatched} mismatches, ` +
        `not ${sum} and ${differing.length}`,
    )
}

function compareCounts(
  name: string,
  task: ModelTask,
  of: Iterable<ModelPartition>,
  { partitions, records }: ProgressView,
): void {
  const expected = new Map(partitionStates.map((state) => [state as string, { partitions: 0, records: 0 }]))
  for (const partition of of) {
    const such = expected.get(shownState(partition)) ?? disagree(`${nameOf(partition)} has no state`)
    such.partitions += 1
    such.records += partition.descriptor.recordCount
  }
  for (const state of partitionStates) {
    const such = expected.get(state)
    if (partitions[state] !== such?.partitions || records[state] !== such.records)
      disagree(
        `${name} is shown with ${partitions[state]} partitions and ${records[state]} records ${state}, ` +
          `not ${JSON.stringify(such)}; its barrier is ${task.barrier ? 'on' : 'off'}`,
      )
  }
}

function shownState({ place, lane, table }: ModelPartition): string {
  const { task, level } = lane
  if (place === 'done') return 'done'
  if (task.cancelled) return 'cancelled'
  if (place !== 'waiting') return place
  return !table.paused && isServed(task, level) ? 'ready' : 'held'
}

/** Whether the task may be served on this level. */
function isServed(task: ModelTask, level: number): boolean {
  const lowest = task.barrier ? task.lowestUnfinishedLevel() : null
  return !task.paused && (lowest === null || level <= lowest)
}

function stateOf(task: ModelTask): string {
  if (task.cancelled) return 'cancelled'
  if (task.isDone) return 'done'
  if (task.paused) return 'paused'
  // A task whose tables are paused is not stalled.
  const canMove = [...task.all()].some(({ place, lane }) =>
    place === 'waiting' ? isServed(task, lane.level) : !['done', 'parked', 'cancelled'].includes(place),
  )
  return canMove ? 'open' : 'stalled'
}
