import {
  type Attempt,
  type HeldLease,
  type InstanceAttempt,
  type InstanceStatus,
  type LeaseProgress,
  type ParkedEvent,
  type PartitionRow,
  type ProducedTask,
  partitionName,
  refusalDetail,
} from '@baton/protocol'
import { statusOf } from '../../handoff/instance-status.ts'
import type { GrantedLease, PulledPartition } from '../../handoff/partition.ts'
import type { Progress } from '../../handoff/rules/progress.ts'
import type { RefusalCode } from '../../handoff/rules/settlement.ts'
import type { TaskFacts } from '../../handoff/rules/task.ts'
import type {
  HeldLeaseDetails,
  InstanceAttemptDetails,
  InstanceDetails,
  NodeDetails,
  ParkedNotice,
  PartitionDetails,
  ProducedTaskDetails,
} from '../../handoff/views/queries.ts'
import { type AttemptView, attemptViews, partitionView } from '../../handoff/views/view-state.ts'

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

export function viewInstance(instance: InstanceDetails): InstanceStatus {
  const { instanceId, role, firstSeenAt, lastSeenAt, leases, pausedAt, totals, node, tasks, leadsSince } =
    instance
  return {
    instanceId,
    role,
    status: statusOf(instance),
    firstSeenAt: timestampOf(firstSeenAt),
    lastSeenAt: timestampOf(lastSeenAt),
    leases,
    ...(pausedAt === null ? {} : { pausedAt: timestampOf(pausedAt) }),
    totals,
    ...(node === null ? {} : nodeFields(node)),
    ...(leadsSince === null ? {} : { leadsSince: timestampOf(leadsSince) }),
    ...(tasks !== undefined && (role === 'producer' || tasks.length > 0)
      ? { tasks: tasks.map(viewProducedTask) }
      : {}),
  }
}

const viewProducedTask = ({ owners: _, lastCallBackAt, ...task }: ProducedTaskDetails): ProducedTask => ({
  ...task,
  lastCallBackAt: timestampOf(lastCallBackAt),
})

const nodeFields = ({ version, startedAt, load }: NodeDetails) => ({
  version,
  startedAt: timestampOf(startedAt),
  ...(load === null ? {} : { load: load / 100 }),
})

export function viewHeldLease(lease: HeldLeaseDetails): HeldLease {
  const { attempt, leasedAt, expiresAt } = lease
  return {
    ...descriptorOf(lease),
    attempt,
    leasedAt: timestampOf(leasedAt),
    expiresAt: timestampOf(expiresAt),
    ...viewWork(lease),
  }
}

interface Work {
  readonly progress?: Progress | null
  readonly checkpoint?: string
}

/** How far the work on a partition is. */
export function viewWork({ progress = null, checkpoint }: Work) {
  return {
    ...(progress === null ? {} : { progress: viewProgress(progress) }),
    ...(checkpoint === undefined ? {} : { checkpoint }),
  }
}

const viewProgress = ({ records, note, at }: Progress): LeaseProgress => ({
  ...(records === null ? {} : { records }),
  ...(note === null ? {} : { note }),
  at: timestampOf(at),
})

export function viewInstanceAttempt(ended: InstanceAttemptDetails): InstanceAttempt {
  const { attempt, startedAt, endedAt, outcome, reason, records } = ended
  return {
    ...descriptorOf(ended),
    attempt,
    startedAt: timestampOf(startedAt),
    endedAt: timestampOf(endedAt),
    outcome,
    reason,
    records,
  }
}

function descriptorOf(named: HeldLeaseDetails | InstanceAttemptDetails) {
  const { taskId, computeTableName, recordCount, level } = named
  return {
    taskId,
    computeTableName,
    partition_name: nameOf(taskId, named),
    record_count: recordCount,
    priorityLevel: level,
  }
}

export function viewPartition(facts: TaskFacts, record: PartitionDetails): PartitionRow {
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
    history: attemptViews(facts, record).map(viewAttempt),
    reportedRecords: record.reportedRecords,
    calledBackAt: timestampOf(record.calledBackAt),
    settledAt: timestampOrNull(record.settledAt),
    ...viewWork(record),
    ...optionalFieldsOf(record),
  }
}

function optionalFieldsOf({ extraFields = null, traceparent = null }: PartitionDetails) {
  return {
    ...(extraFields === null ? {} : { fields: JSON.parse(extraFields) as Record<string, unknown> }),
    ...(traceparent === null ? {} : { traceparent }),
  }
}

const viewAttempt = ({ startedAt, endedAt, ...attempt }: AttemptView): Attempt => ({
  ...attempt,
  startedAt: timestampOf(startedAt),
  endedAt: timestampOrNull(endedAt),
})

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

/**
 * Serializes handed-out partitions to JSON. They are most of what the service sends and have a fixed shape,
 * so this does not use JSON.stringify for whole objects, only to quote strings. Partitions of one answer
 * mostly share their task and table, so these are quoted only when they change (bench scenario batches).
 */
export function pulledPartitionWriter(
  tableField: string,
): (partitions: readonly PulledPartition[]) => string {
  const tableKey = `,${JSON.stringify(tableField)}:`
  const quotedTask = quoter()
  const quotedTable = quoter()
  const write = (partition: PulledPartition) => {
    const { taskId, computeTableName, spelling, level, index, recordCount, lease } = partition
    const task = quotedTask(taskId)
    const name = spelling === null ? `${task.slice(0, -1)}-${level}-${index}"` : JSON.stringify(spelling)
    return (
      `{"taskId":${task}${tableKey}${quotedTable(computeTableName)},"partition_name":${name}` +
      `,"record_count":${recordCount},"priorityLevel":${level},"lease":${lease === null ? 'null' : leaseJson(lease)}${optionalFieldsJson(partition)}}`
    )
  }
  return (partitions) => {
    let text = '['
    for (const partition of partitions) text += text === '[' ? write(partition) : `,${write(partition)}`
    return `${text}]`
  }
}

/** The optional fields. `extraFields` is a JSON object already. */
function optionalFieldsJson({ extraFields = null, traceparent = null }: PulledPartition): string {
  const trace = traceparent === null ? '' : `,"traceparent":"${traceparent}"`
  return extraFields === null ? trace : `${trace},${extraFields.slice(1, -1)}`
}

/** Quotes strings as JSON, and caches the last one. */
function quoter(): (text: string) => string {
  let last = ''
  let quoted = '""'
  return (text) => {
    if (text !== last) {
      last = text
      quoted = JSON.stringify(text)
    }
    return quoted
  }
}

/** Lease ids contain no characters that JSON escapes. */
function leaseJson(lease: GrantedLease): string {
  const { id, attempt, fencingToken, expiresAt, expiresInMillis, checkpoint } = lease
  const more = checkpoint === null ? '' : `,"checkpoint":${JSON.stringify(checkpoint)}`
  return (
    `{"id":"${id}","attempt":${attempt},"fencingToken":${fencingToken}` +
    `,"expiresAt":"${timestampOf(expiresAt)}","expiresInSeconds":${secondsOf(expiresInMillis)}${more}}`
  )
}

interface RefusedLease {
  readonly leaseId: string
  readonly code: RefusalCode
}

/** The JSON array of refused leases, each with its code and a readable explanation. */
export function refusalsJson(refused: readonly RefusedLease[]): string {
  if (refused.length === 0) return '[]'
  return JSON.stringify(refused.map(({ leaseId, code }) => ({ leaseId, code, detail: refusalDetail(code) })))
}

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

/** Renames `computeTableName` to the field name that is configured for the wire format, as in its schemas. */
export function tableFieldRenamer(tableField: string) {
  return <Row extends Pick<PartitionRow, 'taskId' | 'computeTableName'>>(row: Row): Row => {
    if (tableField === 'computeTableName') return row
    const { taskId, computeTableName, ...others } = row
    return { taskId, [tableField]: computeTableName, ...others } as unknown as Row
  }
}
