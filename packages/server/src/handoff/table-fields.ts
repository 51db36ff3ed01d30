import type { InstanceRole, InstanceTotals } from '@baton/protocol'
import { type AuditRecord, auditFields } from './audit.ts'
import type { RowChanges } from './disk.ts'
import type { Fields } from './fields.ts'
import { deliveryFields, type StoredDelivery, type SubscriptionRow, subscriptionFields } from './outbox.ts'
import { partitionFields, type StoredPartition } from './partition.ts'
import {
  checkpointFields,
  type IndexRangeOfLane,
  keyFields,
  laneFields,
  laneTableFields,
  levelFields,
  paceFields,
  rangeFields,
  type StoredCheckpoint,
  type StoredKey,
  type StoredLane,
  type StoredLaneTable,
  type StoredLevel,
  type StoredPace,
  type StoredTableSettings,
  type StoredTask,
  type StoredThroughput,
  tableSettingsFields,
  taskFields,
  throughputFields,
} from './stored.ts'

// The rows of a store, with their fields: the tables of each disk and the sections of an export follow from them.
// The other fields are in stored.ts and partition.ts. A field added there needs no change here.

export interface StoredTable {
  readonly task: number
  readonly name: string
}

export const tableFields: Fields<StoredTable> = { task: 'integer', name: 'text' }

export interface StoredProduced {
  readonly instance: string
  readonly task: number
  /** When the instance last called the task back. */
  readonly at: number
}

export const producedFields: Fields<StoredProduced> = { instance: 'text', task: 'integer', at: 'integer' }

export interface StoredInstance extends InstanceTotals {
  readonly instanceId: string
  readonly role: InstanceRole
  readonly firstSeenAt: number
  readonly lastSeenAt: number
  readonly version: string | null
  readonly startedAt: number | null
  readonly draining: boolean
  readonly load: number | null
  readonly lostUnlessSeenSince: number | null
  readonly pausedAt: number | null
}

export const instanceFields: Fields<StoredInstance> = {
  instanceId: 'text',
  role: 'text',
  firstSeenAt: 'integer',
  lastSeenAt: 'integer',
  version: 'text?',
  startedAt: 'integer?',
  draining: 'flag',
  load: 'integer?',
  pulls: 'integer',
  partitions: 'integer',
  records: 'integer',
  done: 'integer',
  failed: 'integer',
  released: 'integer',
  expired: 'integer',
  revoked: 'integer',
  callBacks: 'integer',
  calledBack: 'integer',
  lostUnlessSeenSince: 'integer?',
  pausedAt: 'integer?',
}

/** The rows of each table of a disk, which are those of each section of an export. */
export interface StoredRows {
  readonly tasks: StoredTask
  readonly lanes: StoredLane
  readonly levels: StoredLevel
  readonly laneTables: StoredLaneTable
  /** As ranges that neither overlap nor touch. */
  readonly ranges: IndexRangeOfLane
  /** In the order of their first use within a task. */
  readonly tables: StoredTable
  readonly keys: StoredKey
  readonly pace: StoredPace
  readonly instances: StoredInstance
  readonly produced: StoredProduced
  readonly partitions: StoredPartition
  readonly checkpoints: StoredCheckpoint
  readonly subscriptions: SubscriptionRow
  readonly deliveries: StoredDelivery
  readonly throughput: StoredThroughput
  readonly audit: AuditRecord
  readonly tableSettings: StoredTableSettings
}

export type Section = keyof StoredRows

/** Changes that have no rows, or whose rows are in other sections. */
type WithoutSection = 'nextIds' | 'totals' | 'changes'

/**
 * Everything the engine writes must have a table, and is exported: a change of a new kind does not compile here
 * until it has a section.
 */
type WithoutTable = Exclude<
  Exclude<keyof RowChanges, 'outbox'> | keyof RowChanges['outbox'],
  Section | WithoutSection
>
true satisfies [WithoutTable] extends [never] ? true : WithoutTable

/** The sections in order. Rows come after the rows they belong to. */
export const storedFields: { readonly [Name in Section]: Fields<StoredRows[Name]> } = {
  tasks: taskFields,
  lanes: laneFields,
  levels: levelFields,
  laneTables: laneTableFields,
  ranges: rangeFields,
  tables: tableFields,
  keys: keyFields,
  pace: paceFields,
  instances: instanceFields,
  produced: producedFields,
  partitions: partitionFields,
  checkpoints: checkpointFields,
  subscriptions: subscriptionFields,
  deliveries: deliveryFields,
  throughput: throughputFields,
  audit: auditFields,
  tableSettings: tableSettingsFields,
}

export const sections = Object.keys(storedFields) as Section[]

/** Whether the rows have counts by state. */
export const isTallied = (section: Section): boolean => section === 'tasks' || section === 'lanes'
