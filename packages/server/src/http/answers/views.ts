import {
  type Attempt,
  type InstanceStatus,
  type LevelView,
  MAX_LISTED_STRAGGLERS,
  type ParkedEvent,
  type PartitionRow,
  partitionName,
  type TaskSummary,
  type TaskView,
} from '@baton/protocol'
import { statusOf } from '../../handoff/heartbeats.ts'
import { countOf, quantileOf } from '../../handoff/rules/durations.ts'
import type { Policy } from '../../handoff/rules/policy.ts'
import { taskState } from '../../handoff/rules/task-course.ts'
import type { TaskFacts } from '../../handoff/rules/task-facts.ts'
import { type AttemptView, attemptViews } from '../../handoff/views/attempts.ts'
import { paceOf } from '../../handoff/views/eta.ts'
import type {
  InstanceRecord,
  LaneFacts,
  ParkedNotice,
  PartitionRecord,
  TaskRecord,
  TaskRow,
} from '../../handoff/views/records.ts'
import { overdueOf } from '../../handoff/views/time-left.ts'
import {
  laneView,
  missingPartitions,
  partitionView,
  progressView,
  waitingFor,
} from '../../handoff/views/view-state.ts'
import { viewSettings } from './task-settings-view.ts'

let formatted = { millis: Number.NaN, text: '' }

/**
 * A time in the wire format. The last result is cached, because leases that are granted together expire
 * together.
 */
export function timestampOf(millis: number): string {
  if (formatted.millis !== millis) formatted = { millis, text: new Date(millis).toISOString() }
  return formatted.text
}

export function timestampOrNull(millis: number | null): string | null {
  return millis === null ? null : timestampOf(millis)
}

/** A duration in seconds, as in the wire format. Never negative. */
export const secondsOf = (millis: number): number => Math.max(millis, 0) / 1000

export function viewInstance(instance: InstanceRecord): InstanceStatus {
  const { instanceId, role, firstSeenAt, lastSeenAt, leases, totals, node, tasks } = instance
  return {
    instanceId,
    role,
    status: statusOf(instance),
    firstSeenAt: timestampOf(firstSeenAt),
    lastSeenAt: timestampOf(lastSeenAt),
    leases,
    totals,
    ...(node === null ? {} : { version: node.version, startedAt: timestampOf(node.startedAt) }),
    ...(role === 'producer' || tasks.length > 0
      ? { tasks: tasks.map((task) => ({ ...task, lastCallBackAt: timestampOf(task.lastCallBackAt) })) }
      : {}),
  }
}

export function viewPartition(facts: TaskFacts, record: PartitionRecord): PartitionRow {
  const { state, attempts, holder, leaseEndsAt, readyAt } = partitionView(facts, record)
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
    history: attemptViews(facts, record).map(viewAttempt),
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
}: AttemptView): Attempt {
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

/** The event for a partition that was parked. */
export function viewParked({ taskId, level, index, spelling, attempts, reason }: ParkedNotice): ParkedEvent {
  return {
    taskId,
    partition_name: nameOf(taskId, { level, index, spelling }),
    priorityLevel: level,
    attempts,
    reason,
  }
}

/** The name of a partition: as the producer spelled it, if that differs from the canonical spelling. */
export function nameOf(
  taskId: string,
  { level, index, spelling }: { level: number; index: number; spelling: string | null },
): string {
  return spelling ?? partitionName(taskId, level, index)
}

export function viewTask(record: TaskRecord, policy: Policy): TaskView {
  const { facts } = record
  return {
    ...summariseTask(record, record.now),
    levelBarrier: facts.levelBarrier,
    settings: viewSettings(policy, facts),
    waitingFor: waitingFor(record),
    settledByDelivery: facts.delivered,
    levels: record.lanes.map((lane) => viewLevel(facts, lane)),
    levelsOmitted: record.lanesOmitted,
    calledBackBy: [...facts.owners],
    computeTables: [...record.computeTables],
    finishedAt: timestampOrNull(facts.finishedAt),
    purgedAt: timestampOrNull(facts.purgedAt),
    attemptsWasted: facts.attemptsWasted,
    ...viewTiming(record),
    ...viewFailures(record.failures),
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

function viewTiming({
  facts,
  timing,
  now,
}: TaskRecord): Pick<TaskView, 'attemptSeconds' | 'workers' | 'stragglers'> {
  if (timing === undefined) return { attemptSeconds: null, workers: 0, stragglers: [] }
  const { durations, underWay } = timing
  const [median, p95] = [quantileOf(durations, 0.5), quantileOf(durations, 0.95)]
  const leased = facts.cancelled ? [] : underWay.filter(({ state }) => state === 'leased')
  const holders = new Set(leased.flatMap(({ holder }) => holder ?? []))
  const overdue = facts.cancelled ? [] : overdueOf(facts, timing, now)
  return {
    attemptSeconds:
      median === null || p95 === null
        ? null
        : { median: rounded(median), p95: rounded(p95), attempts: countOf(durations) },
    workers: holders.size,
    stragglers: overdue.slice(0, MAX_LISTED_STRAGGLERS).map(({ partition, expectedMillis }) => ({
      partition_name: nameOf(facts.taskId, partition),
      holder: partition.holder,
      startedAt: timestampOf(partition.leasedAt),
      leaseExpiresAt: timestampOf(partition.dueAt),
      expectedSeconds: rounded(expectedMillis),
    })),
  }
}

/** Two significant digits: the values are estimates. */
const rounded = (millis: number): number => Number((millis / 1000).toPrecision(2))

function viewFailures(failures: TaskRecord['failures']): Pick<TaskView, 'failures' | 'failuresOmitted'> {
  const { groups, others } = failures ?? { groups: [], others: 0 }
  return {
    failures: groups
      .toSorted((a, b) => b.count - a.count || b.lastAt - a.lastAt)
      .map(({ firstAt, lastAt, ...group }) => ({
        ...group,
        firstAt: timestampOf(firstAt),
        lastAt: timestampOf(lastAt),
      })),
    failuresOmitted: others,
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
    ...progressView(row),
    firstCallBackAt: timestampOf(facts.firstCallBackAt),
    lastCallBackAt: timestampOf(facts.lastCallBackAt),
    ...paceOf(row, now),
  }
}

function viewLevel(facts: TaskFacts, lane: LaneFacts): LevelView {
  const { open, partitions, records, indexes } = laneView(facts, lane)
  const { busyMillis = 0, attemptsDone = 0 } = lane
  return {
    level: lane.level,
    open,
    partitions,
    records,
    meanAttemptSeconds: attemptsDone === 0 ? null : rounded(busyMillis / attemptsDone),
    indexes: { ...indexes, gaps: [...indexes.gaps] },
  }
}
