import { type Attempt, type ParkedEvent, type PartitionRow, partitionName } from '@baton/protocol'
import type { TaskFacts } from '../../handoff/rules/task-facts.ts'
import { type ShownAttempt, shownAttempts } from '../../handoff/shown/attempts.ts'
import type { ParkedNotice } from '../../handoff/shown/change.ts'
import type { PartitionRecord } from '../../handoff/shown/partition-record.ts'
import { shownPartition } from '../../handoff/shown/shown-state.ts'
import { timestampOf, timestampOrNull } from './wire-time.ts'

/** A partition as the wire shows it. */
export function viewPartition(facts: TaskFacts, record: PartitionRecord): PartitionRow {
  const { state, attempts, holder, leaseEndsAt, readyAt } = shownPartition(facts, record)
  return {
    taskId: facts.taskId,
    computeTableName: record.computeTableName,
    partition_name: nameOf(facts.taskId, record),
    record_count: record.recordCount,
    priorityLevel: record.level,
    state,
    attempts,
    holder,
    leaseExpiresAt: timestampOrNull(leaseEndsAt),
    readyAt: timestampOrNull(readyAt),
    lastReason: record.reason,
    history: shownAttempts(facts, record).map(viewAttempt),
    reportedRecords: record.reportedRecords,
    calledBackAt: timestampOf(record.calledBackAt),
    settledAt: timestampOrNull(record.settledAt),
    ...keptOf(record),
  }
}

function keptOf({ extraFields = null, traceparent = null }: PartitionRecord) {
  return {
    ...(extraFields === null ? {} : { fields: JSON.parse(extraFields) as Record<string, unknown> }),
    ...(traceparent === null ? {} : { traceparent }),
  }
}

function viewAttempt({
  attempt,
  holder,
  startedAt,
  endedAt,
  outcome,
  reason,
  records,
}: ShownAttempt): Attempt {
  return {
    attempt,
    holder,
    startedAt: timestampOf(startedAt),
    endedAt: timestampOrNull(endedAt),
    outcome,
    reason,
    records,
  }
}

/** What those who follow events are told of a partition that was parked. */
export function viewParked({ taskId, level, index, spelling, attempts, reason }: ParkedNotice): ParkedEvent {
  return {
    taskId,
    partition_name: nameOf(taskId, { level, index, spelling }),
    priorityLevel: level,
    attempts,
    reason,
  }
}

/** As it was called back, if that is not how it is usually spelled. */
export function nameOf(
  taskId: string,
  { level, index, spelling }: { level: number; index: number; spelling: string | null },
): string {
  return spelling ?? partitionName(taskId, level, index)
}
