import { partitionName } from '@baton/protocol'
import type { GrantedLease, HandedOut } from '../handoff/store.ts'

/**
 * Writes handed-out partitions as the JSON text of the wire. By hand, because this is most of what the service ever
 * sends and its shape is fixed; texts from outside are quoted by JSON.stringify.
 */
export function handedOutWriter(tableField: string): (partitions: readonly HandedOut[]) => string {
  const tableKey = `,${JSON.stringify(tableField)}:`
  const write = ({ taskId, computeTableName, spelling, level, index, recordCount, lease }: HandedOut) =>
    `{"taskId":${JSON.stringify(taskId)}${tableKey}${JSON.stringify(computeTableName)}` +
    `,"partition_name":${JSON.stringify(spelling ?? partitionName(taskId, level, index))}` +
    `,"record_count":${recordCount},"priorityLevel":${level},"lease":${lease === null ? 'null' : leaseJson(lease)}}`
  return (partitions) => {
    const [only] = partitions
    if (only === undefined) return '[]'
    if (partitions.length === 1) return `[${write(only)}]`
    return `[${partitions.map(write).join(',')}]`
  }
}

/** A lease id consists of characters that JSON leaves as they are. */
function leaseJson({ id, attempt, expiresAt, expiresInMillis }: GrantedLease): string {
  return (
    `{"id":"${id}","attempt":${attempt},"expiresAt":"${timestampOf(expiresAt)}"` +
    `,"expiresInSeconds":${secondsOf(expiresInMillis)}}`
  )
}

let formatted = { millis: Number.NaN, text: '' }

/** Leases that were granted together end together: most are formatted already. */
export function timestampOf(millis: number): string {
  if (formatted.millis !== millis) formatted = { millis, text: new Date(millis).toISOString() }
  return formatted.text
}

export const secondsOf = (millis: number): number => Math.max(millis, 0) / 1000
