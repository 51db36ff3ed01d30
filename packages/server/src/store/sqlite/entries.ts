import { partitionStates } from '../../handoff/rules/life-cycle.ts'
import { emptyTally, type Tallies } from '../../handoff/rules/tally.ts'
import type { LaneEntry, TaskEntry } from '../../handoff/rules/task-entry.ts'
import type { TaskState } from '../../handoff/rules/task-facts.ts'

/** A value of a row, as statements take it and the journal keeps it. */
export type Value = number | string | null

const counterColumns = partitionStates.flatMap((state) => [`${state}_partitions`, `${state}_records`])
export const assignCounters = counterColumns.map((column) => `${column} = ?`).join(', ')
export const addToCounters = counterColumns.map((column) => `${column} = ${column} + ?`).join(', ')

/** A lane without its tags, which are the only columns that outgrow a JavaScript number. */
export const laneColumns = `id, task, level, parked_skipped, purged, purged_records, ${counterColumns.join(', ')}`

/** Tags leave SQLite as text: the driver refuses to read a number above 2^53. */
export const taggedLaneColumns = `${laneColumns},
  CAST(finish AS TEXT) AS finish_text, CAST(retry_finish AS TEXT) AS retry_finish_text`

type Row = Record<string, unknown>

/** In the order of `assignCounters`. */
export function counters({ partitions, records }: Tallies): number[] {
  const values: number[] = []
  for (const state of partitionStates) values.push(partitions[state], records[state])
  return values
}

export function readTallies(row: Row): Tallies {
  const partitions = emptyTally()
  const records = emptyTally()
  for (const state of partitionStates) {
    partitions[state] = row[`${state}_partitions`] as number
    records[state] = row[`${state}_records`] as number
  }
  return { partitions, records }
}

/** In SQL: all that `readTask` reads. */
export const taskColumns = `task.*, EXISTS (SELECT 1 FROM task_step s WHERE s.task = task.id AND s.step = 'rerun') AS rerunning`

export function readTask(row: Row): TaskEntry {
  return {
    id: row['id'] as number,
    taskId: row['task_id'] as string,
    state: row['state'] as TaskState,
    paused: row['paused'] === 1,
    cancelled: row['cancelled'] === 1,
    sealed: row['sealed'] === 1,
    rerunning: row['rerunning'] === 1,
    expectedPartitions: row['expected_partitions'] as number | null,
    levelBarrier: row['level_barrier'] === 1,
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
    finish: BigInt(row['finish_text'] as string),
    retryFinish: BigInt(row['retry_finish_text'] as string),
    parkedSkipped: row['parked_skipped'] === 1,
    purged: row['purged'] as number,
    purgedRecords: row['purged_records'] as number,
    ...readTallies(row),
  }
}
