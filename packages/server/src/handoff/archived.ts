import type { InstanceRole, InstanceTotals } from '@baton/protocol'
import { type AuditRecord, auditFields } from './audit.ts'
import type { RowChanges } from './disk.ts'
import type { Fields, Kind } from './fields.ts'
import { deliveryFields, type StoredDelivery, type SubscriptionRow, subscriptionFields } from './outbox.ts'
import { partitionFields, type StoredPartition } from './partition.ts'
import { StoreRefused } from './store.ts'
import {
  checkpointFields,
  type IndexRangeOfLane,
  keyFields,
  laneFields,
  laneTableFields,
  levelFields,
  type NextIds,
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

// The content of a store, independent of its kind: the rows that an export writes, an import reads and a
// check verifies. The fields are those of stored.ts and partition.ts. A field added there needs no change
// here.

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
  readonly expectedAt: number | null
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
  expectedAt: 'integer?',
  pausedAt: 'integer?',
}

export interface ArchivedRows {
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

export type Section = keyof ArchivedRows

/** Changes that have no rows, or whose rows are in other sections. */
type WithoutSection = 'nextIds' | 'totals' | 'changes'

/**
 * Everything the engine writes must be archived: a change of a new kind does not compile here until it has a
 * section.
 */
type NotArchived = Exclude<
  Exclude<keyof RowChanges, 'outbox'> | keyof RowChanges['outbox'],
  Section | WithoutSection
>
true satisfies [NotArchived] extends [never] ? true : NotArchived

export type PerSection<Value> = Readonly<Record<Section, Value>>

/** The sections in order. Rows come after the rows they belong to. */
export const archivedFields: { readonly [Name in Section]: Fields<ArchivedRows[Name]> } = {
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

export const sections = Object.keys(archivedFields) as Section[]

/** Whether the rows have counts by state. */
export const isTallied = (section: Section): boolean => section === 'tasks' || section === 'lanes'

/** Fields that do not fit into a JavaScript number. They are written as text. */
export const bigFields = (section: Section): ReadonlySet<string> =>
  new Set(
    Object.entries<Kind>(archivedFields[section]).flatMap(([field, kind]) => (kind === 'tag' ? [field] : [])),
  )

export const perSection = <Value>(value: (section: Section) => Value): PerSection<Value> =>
  Object.fromEntries(sections.map((section) => [section, value(section)])) as PerSection<Value>

/** The names of all fields, in the order in which an export has them. */
export const fieldNames: PerSection<readonly string[]> = perSection((section) => [
  ...Object.keys(archivedFields[section]),
  ...(isTallied(section) ? ['partitions', 'records'] : []),
])

/** Some rows of one section. */
export type RowBatch = {
  [Name in Section]: { readonly section: Name; readonly rows: readonly ArchivedRows[Name][] }
}[Section]

/** A snapshot of a store, to be read once. */
export interface ArchiveSource {
  readonly nextIds: NextIds
  readonly counts: PerSection<number>
  /** All rows, section by section. */
  batches(): AsyncIterable<RowBatch>
  /** Bodies of entries that are durable but not flushed. */
  readonly unflushed: readonly string[]
}

/** A store without other users. */
export interface ArchiveTarget {
  /**
   * Imports everything or nothing. `counts` are the expected numbers of rows. Rejects with StoreRefused if
   * the store already has a task.
   */
  fill(batches: AsyncIterable<RowBatch>, nextIds: NextIds, counts: PerSection<number>): Promise<void>
}

export const totalRows = (counts: PerSection<number>): number =>
  sections.reduce((sum, section) => sum + counts[section], 0)

/** Reports how many rows or pages are done, and the total. */
export type Progress = (done: number, total: number) => void

export const notEmpty = (found: number): StoreRefused =>
  new StoreRefused(
    `the store is not empty: it has ${found} ${found === 1 ? 'task' : 'tasks'}; an import requires an empty store. Nothing was changed`,
  )

export function refuseMissing(expected: PerSection<number>, found: PerSection<number>): void {
  for (const section of sections)
    if (expected[section] !== found[section])
      throw new StoreRefused(
        `the file has ${expected[section]} ${section}, but the store would have ${found[section]}; nothing was imported`,
      )
}
