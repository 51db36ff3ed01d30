import { of, type RowOf } from './fields.ts'
import type { Requester } from './rules/stamps.ts'

// The audit: who changed what. A record is written in the entry of the change, so there is none without the
// other, and every node reads the same.

/** What a request did. */
export interface AuditedChange {
  readonly action: string
  /** Null if the change concerns no task, or all. */
  readonly taskId?: string | null
  /** The partition, instance, table or subscription that was changed. */
  readonly target?: string | null
  /** How many partitions, or other things, were changed. */
  readonly changed: number
}

export const auditFields = {
  /** Increases with each record. */
  id: 'key',
  at: 'integer',
  changed: 'integer',
  action: 'text',
  taskId: 'text?',
  target: 'text?',
  name: 'text?',
  address: 'text?',
  request: of<Requester['body']>('json?'),
} as const
export type AuditRecord = RowOf<typeof auditFields>

/** Null: any. */
export interface AuditQuery {
  readonly taskId: string | null
  readonly name: string | null
  /** Only records with a smaller id. The newest come first. */
  readonly before: number
  readonly limit: number
}

export interface AuditPage {
  readonly records: readonly AuditRecord[]
  /** The id of the last one, if there are more. */
  readonly next: number | null
}

/** Old records, and those beyond the newest `most`. */
export interface ForgetAudit {
  readonly before: number
  readonly most: number
  readonly limit: number
}

/** The oldest records are deleted above this number, before their retention ends. */
export const MOST_AUDIT_RECORDS = 100_000

export const DEFAULT_AUDIT_MILLIS = 90 * 86_400_000
