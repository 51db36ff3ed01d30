import { type OptionalField, optionalFields } from '@baton/protocol'
import { compiled, copierOf, type Fields, namesOf } from './fields.ts'
import type { EndedAttempt } from './rules/attempts.ts'
import type { StoredState } from './rules/life-cycle.ts'
import type { LeaseOutcome } from './rules/settlement.ts'

// The stored fields of a partition, and what a pull hands out of them. Entries, the tables of each disk and
// exports follow from the lists of fields.

/** What its descriptor may have in addition to the fields of the contract. Null for most partitions. */
type OptionalTexts = { readonly [Field in OptionalField]: string | null }

/** The immutable part of a partition. Within a lane, ids increase in the order of arrival. */
export interface PartitionDescriptor extends OptionalTexts {
  readonly id: number
  readonly lane: number
  readonly index: number
  readonly recordCount: number
  readonly computeTable: string
  /** The original spelling of its name, if it is not the canonical form. */
  readonly spelling: string | null
  readonly calledBackAt: number
  /** The trace context of its call-back. */
  readonly traceparent: string | null
  /** Whether its lane had several compute tables when it arrived. Only such rows are found by table. */
  readonly inMixedLane: boolean
}

export const descriptorFields: Fields<PartitionDescriptor> = {
  id: 'key',
  lane: 'integer',
  index: 'integer',
  recordCount: 'integer',
  computeTable: 'text',
  spelling: 'filled?',
  calledBackAt: 'integer',
  extraFields: 'filled?',
  traceparent: 'filled?',
  inMixedLane: 'flag',
}

/** The mutable part of a partition, which entries contain. */
export interface PartitionStatus {
  state: StoredState
  /** The number of its latest lease; 0 before the first. */
  leaseNumber: number
  attempts: number
  /** How often in a row it was released. */
  releases: number
  holder: string | null
  secret: string
  outcome: LeaseOutcome | null
  /**
   * When the lease or back-off ends. For a ready partition: when it came back, or null if it was not handed
   * out yet.
   */
  dueAt: number | null
  leasedAt: number | null
  /** The fencing token of its latest lease; see `nextFencingToken`. Null before the first. Never falls. */
  fencingToken: number | null
  settledAt: number | null
  reportedRecords: number | null
  reason: string | null
  /** Earlier attempts, oldest first. The running or successful attempt is in the other fields. */
  history: readonly EndedAttempt[] | null
  /** The key of the group of its last failure; see rules/failures.ts. */
  failure: string | null
  /** When its checkpoint was saved. Null: it has none. The text is in a row of its own. */
  checkpointAt: number | null
}

/**
 * In the order in which entries contain them: a new field comes last, and entries without it are readable.
 */
export const statusFields: Fields<PartitionStatus> = {
  state: 'text',
  leaseNumber: 'small',
  attempts: 'small',
  releases: 'small',
  holder: 'text?',
  secret: 'text',
  outcome: 'text?',
  dueAt: 'time?',
  leasedAt: 'time?',
  fencingToken: 'time?',
  settledAt: 'time?',
  reportedRecords: 'integer?',
  reason: 'text?',
  history: 'json?',
  failure: 'text?',
  checkpointAt: 'time?',
}

const start: Readonly<PartitionStatus> = {
  state: 'ready',
  leaseNumber: 0,
  attempts: 0,
  releases: 0,
  holder: null,
  secret: '',
  outcome: null,
  dueAt: null,
  leasedAt: null,
  fencingToken: null,
  settledAt: null,
  reportedRecords: null,
  reason: null,
  history: null,
  failure: null,
  checkpointAt: null,
}

export interface StoredPartition extends PartitionDescriptor, PartitionStatus {}

export const partitionFields: Fields<StoredPartition> = { ...descriptorFields, ...statusFields }

/** The status of a partition that was just called back. */
export const untouched = (): PartitionStatus => ({ ...start })

/** The row of a partition that was just called back. */
export const newPartition: (descriptor: PartitionDescriptor) => StoredPartition = compiled(
  'row',
  `({ ${[
    ...namesOf(descriptorFields).map((field) => `${field}: row.${field}`),
    ...Object.entries(start).map(([field, value]) => `${field}: ${JSON.stringify(value)}`),
  ].join(', ')} })`,
)

/** Copies the current status. */
export const statusOf = copierOf<PartitionStatus, keyof PartitionStatus>(namesOf(statusFields))

/** What is compared when a partition is called back again. */
export const comparedFields = [
  'recordCount',
  'computeTable',
  'spelling',
  ...optionalFields,
] as const satisfies (keyof PartitionDescriptor)[]

export type KnownPartition = Pick<PartitionDescriptor, (typeof comparedFields)[number]>

/** Fields that few partitions have. */
export const rareFields = [...optionalFields, 'traceparent'] as const satisfies (keyof PartitionDescriptor)[]

export type RareFields = Pick<PartitionDescriptor, (typeof rareFields)[number]>

export const rareOf = copierOf<RareFields, keyof RareFields>(rareFields)

export const hasNoRare: (partition: RareFields) => boolean = compiled(
  'row',
  rareFields.map((field) => `row.${field} === null`).join(' && '),
)

/** What a pull hands out. Rare fields are present only if one of them is set. */
export interface PulledPartition extends Partial<RareFields> {
  readonly taskId: string
  readonly level: number
  readonly index: number
  readonly spelling: string | null
  readonly computeTableName: string
  readonly recordCount: number
  readonly lease: GrantedLease | null
}

export interface GrantedLease {
  readonly id: string
  readonly attempt: number
  readonly fencingToken: number
  readonly expiresAt: number
  readonly expiresInMillis: number
  /** Null: the partition has none. */
  readonly checkpoint: string | null
}
