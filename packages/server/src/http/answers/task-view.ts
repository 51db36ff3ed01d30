import { type LevelView, MAX_LISTED_STRAGGLERS, type TaskSummary, type TaskView } from '@baton/protocol'
import { countOf, quantileOf } from '../../handoff/rules/durations.ts'
import type { Policy } from '../../handoff/rules/policy.ts'
import { taskState } from '../../handoff/rules/task-course.ts'
import type { TaskFacts } from '../../handoff/rules/task-facts.ts'
import { paceOf } from '../../handoff/shown/eta.ts'
import { missingPartitions, shownLane, shownProgress, waitingFor } from '../../handoff/shown/shown-state.ts'
import type { LaneFacts, TaskRecord, TaskRow } from '../../handoff/shown/task-record.ts'
import { overdueOf } from '../../handoff/shown/time-left.ts'
import { nameOf } from './partition-view.ts'
import { viewSettings } from './task-settings-view.ts'
import { timestampOf, timestampOrNull } from './wire-time.ts'

/** A task as the wire shows it. */
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

/** More digits would promise more than is known. */
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
    ...shownProgress(row),
    firstCallBackAt: timestampOf(facts.firstCallBackAt),
    lastCallBackAt: timestampOf(facts.lastCallBackAt),
    ...paceOf(row, now),
  }
}

function viewLevel(facts: TaskFacts, lane: LaneFacts): LevelView {
  const { open, partitions, records, indexes } = shownLane(facts, lane)
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
