import type { InstanceRole } from '@baton/protocol'
import { auditFields } from './audit.ts'
import type { RowChanges } from './disk.ts'
import { of, type RowOf } from './fields.ts'
import { deliveryFields, subscriptionFields } from './outbox.ts'
import { partitionFields } from './partition.ts'
import {
  checkpointFields,
  keyFields,
  laneFields,
  laneTableFields,
  levelFields,
  rangeFields,
  type StoredLane,
  type StoredTask,
  tableSettingsFields,
  taskFields,
  throughputFields,
} from './stored.ts'

// The rows of a store, with their fields: the tables of each disk and the sections of an export follow from them.
// The other fields are in stored.ts and partition.ts. A field added there needs no change here.

/** The rows of each table of a disk, which are those of each section of an export. Rows come after the rows they belong to. */
export const storedFields = {
  tasks: taskFields,
  lanes: laneFields,
  levels: levelFields,
  laneTables: laneTableFields,
  /** As ranges that neither overlap nor touch. */
  ranges: rangeFields,
  /** In the order of their first use within a task. */
  tables: { task: 'integer', name: 'text' },
  keys: keyFields,
  instances: {
    instanceId: 'text',
    role: of<InstanceRole>('text'),
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
  },
  produced: { instance: 'text', task: 'integer', at: 'integer' },
  partitions: partitionFields,
  checkpoints: checkpointFields,
  subscriptions: subscriptionFields,
  deliveries: deliveryFields,
  throughput: throughputFields,
  audit: auditFields,
  tableSettings: tableSettingsFields,
} as const

export type Section = keyof typeof storedFields

export const sections = Object.keys(storedFields) as Section[]

export type StoredRows = {
  readonly [Name in Section]: Name extends 'tasks'
    ? StoredTask
    : Name extends 'lanes'
      ? StoredLane
      : RowOf<(typeof storedFields)[Name]>
}
export type StoredInstance = StoredRows['instances']

/** Changes that have no rows, or whose rows are in other sections. */
type WithoutSection = 'nextIds' | 'totals' | 'changes'

/** A change of a new kind does not compile until it has a section, so everything is exported. */
type WithoutTable = Exclude<
  Exclude<keyof RowChanges, 'outbox'> | keyof RowChanges['outbox'],
  Section | WithoutSection
>
true satisfies [WithoutTable] extends [never] ? true : WithoutTable

/** Whether the rows have counts by state. */
export const isTallied = (section: Section): boolean => section === 'tasks' || section === 'lanes'
