import type { LevelView, TaskSummary, TaskView } from '@baton/protocol'
import { taskState } from '../../handoff/rules/task-course.ts'
import type { TaskFacts } from '../../handoff/rules/task-facts.ts'
import { paceOf } from '../../handoff/shown/eta.ts'
import { missingPartitions, shownLane, shownProgress, waitingFor } from '../../handoff/shown/shown-state.ts'
import type { LaneFacts, TaskRecord, TaskRow } from '../../handoff/shown/task-record.ts'
import { nameOf } from './partition-view.ts'
import { timestampOf, timestampOrNull } from './wire-time.ts'

/** A task as the wire shows it. */
export function viewTask(record: TaskRecord): TaskView {
  const { facts } = record
  return {
    ...summariseTask(record, record.now),
    levelBarrier: facts.levelBarrier,
    waitingFor: waitingFor(record),
    settledByDelivery: facts.delivered,
    levels: record.lanes.map((lane) => viewLevel(facts, lane)),
    levelsOmitted: record.lanesOmitted,
    calledBackBy: [...facts.owners],
    computeTables: [...record.computeTables],
    finishedAt: timestampOrNull(facts.finishedAt),
    purgedAt: timestampOrNull(facts.purgedAt),
    attemptsWasted: facts.attemptsWasted,
    reported: {
      declared: facts.reportedDeclared,
      reported: facts.reportedRecords,
      mismatched: facts.mismatched,
      mismatches: record.mismatches.map((mismatch) => ({
        partition_name: nameOf(facts.taskId, mismatch),
        declared: mismatch.declared,
        reported: mismatch.reported,
      })),
    },
  }
}

export function summariseTask(row: TaskRow, now: number): TaskSummary {
  const { facts, openLane } = row
  return {
    taskId: facts.taskId,
    state: taskState(facts, openLane),
    generation: facts.generation,
    sealed: facts.sealed,
    expectedPartitions: facts.expectedPartitions,
    missingPartitions: missingPartitions(facts),
    ...shownProgress(row),
    firstCallBackAt: timestampOf(facts.firstCallBackAt),
    lastCallBackAt: timestampOf(facts.lastCallBackAt),
    ...paceOf(row, now),
  }
}

function viewLevel(facts: TaskFacts, lane: LaneFacts): LevelView {
  const { open, partitions, records, indexes } = shownLane(facts, lane)
  return { level: lane.level, open, partitions, records, indexes: { ...indexes, gaps: [...indexes.gaps] } }
}
