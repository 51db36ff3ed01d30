import type { DatabaseSync } from 'node:sqlite'
import type { LevelTime } from '../../handoff/fair-order.ts'
import { taskState } from '../../handoff/task-record.ts'
import { assignCounters, counters, type LaneEntry, type TaskEntry } from './entries.ts'
import type { PaceRow } from './pace.ts'

type Value = number | string | null

/** Rows as the statements below take them, and as the journal keeps them: tags and times are text, see `entries.ts`. */
export interface LedgerRows {
  readonly levels: readonly (readonly Value[])[]
  readonly lanes: readonly (readonly Value[])[]
  readonly tasks: readonly (readonly Value[])[]
  readonly paces: readonly PaceRow[]
}

export function levelRow(level: number, { virtual, served }: LevelTime): Value[] {
  return [level, String(virtual), String(served)]
}

export function laneRow(lane: LaneEntry): Value[] {
  const { finish, retryFinish, parkedSkipped, purged, purgedRecords } = lane
  return [
    String(finish),
    String(retryFinish),
    parkedSkipped ? 1 : 0,
    purged,
    purgedRecords,
    ...counters(lane),
    lane.id,
  ]
}

export function taskRow(task: TaskEntry): Value[] {
  return [
    task.state,
    task.paused ? 1 : 0,
    task.cancelled ? 1 : 0,
    task.sealed ? 1 : 0,
    task.expectedPartitions,
    task.levelBarrier ? 1 : 0,
    task.openLevel,
    task.generation,
    task.lastCallBackAt,
    task.finishedAt,
    task.purgedAt,
    task.delivered,
    task.attemptsWasted,
    task.reportedDeclared,
    task.reportedRecords,
    task.mismatched,
    ...counters(task),
    task.id,
  ]
}

/** What follows from the counters: the task's state, and when it came to its end. */
export function bringUpToDate(task: TaskEntry, now: number): void {
  const state = taskState(task)
  const finished = state === 'done' || state === 'cancelled'
  if (finished && task.finishedAt === null) task.finishedAt = now
  if (!finished) task.finishedAt = null
  task.state = state
}

export function prepareSaving(db: DatabaseSync) {
  return {
    saveTask: db.prepare(
      `UPDATE task SET state = ?, paused = ?, cancelled = ?, sealed = ?, expected_partitions = ?, level_barrier = ?,
         open_level = ?, generation = ?, last_call_back_at = ?, finished_at = ?, purged_at = ?, delivered = ?,
         attempts_wasted = ?, reported_declared = ?, reported_records = ?, mismatched = ?, ${assignCounters}
       WHERE id = ?`,
    ),
    saveLane: db.prepare(
      `UPDATE lane SET finish = ?, retry_finish = ?, parked_skipped = ?, purged = ?, purged_records = ?,
         ${assignCounters} WHERE id = ?`,
    ),
    saveLevel: db.prepare(
      `INSERT INTO level (level, virtual, served) VALUES (?, ?, ?)
       ON CONFLICT (level) DO UPDATE SET virtual = excluded.virtual, served = excluded.served`,
    ),
  }
}
