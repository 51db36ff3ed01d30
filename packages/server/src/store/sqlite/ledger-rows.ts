import type { DatabaseSync } from 'node:sqlite'
import type { LevelTime } from '../../handoff/rules/fair-order.ts'
import type { LaneEntry, TaskEntry } from '../../handoff/rules/task-entry.ts'
import { assignCounters, counters, type Value } from './entries.ts'
import type { MoveRow } from './moves.ts'
import type { PaceRow } from './pace.ts'

/** Rows as the statements below take them, and as the journal keeps them: tags and times are text, see `entries.ts`. */
export interface LedgerRows {
  readonly levels: readonly (readonly Value[])[]
  /** By how much counters changed; where more did, the row follows in `lanes` or `tasks`. */
  readonly moves: readonly MoveRow[]
  readonly lanes: readonly (readonly Value[])[]
  readonly tasks: readonly (readonly Value[])[]
  readonly paces: readonly PaceRow[]
}

export function levelRow(level: number, { virtual, served }: LevelTime): Value[] {
  return [level, String(virtual), String(served)]
}

/** All of a task's row but its counters and id, in the order of `saveTask`. */
export function taskFacts(task: TaskEntry): Value[] {
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
  ]
}

/** All of a lane's row but its tags, counters and id, in the order of `saveLane`. */
export function laneFacts({ parkedSkipped, purged, purgedRecords }: LaneEntry): Value[] {
  return [parkedSkipped ? 1 : 0, purged, purgedRecords]
}

export function laneRow(lane: LaneEntry): Value[] {
  return [String(lane.finish), String(lane.retryFinish), ...laneFacts(lane), ...counters(lane), lane.id]
}

export function taskRow(task: TaskEntry): Value[] {
  return [...taskFacts(task), ...counters(task), task.id]
}

/** Those of which more changed than tags and counters, since `known` was told. */
export function changed<Entry extends object>(
  entries: Iterable<Entry>,
  factsOf: (entry: Entry) => Value[],
  known: Map<object, readonly Value[]>,
): Entry[] {
  const found: Entry[] = []
  for (const entry of entries) {
    const facts = factsOf(entry)
    const before = known.get(entry)
    if (facts.every((fact, at) => fact === before?.[at])) continue
    known.set(entry, facts)
    found.push(entry)
  }
  return found
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
