import {
  isUnfinishedState,
  type LevelView,
  MAX_LISTED_STRAGGLERS,
  type TaskSettings as ShownSettings,
  settingNames,
  type TaskSettingsRequest,
  type TaskSummary,
  type TaskView,
} from '@baton/protocol'
import { countOf, quantileOf } from '../../handoff/rules/durations.ts'
import { byWeight } from '../../handoff/rules/failures.ts'
import {
  type Policy,
  policyOf,
  type TaskSettings,
  type TaskSettingsChange,
  weightOfTask,
} from '../../handoff/rules/policy.ts'
import type { Stamp } from '../../handoff/rules/stamps.ts'
import { type TaskFacts, taskState } from '../../handoff/rules/task.ts'
import { paceOf } from '../../handoff/views/eta.ts'
import type { LaneFacts, TaskDetails, TaskRow } from '../../handoff/views/queries.ts'
import { overdueOf } from '../../handoff/views/time-left.ts'
import { laneView, missingPartitions, progressView, waitingFor } from '../../handoff/views/view-state.ts'
import { presentWork } from './partition-view.ts'
import { nameOf, timestampOf, timestampOrNull } from './wire-values.ts'

export function presentTask(record: TaskDetails, policy: Policy): TaskView {
  const { facts } = record
  return {
    ...summariseTask(record, record.now),
    control: presentStamps(facts),
    levelBarrier: facts.levelBarrier,
    settings: presentSettings(policy, facts),
    waitingFor: waitingFor(record),
    settledByDelivery: facts.delivered,
    levels: record.lanes.map((lane) => presentLevel(facts, lane)),
    levelsOmitted: record.lanesOmitted,
    calledBackBy: [...facts.owners],
    computeTables: [...record.computeTables],
    finishedAt: timestampOrNull(facts.finishedAt),
    purgedAt: timestampOrNull(facts.purgedAt),
    attemptsWasted: facts.attemptsWasted,
    ...presentTiming(record),
    failures: presentFailures(record.failures),
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

function presentStamps({ stamps }: TaskFacts): TaskView['control'] {
  const view = (stamp: Stamp | undefined) =>
    stamp === undefined ? null : { at: timestampOf(stamp[0]), name: stamp[1] }
  const { paused, cancelled, sealed, changed } = stamps ?? {}
  const pause =
    paused === undefined ? null : { at: timestampOf(paused[0]), name: paused[1], because: paused[2] ?? null }
  return { paused: pause, cancelled: view(cancelled), sealed: view(sealed), changed: view(changed) }
}

function presentTiming({
  facts,
  timing,
  now,
}: TaskDetails): Pick<TaskView, 'attemptSeconds' | 'workers' | 'stragglers'> {
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
      ...presentWork(partition),
    })),
  }
}

/** Two significant digits: the values are estimates. */
const rounded = (millis: number): number => Number((millis / 1000).toPrecision(2))

const presentFailures = (failures: TaskDetails['failures']): TaskView['failures'] =>
  byWeight(failures).map(({ firstAt, lastAt, ...group }) => ({
    ...group,
    firstAt: timestampOf(firstAt),
    lastAt: timestampOf(lastAt),
  }))

export function summariseTask(row: TaskRow, now: number): TaskSummary {
  const { facts, openLane, reason = null } = row
  const state = taskState(facts, openLane)
  return {
    taskId: facts.taskId,
    state,
    generation: facts.generation,
    sealed: facts.sealed,
    expectedPartitions: facts.expectedPartitions,
    missingPartitions: missingPartitions(facts),
    ...progressView(row),
    reason: isUnfinishedState(state) ? reason : null,
    firstCallBackAt: timestampOf(facts.firstCallBackAt),
    lastCallBackAt: timestampOf(facts.lastCallBackAt),
    ...paceOf(row, now),
  }
}

function presentLevel(facts: TaskFacts, lane: LaneFacts): LevelView {
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

/** The effective settings of a task: its own, else those of the service. */
export function presentSettings(
  policy: Policy,
  task: { readonly settings: TaskSettings | null; readonly levelBarrier: boolean },
): ShownSettings {
  const { settings, levelBarrier } = task
  const { leaseMillis, maxAttempts, backoffMillis, backoffMaxMillis } = policyOf(policy, task)
  const set = new Set(Object.keys(settings ?? {}).map((name) => name.replace('Millis', 'Seconds')))
  if (levelBarrier !== policy.levelBarrier) set.add('levelBarrier')
  return {
    leaseSeconds: leaseMillis / 1000,
    maxAttempts,
    backoffSeconds: backoffMillis / 1000,
    backoffMaxSeconds: backoffMaxMillis / 1000,
    levelBarrier,
    maxLeases: settings?.maxLeases ?? null,
    weight: weightOfTask(task),
    pauseAfterFailures: settings?.pauseAfterFailures ?? null,
    own: settingNames.filter((name) => set.has(name)),
  }
}

export function settingsChange(sent: TaskSettingsRequest): TaskSettingsChange {
  const { leaseSeconds, backoffSeconds, backoffMaxSeconds, ...others } = sent
  const millis = (name: string, seconds: number | null | undefined) =>
    seconds === undefined ? {} : { [name]: seconds === null ? null : Math.round(seconds * 1000) }
  return {
    ...others,
    ...millis('leaseMillis', leaseSeconds),
    ...millis('backoffMillis', backoffSeconds),
    ...millis('backoffMaxMillis', backoffMaxSeconds),
  }
}
