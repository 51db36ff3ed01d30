import { optionalFields } from '@baton/protocol'
import { compiled, copierOf, emptyRowOf, type MutableRowOf, namesOf, of, type RowOf } from './fields.ts'
import type { EndedAttempt } from './rules/attempts.ts'
import type { StoredState } from './rules/life-cycle.ts'
import type { LeaseOutcome } from './rules/settlement.ts'
import type { NamedPartition } from './views/queries.ts'

// The stored fields of a partition, and what a pull hands out of them. Entries, the tables of each disk and
// exports follow from the lists of fields.

/** The immutable part of a partition. Within a lane, ids increase in the order of arrival. */
export const descriptorFields = {
  id: 'key',
  lane: 'integer',
  index: 'integer',
  recordCount: 'integer',
  computeTable: 'text',
  /** The original spelling of its name, if it is not the canonical form. */
  spelling: 'filled?',
  calledBackAt: 'integer',
  extraFields: 'filled?',
  /** The trace context of its call-back. */
  traceparent: 'filled?',
  /** Whether its lane had several compute tables when it arrived. Only such rows are found by table. */
  inMixedLane: 'flag',
} as const
export type PartitionDescriptor = RowOf<typeof descriptorFields>

/** In the order in which entries contain it: a new field comes last, and entries without it are readable. */
export const statusFields = {
  state: of<StoredState>('text'),
  /** The number of its latest lease; 0 before the first. */
  leaseNumber: 'small',
  attempts: 'small',
  /** How often in a row it was released. */
  releases: 'small',
  holder: 'text?',
  secret: 'text',
  outcome: of<LeaseOutcome | null>('text?'),
  /** When the lease or back-off ends. Ready: when it came back; null if it was never handed out. */
  dueAt: 'time?',
  leasedAt: 'time?',
  /** The fencing token of its latest lease; see `nextFencingToken`. Null before the first. Never falls. */
  fencingToken: 'time?',
  settledAt: 'time?',
  reportedRecords: 'integer?',
  reason: 'text?',
  /** Earlier attempts, oldest first. The running or successful attempt is in the other fields. */
  history: of<readonly EndedAttempt[] | null>('json?'),
  /** The key of the group of its last failure; see rules/failures.ts. */
  failure: 'text?',
  /** When its checkpoint was saved. Null: it has none. The text is in a row of its own. */
  checkpointAt: 'time?',
} as const
export type PartitionStatus = MutableRowOf<typeof statusFields>

const emptyStatus = emptyRowOf(statusFields)

export const untouched = (): PartitionStatus => ({ ...emptyStatus(), state: 'ready' })

export interface StoredPartition extends PartitionDescriptor, PartitionStatus {}

export const partitionFields = { ...descriptorFields, ...statusFields }

export const newPartition: (descriptor: PartitionDescriptor) => StoredPartition = compiled(
  'row',
  `({ ${[
    ...namesOf(descriptorFields).map((field) => `${field}: row.${field}`),
    ...Object.entries(untouched()).map(([field, value]) => `${field}: ${JSON.stringify(value)}`),
  ].join(', ')} })`,
)

export const statusOf = copierOf<PartitionStatus, keyof PartitionStatus>(namesOf(statusFields))

/** What is compared when a partition is called back again. */
export const comparedFields = [
  'recordCount',
  'computeTable',
  'spelling',
  ...optionalFields,
] as const satisfies (keyof PartitionDescriptor)[]

export type KnownPartition = Pick<PartitionDescriptor, (typeof comparedFields)[number]>

export const rareFields = [...optionalFields, 'traceparent'] as const satisfies (keyof PartitionDescriptor)[]

export type RareFields = Pick<PartitionDescriptor, (typeof rareFields)[number]>

export const rareOf = copierOf<RareFields, keyof RareFields>(rareFields)

export const hasNoRare: (partition: RareFields) => boolean = compiled(
  'row',
  rareFields.map((field) => `row.${field} === null`).join(' && '),
)

/** What a pull hands out. Rare fields are present only if one of them is set. */
export interface PulledPartition extends NamedPartition, Partial<RareFields> {
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
