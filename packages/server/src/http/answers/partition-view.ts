import type { Attempt, LeaseProgress, ParkedEvent, PartitionRow } from '@baton/protocol'
import type { Progress } from '../../handoff/rules/progress.ts'
import type { TaskFacts } from '../../handoff/rules/task.ts'
import type { ParkedNotice, PartitionDetails } from '../../handoff/views/queries.ts'
import { type AttemptView, attemptViews, partitionView } from '../../handoff/views/view-state.ts'
import { nameOf, timestampOf, timestampOrNull } from './wire-values.ts'

export function presentPartition(facts: TaskFacts, record: PartitionDetails): PartitionRow {
  const { state, attempts, holder, leaseEndsAt, readyAt } = partitionView(facts, record)
  return {
    taskId: facts.taskId,
    computeTableName: record.computeTable,
    partition_name: nameOf(facts.taskId, record),
    record_count: record.recordCount,
    priorityLevel: record.level,
    state,
    attempts,
    holder,
    leaseExpiresAt: timestampOrNull(leaseEndsAt),
    readyAt: timestampOrNull(readyAt),
    lastReason: record.reason,
    history: attemptViews(facts, record).map(presentAttempt),
    reportedRecords: record.reportedRecords,
    calledBackAt: timestampOf(record.calledBackAt),
    settledAt: timestampOrNull(record.settledAt),
    ...presentWork(record),
    ...optionalFieldsOf(record),
  }
}

function optionalFieldsOf({ extraFields = null, traceparent = null }: PartitionDetails) {
  return {
    ...(extraFields === null ? {} : { fields: JSON.parse(extraFields) as Record<string, unknown> }),
    ...(traceparent === null ? {} : { traceparent }),
  }
}

const presentAttempt = ({ startedAt, endedAt, ...attempt }: AttemptView): Attempt => ({
  ...attempt,
  startedAt: timestampOf(startedAt),
  endedAt: timestampOrNull(endedAt),
})

export const presentParked = (notice: ParkedNotice): ParkedEvent => ({
  taskId: notice.taskId,
  partition_name: nameOf(notice.taskId, notice),
  priorityLevel: notice.level,
  attempts: notice.attempts,
  reason: notice.reason,
})

interface Work {
  readonly progress?: Progress | null
  readonly checkpoint?: string
}

/** How far the work on a partition is. */
export function presentWork({ progress = null, checkpoint }: Work) {
  return {
    ...(progress === null ? {} : { progress: presentProgress(progress) }),
    ...(checkpoint === undefined ? {} : { checkpoint }),
  }
}

const presentProgress = ({ records, note, at }: Progress): LeaseProgress => ({
  ...(records === null ? {} : { records }),
  ...(note === null ? {} : { note }),
  at: timestampOf(at),
})

/** Adds where the log of each attempt is found. Without a name of the holder there is none. */
export function logUrlsAdder(template: string | null) {
  return (row: PartitionRow): PartitionRow => {
    if (template === null) return row
    const { taskId, partition_name, history } = row
    return {
      ...row,
      history: history.map((attempt) => {
        const { holder, attempt: number } = attempt
        if (holder === null) return attempt
        const values = { holder, task: taskId, partition: partition_name, attempt: String(number) }
        return { ...attempt, logUrl: filledIn(template, values) }
      }),
    }
  }
}

const filledIn = (template: string, values: Readonly<Record<string, string>>): string =>
  template.replaceAll(/\{(\w+)\}/g, (placeholder, name: string) =>
    Object.hasOwn(values, name) ? encodeURIComponent(values[name] ?? '') : placeholder,
  )
