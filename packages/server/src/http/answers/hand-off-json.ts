import { refusalDetail } from '@baton/protocol'
import type { RefusalCode } from '../../handoff/rules/settlement.ts'
import type { GrantedLease, PulledPartition } from '../../handoff/store.ts'
import { secondsOf, timestampOf } from './views.ts'

/**
 * Writes handed-out partitions as the JSON text of the wire. By hand, because this is most of what the service ever
 * sends and its shape is fixed; texts from outside are quoted by JSON.stringify. What is handed out together mostly
 * has its task and table in common: quoting those only when they change makes 50 partitions 33 µs instead of 71.
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
      `,"record_count":${recordCount},"priorityLevel":${level},"lease":${lease === null ? 'null' : leaseJson(lease)}${keptJson(partition)}}`
    )
  }
  return (partitions) => {
    let text = '['
    for (const partition of partitions) text += text === '[' ? write(partition) : `,${write(partition)}`
    return `${text}]`
  }
}

/** What few partitions have. Fields beyond the contract are JSON already. */
function keptJson({ extraFields = null, traceparent = null }: PulledPartition): string {
  const trace = traceparent === null ? '' : `,"traceparent":"${traceparent}"`
  return extraFields === null ? trace : `${trace},${extraFields.slice(1, -1)}`
}

/** Remembers the last text. */
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

/** A lease id consists of characters that JSON leaves as they are. */
function leaseJson({ id, attempt, expiresAt, expiresInMillis }: GrantedLease): string {
  return (
    `{"id":"${id}","attempt":${attempt},"expiresAt":"${timestampOf(expiresAt)}"` +
    `,"expiresInSeconds":${secondsOf(expiresInMillis)}}`
  )
}

interface RefusedLease {
  readonly leaseId: string
  readonly code: RefusalCode
}

/** The wire's list of leases for which a request had no effect, each with words for a person. */
export function refusalsJson(refused: readonly RefusedLease[]): string {
  if (refused.length === 0) return '[]'
  return JSON.stringify(refused.map(({ leaseId, code }) => ({ leaseId, code, detail: refusalDetail(code) })))
}
