import { refusalDetail } from '@baton/protocol'
import type { GrantedLease, PulledPartition } from '../../handoff/partition.ts'
import type { RefusalCode } from '../../handoff/rules/settlement.ts'
import { secondsOf, timestampOf } from './wire-values.ts'

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
