import {
  type LevelView,
  type PartitionRow,
  partitionName,
  type StateCounts,
  type TaskSummary,
  type TaskView,
} from '@baton/protocol'
import { paceOf } from './eta.ts'
import { isLaneOpen } from './lane-rules.ts'
import type { PartitionState } from './life-cycle.ts'
import type { PartitionRecord } from './partition-record.ts'
import { type Tally, totalOf, unfinishedOf } from './tally.ts'
import { taskState } from './task-course.ts'
import type { LaneFacts, TaskFacts, TaskRecord, TaskRow } from './task-record.ts'

/**
 * Tasks as people see them. What a store counts is turned into what it means: a partition that
 * waits is ready where its lane is open and held where it is not, and of a cancelled task all that
 * was not done is cancelled, whether or not its rows have been rewritten yet.
 */
export function viewTask(record: TaskRecord): TaskView {
  const { facts } = record
  const known = totalOf(facts.partitions)
  return {
    ...summariseTask(record, record.now),
    expectedPartitions: facts.expectedPartitions,
    missingPartitions:
      facts.expectedPartitions === null ? null : Math.max(0, facts.expectedPartitions - known),
    levelBarrier: facts.levelBarrier,
    waitingFor: waitingFor(record),
    settledByDelivery: facts.delivered,
    levels: record.lanes.map((lane) => viewLevel(facts, lane)),
    levelsOmitted: record.lanesOmitted,
    computeTables: [...record.computeTables],
    finishedAt: isoOrNull(facts.finishedAt),
    purgedAt: isoOrNull(facts.purgedAt),
    attemptsWasted: facts.attemptsWasted,
    reported: {
      declared: facts.reportedDeclared,
      reported: facts.reportedRecords,
      mismatched: facts.mismatched,
      mismatches: record.mismatches.map(({ level, index, spelling, declared, reported }) => ({
        partition_name: spelling ?? partitionName(facts.taskId, level, index),
        declared,
        reported,
      })),
    },
  }
}

export function summariseTask({ facts, openLane, pace }: TaskRow, now: number): TaskSummary {
  const openBehindBarrier = facts.levelBarrier ? openLane : null
  return {
    taskId: facts.taskId,
    state: taskState(facts),
    generation: facts.generation,
    sealed: facts.sealed,
    partitions: shownCounts(facts, facts.partitions, openBehindBarrier?.partitions ?? null),
    records: shownCounts(facts, facts.records, openBehindBarrier?.records ?? null),
    firstCallBackAt: iso(facts.firstCallBackAt),
    lastCallBackAt: iso(facts.lastCallBackAt),
    ...paceOf(facts, pace, now),
  }
}

export function viewPartition(facts: TaskFacts, record: PartitionRecord): PartitionRow {
  const state = shownState(facts, record)
  return {
    taskId: facts.taskId,
    computeTableName: record.computeTableName,
    partition_name: record.spelling ?? partitionName(facts.taskId, record.level, record.index),
    record_count: record.recordCount,
    priorityLevel: record.level,
    state,
    attempts: record.attempts + (state === 'leased' ? 1 : 0),
    holder: state === 'leased' ? record.holder : null,
    leaseExpiresAt: state === 'leased' ? isoOrNull(record.dueAt) : null,
    readyAt: state === 'delayed' ? isoOrNull(record.dueAt) : null,
    lastReason: record.reason,
    reportedRecords: record.reportedRecords,
    calledBackAt: iso(record.calledBackAt),
    settledAt: isoOrNull(record.settledAt),
  }
}

function viewLevel(facts: TaskFacts, lane: LaneFacts): LevelView {
  // Behind a barrier with nothing left to wait for, nothing is kept back.
  const open = isLaneOpen(facts, lane.level) || (facts.levelBarrier && taskState(facts) === 'done')
  const span = lane.lastIndex - lane.firstIndex + 1
  return {
    level: lane.level,
    open,
    partitions: shownCounts(facts, lane.partitions, open ? lane.partitions : null),
    records: shownCounts(facts, lane.records, open ? lane.records : null),
    indexes: {
      first: lane.firstIndex,
      last: lane.lastIndex,
      missing: span - totalOf(lane.partitions),
      gaps: [...lane.gaps],
    },
  }
}

/** The lowest unfinished level, where a level above it has to wait for it. */
function waitingFor({ facts, lanes, lanesOmitted }: TaskRecord): TaskView['waitingFor'] {
  if (!facts.levelBarrier || facts.openLevel === null || facts.cancelled) return null
  const lane = lanes.find(({ level }) => level === facts.openLevel)
  const isLast = lanesOmitted === 0 && lanes.at(-1)?.level === facts.openLevel
  if (lane === undefined || isLast) return null
  return { level: lane.level, parked: lane.partitions.parked, unfinished: unfinishedOf(lane.partitions) }
}

/** `open` is the part of the tally that stands in open lanes, where only a part of it does. */
function shownCounts(facts: TaskFacts, tally: Tally, open: Tally | null): StateCounts {
  const total = totalOf(tally)
  const none = { ready: 0, held: 0, leased: 0, delayed: 0, parked: 0 }
  if (facts.cancelled) return { total, ...none, done: tally.done, cancelled: total - tally.done }
  const waiting = tally.ready + tally.held
  const allOpen = !facts.paused && !facts.levelBarrier
  const ready = allOpen ? waiting : facts.paused || open === null ? 0 : open.ready + open.held
  return { total, ...tally, ready, held: waiting - ready }
}

function shownState(facts: TaskFacts, { state, level }: PartitionRecord): PartitionState {
  if (facts.cancelled) return state === 'done' ? 'done' : 'cancelled'
  if (state !== 'ready' && state !== 'held') return state
  return isLaneOpen(facts, level) ? 'ready' : 'held'
}

function iso(at: number): string {
  return new Date(at).toISOString()
}

function isoOrNull(at: number | null): string | null {
  return at === null ? null : iso(at)
}
