import { type PartitionState, partitionStates } from '../../../handoff/rules/life-cycle.ts'
import { noTallies, type Tallies } from '../../../handoff/rules/tally.ts'
import type { LaneEntry, TaskEntry } from '../../../handoff/rules/task-entry.ts'
import type { TaskState } from '../../../handoff/rules/task-facts.ts'
import type { Row } from '../session/statement.ts'

/** What never changes about a lane. */
export interface LaneKey {
  readonly id: number
  readonly task: number
  readonly level: number
}

export const counterColumns = partitionStates.flatMap((state) => [`${state}_partitions`, `${state}_records`])

/** Further counters that a task has and a lane does not. */
export const taskCounterColumns = [
  'delivered',
  'attempts_wasted',
  'reported_declared',
  'reported_records',
  'mismatched',
] as const

/** Tags leave PostgreSQL as text: as numbers they would lose digits above 2^53. */
export const laneColumns = [
  ...['id', 'task', 'level', 'finish::text AS finish', 'retry_finish::text AS retry_finish'],
  ...['parked_skipped', 'purged', 'purged_records'],
  ...counterColumns,
].join(', ')

/** In SQL: all that `readTask` reads. */
export const taskColumns = (task: string) =>
  `${task}.*, EXISTS (SELECT FROM baton.task_step s WHERE s.task = ${task}.id AND s.step = 'rerun') AS rerunning`

export function readTask(row: Row): TaskEntry {
  return {
    id: row['id'] as number,
    taskId: row['task_id'] as string,
    state: row['state'] as TaskState,
    paused: row['paused'] as boolean,
    cancelled: row['cancelled'] as boolean,
    sealed: row['sealed'] as boolean,
    rerunning: row['rerunning'] as boolean,
    expectedPartitions: row['expected_partitions'] as number | null,
    levelBarrier: row['level_barrier'] as boolean,
    openLevel: row['open_level'] as number | null,
    generation: row['generation'] as number,
    firstCallBackAt: row['first_call_back_at'] as number,
    lastCallBackAt: row['last_call_back_at'] as number,
    finishedAt: row['finished_at'] as number | null,
    purgedAt: row['purged_at'] as number | null,
    delivered: row['delivered'] as number,
    attemptsWasted: row['attempts_wasted'] as number,
    reportedDeclared: row['reported_declared'] as number,
    reportedRecords: row['reported_records'] as number,
    mismatched: row['mismatched'] as number,
    ...readTallies(row),
  }
}

export function readLane(row: Row, task: TaskEntry): LaneEntry {
  return {
    id: row['id'] as number,
    task,
    level: row['level'] as number,
    finish: BigInt(row['finish'] as string),
    retryFinish: BigInt(row['retry_finish'] as string),
    parkedSkipped: row['parked_skipped'] as boolean,
    purged: row['purged'] as number,
    purgedRecords: row['purged_records'] as number,
    ...readTallies(row),
  }
}

export function readTallies(row: Row): Tallies {
  const tallies = noTallies()
  addTallies(tallies, row)
  return tallies
}

/** Adds a row of counters, or of what is to be added to them, where null is nothing. */
export function addTallies(entry: Tallies, row: Row): void {
  for (const state of partitionStates) {
    entry.partitions[state] += (row[`${state}_partitions`] as number | null) ?? 0
    entry.records[state] += (row[`${state}_records`] as number | null) ?? 0
  }
}

/** Counts a partition from one state into another; `null` is the outside. */
export function moveTallies(
  entry: Tallies,
  from: PartitionState | null,
  to: PartitionState | null,
  recordCount: number,
): void {
  if (from !== null) {
    entry.partitions[from] -= 1
    entry.records[from] -= recordCount
  }
  if (to !== null) {
    entry.partitions[to] += 1
    entry.records[to] += recordCount
  }
}
